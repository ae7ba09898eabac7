// SPDX-License-Identifier: Apache-2.0
// Bundles the page into one HTML document with a place for the report's JSON.
//
//   node build.mjs --html=FILE    the document, with @REPORT@ where the JSON goes
//   node build.mjs --cc=FILE      the same as a C++ source, cut in two at that place
//   node build.mjs --packages=FILE    the npm packages with code in it, one a line; NOTICE names each
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));

async function bundle() {
  const result = await build({
    entryPoints: [join(here, "src/main.ts")],
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    metafile: true,
    write: false,
  });
  const packages = Object.keys(result.metafile.inputs).map((file) => /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]);
  // Nothing in the script may end the element it stands in.
  const script = result.outputFiles[0].text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  return { script, packages: [...new Set(packages.filter(Boolean))].sort() };
}

// The licenses of the libraries go with every page that holds their code.
function notice() {
  const file = [join(here, "NOTICE"), join(here, "../../../NOTICE")].find(existsSync);
  const text = readFileSync(file, "utf8");
  const begin = text.indexOf("Third-party code");
  if (begin < 0) throw new Error(`${file} has no part "Third-party code"`);
  return text.slice(begin).replace(/^-+$/m, "").trim();
}

const style = readFileSync(join(here, "src/style.css"), "utf8");
const { script, packages } = await bundle();
const page = `<!doctype html>
<!--
${notice()}
-->
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<title>hlokit report</title>
<link rel="icon" href="data:,">
<style>
${style}</style>
</head>
<body>
<noscript>This report draws itself with JavaScript, which is turned off here.</noscript>
<div id="page"></div>
<script type="application/json" id="report">@REPORT@</script>
<script>
${script}</script>
</body>
</html>
`;

// Compilers limit the length of one literal; neighbours are joined.
function literal(text) {
  const pieces = [];
  const bytes = 8000;
  for (let at = 0; at < text.length; at += bytes) pieces.push(`R"@page@(${text.slice(at, at + bytes)})@page@"`.replaceAll("@page@", "hlokitpage"));
  return pieces.join("\n");
}

for (const argument of process.argv.slice(2)) {
  const [name, file] = argument.split("=", 2);
  if (name === "--html") {
    writeFileSync(file, page);
  } else if (name === "--cc") {
    const [before, after] = page.split("@REPORT@");
    writeFileSync(
      file,
      `// Made by tools/web/report/build.mjs.\n#include "tools/cli/report_page.h"\n\nnamespace hlokit::cli {\n\n` +
        `const char* const kReportPageBefore =\n${literal(before)};\nconst char* const kReportPageAfter =\n${literal(after)};\n\n` +
        `}  // namespace hlokit::cli\n`,
    );
  } else if (name === "--packages") {
    writeFileSync(file, packages.map((one) => `${one}\n`).join(""));
  } else {
    console.error(`build.mjs: ${argument}: expected --html=FILE, --cc=FILE or --packages=FILE`);
    process.exit(2);
  }
}

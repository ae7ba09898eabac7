// SPDX-License-Identifier: Apache-2.0
// Bundles each page into one HTML document with a place for its data.
//
//   node build.mjs --cc=FOLDER        FOLDER/report_page_text.cc, view_page_text.cc: documents cut in two at that place; and
//                                     layout_worker_text.cc: the element with the worker that lays out graphs
//   node build.mjs --packages=FILE    the npm packages with code in them, one a line; NOTICE names each
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { deflateSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);

// name: of the folder; constant: in C++; waiting: stands there until the script has run.
const pages = [
  { name: "report", constant: "kReportPage", title: "hlokit report", what: "This report" },
  { name: "view", constant: "kViewPage", title: "hlo-view", what: "This graph", waiting: "Reading the graph …" },
];
// Pages that show a graph start a worker from this script, deflated.
const workerFile = "elkjs/lib/elk-worker.min.js";

// Nothing in a script may end the element it stands in.
const inElement = (script) => script.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");

async function bundle(page) {
  const result = await build({
    entryPoints: [join(here, page.name, "src/main.ts")],
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    loader: { ".css": "text" },
    metafile: true,
    write: false,
  });
  const packages = Object.keys(result.metafile.inputs).map((file) => /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]);
  return { script: inElement(result.outputFiles[0].text), packages: [...new Set(packages.filter(Boolean))].sort() };
}

// The licenses of the libraries go with every page that holds their code.
function notice() {
  const file = [join(here, "NOTICE"), join(here, "../../NOTICE")].find(existsSync);
  const text = readFileSync(file, "utf8");
  const begin = text.indexOf("Third-party code");
  if (begin < 0) throw new Error(`${file} has no part "Third-party code"`);
  return text.slice(begin).replace(/^-+$/m, "").trim();
}

const style = (name) => [join(here, "common/theme.css"), join(here, name, "src/style.css")].map((file) => readFileSync(file, "utf8")).join("");
const worker = () => `<script type="application/octet-stream" id="layout-worker">${deflateSync(readFileSync(require.resolve(workerFile)), { level: 9 }).toString("base64")}</script>\n`;

const documentOf = (page, script) => `<!doctype html>
<!--
${notice()}
-->
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; worker-src blob:">
<title>${page.title}</title>
<link rel="icon" href="data:,">
<style>
${style(page.name)}</style>
${page.waiting ? "<noscript><style>.waiting { display: none; }</style></noscript>\n" : ""}</head>
<body>
<noscript>${page.what} draws itself with JavaScript, which is turned off here.</noscript>
<div id="page">${page.waiting ? `<p class="waiting">${page.waiting}</p>` : ""}</div>
@DATA@<script>
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

const made = [];
for (const page of pages) {
  const { script, packages } = await bundle(page);
  made.push({ page, packages, text: documentOf(page, script) });
}
for (const argument of process.argv.slice(2)) {
  const [name, target] = argument.split("=", 2);
  if (name === "--cc") {
    const source = (file, definition) => writeFileSync(join(target, file),
      `// Made by tools/web/build.mjs.\n#include "tools/cli/pages/web_page.h"\n\nnamespace hlokit::cli {\n\n${definition};\n\n}  // namespace hlokit::cli\n`);
    for (const { page, text } of made) {
      const [before, after] = text.split("@DATA@");
      source(`${page.name}_page_text.cc`, `const WebPage ${page.constant} = {\n${literal(before)},\n${literal(after)},\n}`);
    }
    source("layout_worker_text.cc", `const char* const kLayoutWorker =\n${literal(worker())}`);
  } else if (name === "--packages") {
    writeFileSync(target, [...new Set([...made.flatMap((one) => one.packages), workerFile.split("/")[0]])].sort().map((one) => `${one}\n`).join(""));
  } else {
    console.error(`build.mjs: ${argument}: expected --cc=FOLDER or --packages=FILE`);
    process.exit(2);
  }
}

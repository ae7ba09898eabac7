// SPDX-License-Identifier: Apache-2.0
// Makes the pictures of the tutorials anew, with the tools of a build:
//
//   node docs/tutorials/make_pictures.mjs [--bin=FOLDER] [--page=FOLDER]
//
// Needs Chromium, Graphviz, and playwright-core, which npm leaves in build/release/web-pages. Look at the pictures before
// keeping them.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../..");
const flags = Object.fromEntries(process.argv.slice(2).map((argument) => argument.replace(/^--/, "").split("=", 2)));
const bin = resolve(flags.bin ?? join(root, "build/release/bin"));
const pageFolder = resolve(flags.page ?? join(root, "build/release/web-pages"));
const { chromium } = createRequire(pathToFileURL(join(pageFolder, "x.js")))("playwright-core");
const pictures = join(here, "pictures");
const scratch = mkdtempSync(join(tmpdir(), "hlokit-pictures-"));

// The lines of a file that a tutorial shows with `$ cat NAME`.
function shown(tutorial, name) {
  const lines = readFileSync(join(here, tutorial), "utf8").split("\n");
  const begin = lines.indexOf(`    $ cat ${name}`) + 1;
  let end = begin;
  while ((lines[end] === "" || lines[end].startsWith("    ")) && !lines[end].startsWith("    $")) end += 1;
  return lines.slice(begin, end).map((line) => line.slice(4)).join("\n") + "\n";
}

// The graph of one step of trace-a-model.md, without scopes and lines.
function lazyGraph() {
  const program = shown("trace-a-model.md", "train.py").replace(/ +print.*item.*\n/, "").replace("range(3)", "range(1)")
    .replace("ht.mark_step()", "print(ht.pending([loss, model.weight]).lazy_ir)").replace(/print\(t.*\n/, "");
  const python = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
  const text = execFileSync(python, ["-c", program], { encoding: "utf8", env: { ...process.env, PYTHONPATH: join(bin, "../python") } });
  const graph = text.replace(/, (scope|location)=[^ ]*(?=,)/g, "");
  const dot = execFileSync(join(bin, "ir-dump"), ["--input=-", "--as=dot"], { input: graph, encoding: "utf8" });
  const style = 'node [shape=box style="rounded,filled" fillcolor="#f4f6f8" color="#8a99a8" fontname="sans-serif" fontsize=11]\n' +
    '  edge [color="#5b6b7b" arrowsize=0.7]\n  nodesep=0.25 ranksep=0.3 bgcolor="white"';
  const svg = execFileSync("dot", ["-Tsvg"], { input: dot.replace("{", `{\n  ${style}`), encoding: "utf8" });
  writeFileSync(join(pictures, "lazy_graph.svg"), svg.replace(/<!--.*?-->\n?/gs, ""));
}

async function reportPictures(browser) {
  symlinkSync(join(root, "examples"), join(scratch, "examples"));
  execFileSync(join(bin, "hlo-run"), ["examples/decoder_layer.hlo", "--device=v5e", "--timing-only",
    "--host=trace=6ms,execute=35us,input=1ms", "--report=report", "--report-output=/dev/null"], { cwd: scratch });
  const page = await browser.newPage({ viewport: { width: 1360, height: 900 }, colorScheme: "light", reducedMotion: "reduce" });
  await page.goto(pathToFileURL(join(scratch, "report/index.html")).href);
  await page.waitForSelector("body[data-ready]");
  // Charts draw when they come into view.
  for (const section of await page.$$("section")) {
    await section.scrollIntoViewIfNeeded();
    await page.waitForTimeout(400);
  }
  await page.evaluate(() => scrollTo(0, 0));
  const box = async (id) => (await (await page.$(id)).boundingBox());
  const picture = async (name, from, to) => {
    const first = from === null ? { x: 0, y: 0 } : await box(from);
    const last = await box(to);
    await page.screenshot({ path: join(pictures, name), fullPage: true, animations: "disabled",
      clip: { x: 0, y: Math.max(first.y - 12, 0), width: 1360, height: last.y + last.height - first.y + 24 } });
  };
  await picture("report_top.png", null, "#recommendations");
  await picture("report_timeline.png", "#host", "#host");
  await picture("decoder_time.png", "#operations", "#operations");
}

let browser;
try {
  lazyGraph();
  const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  await reportPictures(browser);
} finally {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
}

// SPDX-License-Identifier: Apache-2.0
// Makes the pictures of graphs in hlo-view.md, hlo-diff.md and report.md anew, with the tools of a build:
//
//   node docs/make_view_pictures.mjs [--bin=FOLDER] [--page=FOLDER]
//
// Needs Chromium, Graphviz, and playwright-core, which npm leaves in build/release/web-pages. Look at the pictures before
// keeping them.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { program } from "../tests/view/modules.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "..");
const flags = Object.fromEntries(process.argv.slice(2).map((argument) => argument.replace(/^--/, "").split("=", 2)));
const bin = resolve(flags.bin ?? join(root, "build/release/bin"));
const { chromium } = createRequire(pathToFileURL(join(resolve(flags.page ?? join(root, "build/release/web-pages")), "x.js")))("playwright-core");
const pictures = join(here, "pictures");
const scratch = mkdtempSync(join(tmpdir(), "hlokit-pictures-"));
const view = (...more) => execFileSync(join(bin, "hlo-view"), more, { cwd: root, encoding: "utf8" });

const html = join(scratch, "graph.html");
const graph = (module, ...more) => () => { view(module, "-o", html, ...more); return html; };
const difference = () => {
  const after = join(scratch, "after.hlo");
  writeFileSync(after, readFileSync(join(root, "examples/train_step.hlo"), "utf8").replaceAll("subtract(", "add("));
  spawnSync(join(bin, "hlo-diff"), [`--html=${html}`, "examples/train_step.hlo", after], { cwd: root });
  return html;
};
const report = () => {
  execFileSync(join(bin, "hlo-run"), ["examples/decoder_layer.hlo", "--device=v5e", "--timing-only", `--report=${scratch}`, "--report-output=/dev/null"], { cwd: root });
  return join(scratch, "index.html");
};

// A name, what makes the page, what is done on it, and the fragment of its address.
const situations = [
  ["view_opened", graph("examples/train_step.hlo"), "app.viewport.fit(g.root, false);"],
  ["view_loop", graph(join(scratch, "program.hlo")), 'await app.select(node("act.remat")); await app.select(node("x")); app.viewport.fit(g.root, false);'],
  ["view_devices", graph(join(scratch, "program.hlo")), 'await app.setMode("device"); await app.select(node("w1")); app.viewport.fit(g.root, false);'],
  ["view_time", graph("examples/decoder_layer.hlo", "--device=v5e"), "app.viewport.fit(g.root, false);"],
  ["diff_page", difference, 'await app.select(node("log_probability"));'],
  ["report_graph", report, "app.viewport.fit(g.root, false);", "#graph"],
];

let browser;
writeFileSync(join(scratch, "program.hlo"), program);
try {
  const svg = view("--format=svg", "--of=logits", "--depth=1", "examples/train_step.hlo");
  writeFileSync(join(pictures, "view_neighborhood.svg"), svg.replace(/<!--.*?-->\n?/gs, ""));
  const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  for (const [name, make, script, fragment] of situations) {
    const file = make();
    const page = await browser.newPage({ viewport: { width: 1400, height: 860 }, colorScheme: "light", reducedMotion: "reduce" });
    await page.goto(pathToFileURL(file).href + (fragment ?? ""));
    await page.waitForSelector("main[data-ready], .host[data-ready]");
    await page.evaluate(`(async () => { const app = hloView, g = app.graph; const node = (name) => { for (let k = 0; k < g.total; ++k) if (g.labelOf(k) === name) return k; throw new Error("no " + name); }; ${script} })()`);
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(pictures, `${name}.png`) });
    await page.close();
  }
} finally {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
}

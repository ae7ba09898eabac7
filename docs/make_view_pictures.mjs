// SPDX-License-Identifier: Apache-2.0
// Makes the pictures of hlo-view.md anew, with the tools of a build:
//
//   node docs/make_view_pictures.mjs [--bin=FOLDER] [--page=FOLDER]
//
// Needs Chromium, Graphviz, and playwright-core, which npm leaves in build/release/web-pages. Look at the pictures before
// keeping them.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
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

// A name, the module, flags, what is done on the page.
const situations = [
  ["view_opened", "examples/train_step.hlo", [], "app.viewport.fit(g.root, false);"],
  ["view_loop", join(scratch, "program.hlo"), [], 'await app.select(node("act.remat")); await app.select(node("x")); app.viewport.fit(g.root, false);'],
  ["view_time", "examples/decoder_layer.hlo", ["--device=v5e"], "app.viewport.fit(g.root, false);"],
];

let browser;
writeFileSync(join(scratch, "program.hlo"), program);
try {
  const svg = view("--format=svg", "--of=logits", "--hops=1", "examples/train_step.hlo");
  writeFileSync(join(pictures, "view_neighborhood.svg"), svg.replace(/<!--.*?-->\n?/gs, ""));
  const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  for (const [name, module, more, script] of situations) {
    view(module, "-o", join(scratch, "graph.html"), ...more);
    const page = await browser.newPage({ viewport: { width: 1400, height: 860 }, colorScheme: "light", reducedMotion: "reduce" });
    await page.goto(pathToFileURL(join(scratch, "graph.html")).href);
    await page.waitForFunction(() => document.querySelector("main").dataset.ready);
    await page.evaluate(`(async () => { const app = hloView, g = app.graph; const node = (name) => { for (let k = 0; k < g.total; ++k) if (g.labelOf(k) === name) return k; throw new Error("no " + name); }; ${script} })()`);
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(pictures, `${name}.png`) });
    await page.close();
  }
} finally {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
}

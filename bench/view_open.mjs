// SPDX-License-Identifier: Apache-2.0
// How fast the page of hlo-view is in Chromium: opening, opening a group, panning and zooming, and its size.
//
//   node bench/view_open.mjs [--bin=build/release/bin] [--page=build/release/web-pages] [--instructions=100000] [--runs=5]
//     [--check=yes] [FILE...]
//
// Of each FILE, and of a generated module of so many instructions. Each run opens the page from a file in a fresh browser
// context; opening ends when the graph is drawn. Groups are opened one after another, twenty of them, once those in view are
// laid out. Frames are counted while the view moves over the graph with these groups open. Prints medians, and the worst of
// each; with --check the exit code is 1 if a median or the size is beyond the limit: 3 s, 150 ms, 50 frames a second, 2 MB and
// 60 bytes an instruction.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chain } from "../tests/view/modules.mjs";

const flags = { bin: "build/release/bin", page: "build/release/web-pages", instructions: "100000", runs: "5" };
const files = [];
for (const argument of process.argv.slice(2)) {
  const [, name, value] = /^--(\w+)=(.*)$/.exec(argument) ?? [];
  if (name) flags[name] = value;
  else files.push(argument);
}
const { chromium } = createRequire(pathToFileURL(join(resolve(flags.page), "x.js")))("playwright-core");
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

let failed = 0;
const limit = (name, value, most) => { if (flags.check && value > most) { console.log(`  beyond the limit: ${name} ${value.toFixed(0)}, at most ${most}`); ++failed; } };

const scratch = mkdtempSync(join(tmpdir(), "hlokit-view-open-"));
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-quic",
  "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
try {
  const large = join(scratch, "generated.hlo");
  writeFileSync(large, chain(Number(flags.instructions)));
  for (const module of [...files, large]) {
    const file = join(scratch, "graph.html");
    const began = performance.now();
    execFileSync(join(flags.bin, "hlo-view"), [module, "-o", file], { stdio: "ignore" });
    const wrote = performance.now() - began;
    const opened = [], groups = [], pans = [], zooms = [];
    let instructions = 0, boxes = 0, open = 0;
    for (let run = 0; run < Number(flags.runs); ++run) {
      const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
      const page = await context.newPage();
      const start = performance.now();
      await page.goto(pathToFileURL(file).href);
      await page.waitForFunction(() => document.querySelector("main").dataset.ready && hloView.viewport.frames > 0);
      opened.push(performance.now() - start);
      boxes = await page.evaluate(() => hloView.scene.boxes.size);
      await page.waitForFunction(() => hloView.viewport.closedGroups(60).every((node) => hloView.scene.isLaidOut(node)));
      const times = await page.evaluate(async () => {
        const app = hloView;
        const times = [];
        for (let k = 0; k < 20; ++k) {
          const closed = [...app.scene.boxes.values()].filter((box) => !box.open && app.graph.hasChildren(box.node));
          if (!closed.length) break;
          const node = closed[(7 * k) % closed.length].node;
          const start = performance.now(), frames = app.viewport.frames;
          await app.toggle(node);
          while (app.viewport.frames === frames) await new Promise((done) => setTimeout(done, 1));
          times.push(performance.now() - start);
          await new Promise((done) => setTimeout(done, 300));
        }
        return times;
      });
      groups.push(...times);
      const rate = (what) => page.evaluate(async (what) => {
        const view = hloView.viewport;
        view.fit(hloView.graph.root, false);
        const frame = () => new Promise(requestAnimationFrame);
        await frame();
        const start = performance.now(), frames = 120;
        for (let k = 0; k < frames; ++k) {
          if (what === "pan") view.pan(20 * Math.sin(k / 15), 12);
          else view.zoom(k % 60 < 30 ? 1.06 : 1 / 1.06);
          await frame();
        }
        return (1000 * frames) / (performance.now() - start);
      }, what);
      pans.push(await rate("pan"));
      zooms.push(await rate("zoom"));
      [instructions, open] = await page.evaluate(() => [hloView.graph.size, hloView.scene.boxes.size]);
      await context.close();
    }
    const size = statSync(file).size;
    console.log(`${basename(module)}: ${instructions} instructions, written in ${wrote.toFixed(0)} ms, ${(size / 1e6).toFixed(2)} MB (limit ${((2e6 + 60 * instructions) / 1e6).toFixed(2)})`);
    console.log(`  opens in ${median(opened).toFixed(0)} ms (worst ${Math.max(...opened).toFixed(0)}) with ${boxes} boxes; a group in ${median(groups).toFixed(0)} ms (worst of ${groups.length}: ${Math.max(...groups).toFixed(0)})`);
    limit("opens in ms", median(opened), 3000);
    limit("a group in ms", median(groups), 150);
    limit("ms of a frame", 1000 / Math.min(median(pans), median(zooms)), 1000 / 50);
    limit("bytes", size, 2e6 + 60 * instructions);
    console.log(`  with ${open} boxes: pans at ${median(pans).toFixed(0)}, zooms at ${median(zooms).toFixed(0)} frames a second (worst ${Math.min(...pans, ...zooms).toFixed(0)})`);
  }
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);

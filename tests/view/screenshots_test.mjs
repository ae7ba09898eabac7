// SPDX-License-Identifier: Apache-2.0
// The graph page in eleven situations looks as in tests/view/screenshots.
//
//   node screenshots_test.mjs --bin=FOLDER --page=FOLDER [--update=yes]    --update writes the pictures
//
// Pictures are compared at a scale at which text is grey.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Tests, differ, flags, launch, uri } from "../report/browser.mjs";
import { chain, program } from "./modules.mjs";

const kept = join(dirname(fileURLToPath(import.meta.url)), "screenshots");
const width = 200;           // of the compared pictures
const maxDifference = 0.03;  // fraction of pixels with another color

// A name, the page, what is done on it, and how it is opened.
const situations = [
  ["opened", "program", ""],
  ["dark", "program", "", { colorScheme: "dark" }],
  ["loop-open", "program", 'await app.toggle(node("loop")); await app.toggle(node("body: body"));'],
  ["selected", "program", 'await app.select(node("t"));'],
  ["sharding", "program", 'await app.setMode("sharding"); await app.select(node("x"));'],
  ["device", "program", 'await app.setMode("device"); await app.select(node("x"));'],
  ["bytes", "program", 'await app.setMode("bytes"); await app.select(g.root);'],
  ["neighborhood", "program", 'await app.setFilter({ kind: "hops", a: node("y"), b: 2 });'],
  ["search", "chain", 'app.setQuery("opcode:dot name:9"); await app.select(g.root);'],
  ["time", "timed", ""],
  ["difference", "difference", 'await app.select(node("t"));'],
];

const tests = new Tests();
const scratch = mkdtempSync(join(tmpdir(), "hlokit-view-screenshots-"));
const file = (name) => join(scratch, name);
const { browser } = await launch();
try {
  mkdirSync(kept, { recursive: true });
  writeFileSync(file("program.hlo"), program);
  writeFileSync(file("chain.hlo"), chain(3000));
  writeFileSync(file("after.hlo"), program.replace("tanh(h)", "exponential(h)"));
  const view = (name, page, ...more) => execFileSync(join(flags.bin, "hlo-view"), [file(`${name}.hlo`), "-o", file(`${page}.html`), ...more]);
  view("program", "program");
  view("program", "timed", "--device=v5e:2x2");
  view("chain", "chain");
  spawnSync(join(flags.bin, "hlo-diff"), [`--html=${file("difference.html")}`, file("program.hlo"), file("after.hlo")]);
  for (const [name, graph, script, options] of situations) {
    await tests.run(name, async () => {
      const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
      await page.goto(pathToFileURL(file(`${graph}.html`)).href);
      await page.waitForFunction(() => document.querySelector("main").dataset.ready);
      await page.evaluate(`(async () => { const app = hloView, g = app.graph; const node = (name) => { for (let k = 0; k < g.total; ++k) if (g.labelOf(k) === name) return k; throw new Error("no " + name); }; ${script}
        app.viewport.fit(g.root, false); await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))); })()`);
      // The file has another name each time.
      await page.evaluate(() => document.querySelector("main").shadowRoot.querySelectorAll(".panel .shape").forEach((element) => { element.textContent = ""; }));
      const picture = uri(await page.screenshot({ animations: "disabled" }));
      const old = join(kept, `${name}.png`);
      if (flags.update) {
        const { small } = await differ(page, picture, picture, width);
        writeFileSync(old, Buffer.from(small.split(",")[1], "base64"));
      } else {
        assert.ok(existsSync(old), `${old} is missing: --update=yes writes it`);
        const { part } = await differ(page, picture, uri(readFileSync(old)), width);
        assert.ok(part <= maxDifference, `${(100 * part).toFixed(1)} % of the pixels differ`);
        if (name === "opened") {
          // The comparison finds a graph that is missing.
          await page.$eval(".stage canvas", (canvas) => { canvas.style.visibility = "hidden"; });
          assert.ok((await differ(page, uri(await page.screenshot()), uri(readFileSync(old)), width)).part > maxDifference, "a missing graph is not found");
        }
      }
      await page.close();
    });
  }
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
}
tests.finish();

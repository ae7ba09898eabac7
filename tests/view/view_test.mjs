// SPDX-License-Identifier: Apache-2.0
// The page of hlo-view in a real browser: it opens, finds, opens and closes groups, and asks nothing of the network.
//
//   node view_test.mjs --bin=FOLDER --page=FOLDER     FOLDER/hlo-view; where npm put playwright-core
//
// Exit code 77, with a line that says why, where there is no Chromium or no page was built.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Tests, flags, launch, violations } from "../report/browser.mjs";
import { chain, manyScopes, program, trainingStep, tuples } from "./modules.mjs";

const scratch = mkdtempSync(join(tmpdir(), "hlokit-view-"));
const tests = new Tests();
const test = (name, body) => tests.run(name, body);
const { browser, axe } = await launch();

try {
  const tool = (name, ...more) => execFileSync(join(flags.bin, "hlo-view"), [join(scratch, `${name}.hlo`), "-o", join(scratch, `${name}.html`), ...more]);
  writeFileSync(join(scratch, "program.hlo"), program);
  writeFileSync(join(scratch, "chain.hlo"), chain(3000));
  writeFileSync(join(scratch, "step.hlo"), trainingStep(2000));
  writeFileSync(join(scratch, "scopes.hlo"), manyScopes(39, 40, 12));
  writeFileSync(join(scratch, "tuples.hlo"), tuples);
  for (const name of ["program", "chain", "step", "scopes", "tuples"]) tool(name);
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, reducedMotion: "reduce", acceptDownloads: true });
  await context.addInitScript(() => {
    globalThis.shadow = () => document.querySelector("main").shadowRoot;
    // Texts on the canvas, with their sizes on the screen in CSS pixels.
    globalThis.texts = [];
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
      if (text) texts.push([text, (parseFloat(/([\d.]+)px/.exec(this.font)[1]) * this.getTransform().a) / devicePixelRatio]);
      return draw.call(this, text, ...at);
    };
  });
  const page = await context.newPage();
  const errors = [], requests = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("request", (request) => requests.push(request.url()));
  const open = async (name, fragment = "") => {
    await page.goto("about:blank");
    await page.goto(pathToFileURL(join(scratch, `${name}.html`)).href + fragment);
    await page.waitForFunction(() => document.querySelector("main").dataset.ready);
  };
  // Returns the texts of the next frame.
  const drawn = () => page.evaluate(() => new Promise((done) => {
    texts.length = 0;
    hloView.viewport.redraw();
    requestAnimationFrame(() => requestAnimationFrame(() => done(texts.slice())));
  }));
  // Runs in the page: `app`, `g` and `node(name)`.
  const run = (script) => page.evaluate(`(async () => { const app = hloView, g = app.graph; const node = (name) => { for (let k = 0; k < g.total; ++k) if (g.labelOf(k) === name) return k; return -1; }; ${script} })()`);
  await open("program");

  await test("the page is small", () => {
    for (const [name, instructions] of [["program", 40], ["chain", 3000]]) assert.ok(statSync(join(scratch, `${name}.html`)).size <= 2e6 + 60 * instructions, name);
  });
  await test("any module opens as few boxes", async () => {
    for (const name of ["program", "chain", "step", "scopes"]) {
      await open(name);
      const boxes = await run("return [...app.scene.boxes.values()].filter((box) => !box.open).length");
      assert.ok(boxes > 5 && boxes <= 50, `${name}: ${boxes}`);
    }
    await open("program");
  });
  await test("the first view is of the whole graph, in texts that can be read", async () => {
    for (const name of ["program", "chain", "tuples"]) {
      await open(name);
      const sizes = await page.evaluate(() => texts.map(([, size]) => size));
      assert.ok(sizes.length > 5 && Math.min(...sizes) >= 8.99, `${name}: ${sizes.length} texts, of ${Math.min(...sizes)} px`);
      assert.deepEqual(await run(`const { camera: c, width, height } = app.viewport, { size } = app.scene;
        return [c.x <= 0, c.y <= 0, c.x + width / c.scale >= size.width, c.y + height / c.scale >= size.height];`), [true, true, true, true], name);
    }
    // In a small window fewer groups are open.
    await open("program");
    const many = await run("return app.scene.boxes.size");
    await page.setViewportSize({ width: 900, height: 420 });
    await open("program");
    const few = await run("return app.scene.boxes.size");
    assert.ok(few < many && few > 5, `${few} of ${many} boxes`);
    assert.ok(Math.min(...(await drawn()).map(([, size]) => size)) >= 8.99);
    await page.setViewportSize({ width: 1400, height: 900 });
  });
  await test("scopes of a training step are on its first view, and sections say what is in them", async () => {
    await open("step");
    const labels = await run("return [...app.scene.boxes.keys()].filter((node) => g.parent[node] === g.root).map((node) => g.labelOf(node))");
    for (const scope of ["jvp(Model)", "transpose(jvp(Model))"]) assert.ok(labels.includes(scope), `${scope}: ${labels.join("; ")}`);
    const sections = await run('return [...app.scene.boxes.keys()].filter((node) => g.kindOf(node) === "section").map((node) => g.labelOf(node))');
    assert.ok(sections.length > 10);
    for (const label of sections) assert.match(label, /^(add|multiply|divide)(, (add|multiply|divide|tuple))*: /);
    const texts = await drawn();
    assert.ok(texts.some(([text]) => text.includes("jvp(Model)")) && Math.min(...texts.map(([, size]) => size)) >= 8.99);
    await open("program");
  });
  await test("boxes lie in their groups and do not overlap", async () => {
    const wrong = await run(`
      for (let k = g.size; k < g.total; ++k) app.scene.open.add(k);
      for (let k = 0; k < g.size; ++k) if (g.hasChildren(k)) app.scene.open.add(k);
      await app.select(node("loop"));
      const bad = [];
      const boxes = [...app.scene.boxes.values()];
      for (const a of boxes) {
        const p = app.scene.boxes.get(g.parent[a.node]);
        if (p && (a.x < p.x || a.y < p.y + 20 || a.x + a.width > p.x + p.width + 0.5 || a.y + a.height > p.y + p.height + 0.5)) bad.push(g.labelOf(a.node) + " leaves " + g.labelOf(p.node));
        for (const b of boxes) if (a.node < b.node && g.parent[a.node] === g.parent[b.node] && a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height) bad.push(g.labelOf(a.node) + " covers " + g.labelOf(b.node));
      }
      const near = (p, box) => p[0] >= box.x - 1 && p[0] <= box.x + box.width + 1 && p[1] >= box.y - 1 && p[1] <= box.y + box.height + 1;
      for (const e of app.scene.edges) if (e.routed && !(near(e.points[0], app.scene.boxes.get(e.from)) && near(e.points.at(-1), app.scene.boxes.get(e.to)))) bad.push("edge " + g.labelOf(e.from) + " to " + g.labelOf(e.to));
      return bad;`);
    assert.deepEqual(wrong, []);
  });
  await test("something is drawn", async () => {
    assert.ok(await page.$eval(".stage canvas", (canvas) => {
      const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      const colors = new Set();
      for (let at = 0; at < data.length; at += 64) colors.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
      return colors.size > 10;
    }));
  });
  await test("tuple elements are in the lines, with their indices and bytes", async () => {
    const elements = 'return [...app.scene.boxes.keys()].filter((node) => node < g.size && g.opcodeOf(node) === "get-tuple-element").map((node) => g.names[node]).sort()';
    const lines = "return app.scene.edges.map((e) => [g.labelOf(e.from), g.labelOf(e.to), g.placesIn(e.bundle), e.bundle.count, e.bundle.bytes]).sort()";
    await open("tuples");
    // What nothing reads and the result keep their boxes.
    assert.deepEqual(await run(elements), ["first", "unused"]);
    assert.deepEqual(await run(lines), [["join", "first", [], 1, 64], ["p", "join", ["1"], 1, 32], ["p", "sum", ["0.1"], 2, 16], ["p", "unused", ["0"], 1, 24], ["sum", "join", [], 1, 16]]);
    const labels = (await drawn()).map(([text]) => text);
    for (const label of ["[1] 32.0 B", "[0.1] 16.0 B"]) assert.ok(labels.includes(label), `${label}: ${labels.join("; ")}`);
    const [svg] = await Promise.all([page.waitForEvent("download"), page.click("button:text-is('SVG')")]);
    assert.match(readFileSync(await svg.path(), "utf8"), />\[0\.1\] 16\.0 B</);
    await page.check("#elements");
    await page.waitForFunction(() => hloView.elements && hloView.scene.boxes.size > 8);
    assert.deepEqual(await run(elements), ["again", "eight", "first", "four", "inner", "unused"]);
    assert.ok((await run(lines)).some(([from, to]) => from === "eight" && to === "join"));
    // The address says so too.
    const address = await page.evaluate(() => location.hash);
    await open("tuples", address);
    assert.ok(await page.isChecked("#elements"));
    assert.equal((await run(elements)).length, 6);
    await page.uncheck("#elements");
    await page.waitForFunction(() => !hloView.elements && hloView.scene.boxes.size < 8);
  });
  await test("tuple elements are found, selected and walked through without a box", async () => {
    await open("program");
    await page.fill("#search", "opcode:get-tuple-element");
    assert.deepEqual(await run("return app.hits.map((i) => g.names[i])"), ["k", "v", "k.1", "last"]);
    await page.fill("#search", "/^v$/");
    await page.press("#search", "Enter");
    await page.waitForFunction(() => shadow().querySelector(".panel h2").textContent === "v");
    // Its box is that of the loop's state, which is in view; the line that carries it is the strong one.
    assert.match(await page.textContent(".panel .folded"), /^Element 1 of state, in the lines from it/);
    assert.match(await page.textContent("#status"), /^v, get-tuple-element .*, in the lines from state/);
    assert.deepEqual(await run('return [app.scene.boxes.has(node("v")), app.scene.shownAs(node("v")) === node("state"), app.viewport.marks.current === node("state")]'), [false, true, true]);
    assert.deepEqual(await run('return app.scene.edges.filter((e) => app.viewport.drawing.concerns(e, app.selected)).map((e) => [g.labelOf(e.from), g.labelOf(e.to)])'), [["state", "act.remat"]]);
    await page.fill("#search", "");
    await page.focus("#stage");
    const selected = (name) => page.waitForFunction((n) => hloView.selected >= 0 && hloView.graph.labelOf(hloView.selected) === n, name);
    await page.keyboard.press("ArrowDown");
    await selected("act.remat");
    await page.keyboard.press("ArrowUp");
    await selected("state");
    await run('await app.select(node("loop"))');
    await page.keyboard.press("ArrowDown");
    await selected("result");
    // They are no hops.
    await run('await app.setFilter({ kind: "hops", a: node("loop"), b: 1 })');
    assert.ok(await run('return app.scene.boxes.has(node("result")) && app.scene.edges.some((e) => e.to === node("result") && app.scene.inner(e).some((pair) => pair.from === node("loop")))'));
    await run('await app.setFilter({ kind: "paths", a: node("last"), b: node("result") })');
    assert.ok(await run('return app.scene.boxes.has(node("loop")) && app.scene.boxes.has(node("result"))'));
    await run("await app.setFilter(null); await app.select(g.root)");
  });
  await test("searches find what they say", async () => {
    for (const [query, names] of [["opcode:dot", ["h", "y"]], ["opcode:all-reduce", ["grad"]], ["/^h$/", ["h"]], ["name:/^y$/", ["y"]], ["bytes>20Mi opcode:dot", ["h", "y"]],
      ["opcode:dot -name:h", ["y"]], ["scope:fc2", ["y"]], ["trips=10", ["loop"]], ["shape:pred", ["less"]], ["sharding:devices", ["x", "w1", "result"]], ["nothing_like_it", []]]) {
      await page.fill("#search", query);
      assert.deepEqual(await run("return app.hits.map((i) => g.names[i])"), names, query);
    }
    await page.fill("#search", "bytes>many");
    assert.match(await page.textContent("#found"), /not a number/);
    await page.fill("#search", "/[/");
    assert.match(await page.textContent("#found"), /not a regular expression/);
  });
  await test("next and previous hit select and show them", async () => {
    await run("await app.closeAll()");
    await page.fill("#search", "opcode:add");
    await page.press("#search", "Enter");
    await page.waitForFunction(() => /^1 of/.test(shadow().getElementById("found").textContent));
    const hit = await run("return [app.selected, app.hits[0], app.scene.boxes.has(app.hits[0])]");
    assert.deepEqual([hit[0], hit[2]], [hit[1], true]);
    await page.click("button[title='Previous hit']");
    await page.waitForFunction(() => { const [, k, n] = /^(\d+) of (\d+)/.exec(shadow().getElementById("found").textContent) ?? []; return k && k === n; });
    await page.fill("#search", "");
  });
  await test("what is around the page hears of selections, and selects by name", async () => {
    await page.evaluate(() => { window.heard = []; addEventListener("hlo-select", (event) => window.heard.push(event.detail)); });
    await run('await app.select(node("h"))');
    await page.evaluate(() => { location.hash = "#n=t"; });
    await page.waitForFunction(() => hloView.selected >= 0 && hloView.graph.labelOf(hloView.selected) === "t");
    assert.deepEqual(await page.evaluate(() => window.heard), ["h", "t"]);
    await run("await app.select(g.root, false)");
    assert.equal(await page.evaluate(() => window.heard.length), 2);
  });

  await test("a click shows operands, users, attributes, value, sharding and layout", async () => {
    const at = await run(`await app.select(node("h")); app.viewport.center(app.selected, false);
      const b = app.scene.boxes.get(app.selected), c = app.viewport.camera, r = app.viewport.canvas.getBoundingClientRect();
      return [r.left + (b.x + b.width / 2 - c.x) * c.scale, r.top + (b.y + b.height / 2 - c.y) * c.scale];`);
    await run("await app.select(g.root, false)");
    await page.mouse.click(...at);
    await page.waitForFunction(() => shadow().querySelector(".panel h2").textContent === "h");
    const text = await page.textContent(".panel");
    for (const part of ["lhs_contracting_dims={1}", "Operands (2)", "Users (1)", "step/forward/fc1/dot", "model.py:31"]) assert.ok(text.includes(part), part);
    assert.equal(await page.getAttribute(".panel a.source", "href"), "vscode://file/src/model.py:31");
    await page.click(".panel button.node:text-is('x')");
    await page.waitForFunction(() => shadow().querySelector(".panel h2").textContent === "x");
    assert.match(await page.textContent(".panel"), /dimension 0 \(512\) in 2/);
    assert.match(await page.textContent(".panel"), /fastest to slowest: dimension 1 \(2048\), dimension 0 \(512\); 64 × 16 tiles of 8 × 128/);
    assert.equal(await page.$$eval(".panel svg.tensor", (list) => list.length), 2);
  });
  await test("loops show iterations, collectives their groups", async () => {
    await run('await app.select(node("loop"))');
    assert.match(await page.textContent(".panel dl"), /iterations10/);
    assert.ok((await run('return app.painter.lines(node("loop"))')).some((line) => /10 iterations/.test(line)));
    await run('await app.select(node("grad"))');
    assert.match(await page.textContent(".panel dl"), /groups\{\{0,1\},\{2,3\}\}/);
  });
  await test("neighborhoods and paths show only what belongs to them", async () => {
    const shown = "return g.names.filter((_, i) => !app.scene.only || app.scene.only[i]).sort()";
    await run('await app.setFilter({ kind: "hops", a: node("t"), b: 1 })');
    assert.deepEqual(await run(shown), ["h", "t", "y"]);
    await page.click("div.foot button:text('Show all')");
    await page.waitForFunction(() => !hloView.filter);
    await run('await app.select(node("x"))');
    await page.click(".panel button:text('Paths from here')");
    await run('await app.select(node("y"))');
    await page.click(".panel button:text('to here')");
    await page.waitForFunction(() => hloView.filter);
    assert.deepEqual(await run(shown), ["h", "t", "x", "y"]);
    // Paths go through calls.
    await run('await app.setFilter({ kind: "paths", a: node("y"), b: node("less") })');
    assert.ok((await run(shown)).includes("state.1"));
    await run('await app.setFilter({ kind: "paths", a: node("y"), b: node("x") })');
    assert.match(await page.textContent("#status"), /No path leads from y to x/);
    await run("await app.setFilter(null)");
  });
  await test("the address opens the same view, and the back button works", async () => {
    await run('await app.select(node("h")); await app.setMode("bytes"); await app.select(node("y"));');
    const before = await run("return JSON.stringify({ ...app.state(), camera: null })");
    const address = await page.evaluate(() => location.hash);
    await page.goBack();
    await page.waitForFunction(() => shadow().querySelector(".panel h2").textContent === "h");
    await open("program", address);
    assert.equal(await run("return JSON.stringify({ ...app.state(), camera: null })"), before);
    // What cannot be is left out.
    await open("program", "#o=zzzz.5&s=99999&c=nothing&m=x&f=hops.9999.2&v=1_x_2&q=%");
    assert.equal(await run("return app.selected"), -1);
    await open("program");
  });
  await test("highlights are counted", async () => {
    for (const [mark, names] of [["donated", ["w2"]], ["dead", ["idle"]], ["collective", ["grad"]], ["loop", ["loop"]], ["recomputed", ["act.remat"]]]) {
      await page.selectOption("#mark", mark);
      assert.deepEqual(await run("return app.hits.map((i) => g.names[i])"), names, mark);
    }
    await page.selectOption("#mark", "");
  });
  await test("each color mode has a legend and readable texts", async () => {
    for (const mode of await page.$$eval("#mode option", (list) => list.map((o) => o.value))) {
      await page.selectOption("#mode", mode);
      await page.waitForFunction((m) => hloView.painter.mode === m, mode);
      await page.waitForFunction(() => shadow().querySelectorAll(".legend .entry").length > 0);
      const least = await run(`
        const light = (hex) => { const c = (at) => { const v = parseInt(hex.slice(at, at + 2), 16) / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }; return 0.2126 * c(1) + 0.7152 * c(3) + 0.0722 * c(5); };
        let least = 99;
        for (let k = 0; k < g.total; ++k) { const p = app.painter.paintOf(k); const [x, y] = [light(p.fill), light(p.ink)].sort((a, b) => b - a); least = Math.min(least, (x + 0.05) / (y + 0.05)); }
        return least;`);
      assert.ok(least >= 4.5, `${mode}: ${least.toFixed(2)}`);
    }
    await page.selectOption("#mode", "family");
  });
  await test("tensors are colored by the devices that hold them", async () => {
    await page.selectOption("#mode", "device");
    await page.waitForFunction(() => hloView.painter.mode === "device");
    const rows = await page.$$eval(".legend .entry", (list) => list.map((entry) => entry.textContent.replace(/ \(\d+\)$/, "")));
    for (const text of ["2 parts on devices 0–3, each on 2", "4 parts on devices 0–3", "whole on device 2", "a copy on every device", "a tuple, in up to 4 parts", "not said"]) assert.ok(rows.includes(text), `${text}: ${rows.join("; ")}`);
    const fills = await run('return ["x", "w1", "w2", "h", "t"].map((name) => app.painter.paintOf(node(name)).fill)');
    assert.equal(new Set(fills).size, 5, fills.join());
    await page.selectOption("#mode", "family");
  });
  await test("groups in view are laid out before they are opened", async () => {
    await open("step");
    await page.waitForFunction(() => { const app = hloView; return app.viewport.closedGroups(60).length > 5 && app.viewport.closedGroups(60).every((node) => app.scene.isLaidOut(node)); });
    await open("program");
  });
  await test("the keyboard moves, opens and closes", async () => {
    await run('await app.closeAll(); await app.select(node("t"));');
    await page.focus("#stage");
    const selected = (name) => page.waitForFunction((n) => hloView.selected >= 0 && hloView.graph.labelOf(hloView.selected) === n, name);
    await page.keyboard.press("ArrowUp");
    await selected("h");
    await page.keyboard.press("ArrowDown");
    await selected("t");
    await run('await app.select(node("loop"))');
    const open = await run('return app.isOpen(node("loop"))');
    await page.keyboard.press("Enter");
    await page.waitForFunction((was) => hloView.isOpen(hloView.selected) !== was, open);
    if (open) await page.keyboard.press("Enter");
    await page.waitForFunction(() => hloView.isOpen(hloView.selected));
    await page.keyboard.press("]");
    await page.waitForFunction(() => hloView.graph.parent[hloView.selected] >= 0 && hloView.graph.labelOf(hloView.graph.parent[hloView.selected]) === "loop");
    await page.keyboard.press("Backspace");
    await selected("loop");
    assert.match(await page.textContent("#status"), /^loop, while .* 10|^loop, while/);
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => shadow().activeElement.id), "search");
    await page.focus("#stage");
    await page.keyboard.press("?");
    assert.ok(await page.isVisible("dialog"));
    assert.deepEqual(await violations(page, axe), []);
    await page.keyboard.press("Escape");
  });
  await test("the wheel zooms at the pointer, dragging moves, the minimap jumps", async () => {
    await run("app.viewport.fit(g.root, false)");
    const box = await page.locator(".stage canvas").first().boundingBox();
    const under = () => run(`const c = app.viewport.camera; return [c.x + 300 / c.scale, c.y + 200 / c.scale, c.scale]`);
    const before = await under();
    await page.mouse.move(box.x + 300, box.y + 200);
    await page.mouse.wheel(0, -300);
    await page.waitForFunction((scale) => hloView.viewport.camera.scale > scale * 1.2, before[2]);
    const after = await under();
    assert.ok(Math.abs(after[0] - before[0]) < 1 && Math.abs(after[1] - before[1]) < 1);
    await page.mouse.down();
    await page.mouse.move(box.x + 360, box.y + 240);
    await page.mouse.up();
    const moved = await under();
    assert.ok(Math.abs((before[0] - moved[0]) * moved[2] - 60) < 2);
    const map = await page.locator(".minimap").boundingBox();
    await page.mouse.click(map.x + 3, map.y + 3);
    const center = await run("const c = app.viewport.camera; return [c.x + app.viewport.width / 2 / c.scale, c.y + app.viewport.height / 2 / c.scale]");
    assert.ok(center[0] < 100 && center[1] < 100, String(center));
  });
  await test("SVG and PNG are saved", async () => {
    const [svg] = await Promise.all([page.waitForEvent("download"), page.click("button:text-is('SVG')")]);
    const text = readFileSync(await svg.path(), "utf8");
    assert.match(text, /^<svg xmlns/);
    assert.ok(text.includes("&lt;/script&gt;"), "names are escaped");
    const [png] = await Promise.all([page.waitForEvent("download"), page.click("button:text-is('PNG')")]);
    assert.equal(readFileSync(await png.path()).subarray(1, 4).toString(), "PNG");
  });
  await test("names from the program stay text", async () => {
    await run('await app.select(node("h"))');
    assert.equal(await page.$(".panel b, .crumbs b"), null);
  });
  await test("axe-core finds nothing, in both color schemes", async () => {
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      assert.deepEqual(await violations(page, axe), [], colorScheme);
    }
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  });
  await test("simulated times are shown", async () => {
    tool("program", "--device=v5e:2x2");
    await open("program");
    assert.equal(await run("return app.painter.mode"), "time");
    assert.ok((await run("return g.time[g.root]")) > 1);
    assert.match(await page.textContent(".panel dl"), /simulated onv5e:2x2/);
  });
  await test("the scale of times ends at the longest kernel, also if it is a fusion", async () => {
    execFileSync(join(flags.bin, "hlo-view"), [fileURLToPath(new URL("../../examples/decoder_layer.hlo", import.meta.url)), "-o", join(scratch, "decoder.html"), "--device=v5e"]);
    await open("decoder");
    const longest = "let longest = 0; for (let i = 0; i < g.size; ++i) if (g.time[i] > g.time[longest]) longest = i;";
    assert.deepEqual(await run(`${longest} return [g.opcodeOf(longest), g.hasChildren(longest), app.painter.paintOf(longest).fill]`), ["fusion", true, "#fde725"]);
    // Others have colors of their own; the legend says that groups are measured by the whole.
    const [root, largest, others] = await run(`${longest} return [g.time[g.root], g.time[longest], [...app.scene.boxes.keys()].filter((node) => node !== longest && g.time[node] > 0 && node < g.size).map((node) => app.painter.paintOf(node).fill)]`);
    assert.ok(new Set(others).size > 3, others.join());
    const legend = await page.textContent(".legend");
    assert.match(legend, /^0.*\(an instruction\) or .*\(a group\)$/);
    assert.ok(largest < 0.5 * root && legend.includes(`${(largest).toFixed(0)} µs (an instruction)`), `${legend}, ${largest}`);
  });
  await test("two modules are compared", async () => {
    writeFileSync(join(scratch, "after.hlo"), program.replace("tanh(h)", "exponential(h)").replace("f32[512,2048] negate(y)", "f32[512,2048] abs(y)"));
    const done = spawnSync(join(flags.bin, "hlo-diff"), [`--html=${join(scratch, "diff.html")}`, join(scratch, "program.hlo"), join(scratch, "after.hlo")]);
    assert.equal(done.status, 1);
    await open("diff");
    assert.equal(await page.inputValue("#which"), "1");
    await page.selectOption("#mark", "changed");
    assert.deepEqual(await run("return app.hits.map((i) => g.names[i]).sort()"), ["idle", "t"]);
    await run('await app.select(node("t"))');
    assert.match(await page.textContent(".panel"), /opcode: tanh vs exponential/);
    await page.selectOption("#which", "0");
    await page.waitForFunction(() => hloView.current === 0 && shadow().querySelector(".panel h2").textContent === "t");
    assert.match(await page.textContent(".panel"), /tanh/);
    await page.check("#both");
    const beside = () => page.waitForFunction(() => /^(before|after)$/.test(shadow().querySelector(".which").textContent));
    await beside();
    assert.equal(await page.textContent(".which"), "after");
    assert.ok(await page.isVisible(".beside canvas"));
    assert.deepEqual(await violations(page, axe), []);
  });
  await test("boxes and a message are there before the layout is", async () => {
    const html = readFileSync(join(scratch, "program.html"), "utf8");
    assert.ok(html.indexOf('<div id="page"><p class="waiting">Reading the graph') > 0, "nothing before the script has run");
    const early = await context.newPage();
    // A layout that never ends.
    await early.addInitScript(() => { window.Worker = class { postMessage() {} terminate() {} }; });
    await early.goto(pathToFileURL(join(scratch, "program.html")).href);
    await early.waitForFunction(() => globalThis.hloView?.viewport.frames > 0 && texts.length > 5);
    assert.match(await early.textContent(".waiting"), /^Laying out \d+ instructions/);
    const shown = await early.evaluate(() => texts.map(([text]) => text));
    for (const text of ["x", "▸ loop"]) assert.ok(shown.includes(text), `${text}: ${shown.join("; ")}`);
    await early.close();
    assert.equal(await page.$(".waiting"), null);
    // Without scripts the page says that, and does not say that it waits for something.
    const plain = await browser.newPage({ javaScriptEnabled: false });
    await plain.goto(pathToFileURL(join(scratch, "program.html")).href);
    assert.ok(!(await plain.isVisible(".waiting")));
    await plain.close();
  });
  await test("a browser without what the page needs is told so", async () => {
    const old = await browser.newPage();
    await old.addInitScript(() => { delete window.DecompressionStream; });
    await old.goto(pathToFileURL(join(scratch, "program.html")).href);
    await old.waitForSelector("[role=alert]");
    assert.match(await old.textContent("[role=alert]"), /too old: it has no DecompressionStream/);
    await old.close();
  });
  await test("its policy lets it load nothing", async () => {
    const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute("content");
    assert.match(policy, /^default-src 'none';/);
    assert.doesNotMatch(policy, /connect-src|https?:|\*/);
  });
  await test("no errors, and nothing asked of the network", () => {
    assert.deepEqual(errors, []);
    assert.deepEqual(requests.filter((url) => !/^(file|data|blob|about):/.test(url)), []);
  });
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
}
tests.finish();

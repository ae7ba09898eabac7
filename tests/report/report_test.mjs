// SPDX-License-Identifier: Apache-2.0
// The page of hlo-run --report in a real browser: it draws, answers, and asks nothing of the network.
//
//   node report_test.mjs --bin=FOLDER --page=FOLDER     FOLDER/hlo-run; where npm put playwright-core
//
// Exit code 77, with a line that says why, where there is no Chromium or no page was built.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Tests, drawAll, flags, launch, violations } from "./browser.mjs";

// Two devices, a loop, a collective, scopes, source lines, a name that would break careless HTML.
const program = `HloModule two_layers, replica_count=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[512,2048] parameter(0)
  w1 = f32[2048,2048] parameter(1)
  w2 = f32[2048,2048] parameter(2)
  h = f32[512,2048] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}, metadata={op_name="step/forward/fc1</script><b>/dot" source_file="/src/model.py" source_line=31}
  t = f32[512,2048] tanh(h), metadata={op_name="step/forward/act/tanh" source_file="/src/model.py" source_line=32}
  y = f32[512,2048] dot(t, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="step/forward/fc2/dot" source_file="/src/model.py" source_line=33}
  g1 = f32[2048,2048] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="step/backward/fc1/dot" source_file="/src/model.py" source_line=40}
  a1 = f32[2048,2048] all-reduce(g1), to_apply=sum, replica_groups={{0,1,2,3}}, metadata={op_name="step/backward/all-reduce"}
  g2 = f32[2048,2048] dot(t, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="step/backward/fc2/dot" source_file="/src/model.py" source_line=41}
  a2 = f32[2048,2048] all-reduce(g2), to_apply=sum, replica_groups={{0,1,2,3}}, metadata={op_name="step/backward/all-reduce"}
  u1 = f32[2048,2048] subtract(w1, a1), metadata={op_name="step/optimizer/sub"}
  u2 = f32[2048,2048] subtract(w2, a2), metadata={op_name="step/optimizer/sub"}
  ROOT out = (f32[2048,2048], f32[2048,2048]) tuple(u1, u2)
}
`;

const scratch = mkdtempSync(join(tmpdir(), "hlokit-report-"));
const tests = new Tests();
const test = (name, body) => tests.run(name, body);
const { browser, axe } = await launch();

try {
  const module = join(scratch, "module.hlo");
  writeFileSync(module, program);
  const folder = join(scratch, "report");
  execFileSync(join(flags.bin, "hlo-run"), [module, "--device=v5e:2x2", "--timing-only", `--report=${folder}`, "--report-output=/dev/null",
    "--host=steps=8,trace=1ms,compile=400ms,transfer=4MB,input=2ms,fetch_every=1,fetch=200us"]);
  const report = JSON.parse(readFileSync(join(folder, "report.json"), "utf8"));

  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const errors = [];
  const requests = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(pathToFileURL(join(folder, "index.html")).href);
  await page.waitForFunction(() => document.body.dataset.ready);

  await test("the JSON adds up", () => {
    const parts = report.breakdown.filter((part) => part.kind !== "idle").reduce((sum, part) => sum + part.time_us, 0);
    assert.ok(Math.abs(parts - report.device_time_us) < 1e-6 * report.device_time_us, `${parts} of ${report.device_time_us}`);
    const idle = report.breakdown.filter((part) => part.kind === "idle").reduce((sum, part) => sum + part.time_us, 0);
    assert.ok(Math.abs(parts + idle - report.step_time_us) < 1e-6 * report.step_time_us);
    for (const gap of report.gaps.list) {
      const sum = gap.parts.reduce((total, part) => total + part.time_us, 0);
      assert.ok(Math.abs(sum - gap.time_us) < 1e-6 * gap.time_us);
    }
  });
  await test("every gain was simulated and is one", () => {
    assert.ok(report.recommendations.length >= 2);
    for (const advice of report.recommendations) {
      const less = advice.peak_bytes_before ? advice.peak_bytes_after < advice.peak_bytes_before : advice.after_us < advice.before_us;
      assert.ok(less && advice.simulated && advice.evidence, advice.title);
    }
    assert.ok(report.recommendations.some((advice) => advice.title.includes("bf16 pass")));
    assert.ok(report.recommendations.some((advice) => advice.title.includes("Record the step once")));
  });
  await test("the page has all sections, in order", async () => {
    const heads = await page.$$eval("main h2", (list) => list.map((head) => head.textContent));
    assert.deepEqual(heads, ["Where the time goes", "Recommendations", "The host and the gaps on the device", "One step on the device",
      "Roofline", "Operations", "Scopes", "Memory", "Between devices", "Why", "Limits of the estimate"]);
    assert.match(await page.textContent("h1"), /two_layers/);
  });
  await test("the gaps say what fills them", async () => {
    const text = await page.textContent("#host");
    assert.match(text, /compile/);
    assert.match(text, /IR generation/);
    assert.equal(report.gaps.list[0].filled_by, "compile");
    assert.equal(report.gaps.list[5].filled_by, "IR generation");
  });
  await test("the picture of the host begins where the steps go steadily", async () => {
    // The compilation takes nearly all of the run.
    assert.match(await page.textContent("#host > p.lead"), /begins at the steady state/);
  });
  await test("the section in view is the current one", async () => {
    const current = () => page.$$eval("nav a[aria-current]", (list) => list.map((link) => link.textContent));
    await page.evaluate(() => document.getElementById("memory").scrollIntoView());
    await page.waitForFunction(() => document.querySelector("nav a[aria-current]")?.textContent === "Memory");
    await page.evaluate(() => scrollTo(0, 0));
    await page.waitForFunction(() => document.querySelector("nav a[aria-current]")?.textContent !== "Memory");
    assert.ok((await current()).length <= 1);
  });
  await test("charts draw when they come into view", async () => {
    const count = await page.$$eval(".chart", (list) => list.length);
    assert.ok(count >= 5);
    for (const chart of await page.$$(".chart")) {
      await chart.scrollIntoViewIfNeeded();
      await page.waitForFunction((element) => element.dataset.drawn === "yes", chart);
    }
    // Something other than the background is in each.
    const blank = await page.$$eval(".chart canvas", (list) => list.filter((canvas) => {
      const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      return !data.some((value, at) => at % 4 === 3 && value !== 0);
    }).length);
    assert.equal(blank, 0);
  });
  await test("tables sort and find", async () => {
    const first = () => page.textContent("#operations tbody tr:first-child td:first-child");
    const longest = [...report.ops].sort((a, b) => b.time_us - a.time_us)[0].name;
    assert.equal(await first(), longest);
    await page.click("#operations th button:text('operation')");
    assert.equal(await first(), [...report.ops].map((op) => op.name).sort()[0]);
    await page.fill("#operations input[type=search]", "forward/fc2");
    assert.equal(await page.$$eval("#operations tbody tr", (rows) => rows.length), 1);
    await page.fill("#operations input[type=search]", "");
  });
  await test("source lines open the editor that was chosen", async () => {
    const href = () => page.getAttribute("a.source[data-source='/src/model.py:31']", "href");
    assert.equal(await href(), "vscode://file/src/model.py:31");
    await page.selectOption("#editor", "idea");
    assert.equal(await href(), "idea://open?file=%2Fsrc%2Fmodel.py&line=31");
  });
  await test("tabs answer to the keyboard", async () => {
    await page.focus("#operations [role=tab]:first-child");
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.getAttribute("#operations [role=tab]:nth-child(2)", "aria-selected"), "true");
    await page.keyboard.press("ArrowLeft");
    assert.equal(await page.getAttribute("#operations [role=tab]:nth-child(1)", "aria-selected"), "true");
  });
  await test("names from the program stay text", async () => {
    assert.equal(await page.$("#scopes b, #operations b"), null);
    assert.match(await page.textContent("#operations"), /fc1<\/script><b>/);
  });
  await test("everything has a name for a screen reader", async () => {
    const nameless = await page.evaluate(() => {
      const name = (e) => e.getAttribute("aria-label") || e.textContent.trim() || e.getAttribute("title") || (e.id && document.querySelector(`label[for="${e.id}"]`)?.textContent);
      return [...document.querySelectorAll("a[href], button, input, select, [role=img], [role=region], [role=tablist]")].filter((e) => !name(e)).map((e) => e.outerHTML.slice(0, 120));
    });
    assert.deepEqual(nameless, []);
    assert.equal(await page.evaluate(() => document.documentElement.lang), "en");
    assert.equal(await page.$$eval("h1", (list) => list.length), 1);
  });
  await test("axe-core finds nothing", async () => {
    assert.deepEqual(await violations(page, axe), []);
  });
  await test("the graph is read when it is first shown, in place of the sections", async () => {
    assert.equal(await page.evaluate(() => document.getElementById("graph-data") !== null && !("hloView" in window)), true);
    await page.evaluate(() => document.getElementById("memory").scrollIntoView());
    await page.click("nav a:text-is('Graph')");
    await page.waitForSelector("#graph .host[data-ready]");
    assert.equal(await page.evaluate(() => document.getElementById("graph-data")), null);
    assert.ok(!(await page.isVisible("#memory")) && !(await page.isVisible("header.top")) && (await page.isVisible("#graph #stage")));
    assert.deepEqual(await page.$$eval("nav[aria-label=Sections] a[aria-current]", (list) => list.map((link) => link.textContent)), ["Graph"]);
    const parts = report.ops.reduce((sum, op) => sum + op.time_us, 0);
    const total = await page.evaluate(() => hloView.graph.time[hloView.graph.root]);
    assert.ok(Math.abs(total - parts) < 0.02 * parts, `${total} of ${parts}`);
    assert.equal(await page.evaluate(() => hloView.painter.mode), "time");
    const size = await page.evaluate(() => { const { width, height } = document.querySelector("#graph .host").getBoundingClientRect(); return [width, height, document.documentElement.scrollHeight]; });
    assert.ok(size[0] === 1280 && size[1] > 800 && size[2] <= 900, size.join());
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await violations(page, axe), [], colorScheme);
    }
    await page.emulateMedia({ colorScheme: "light" });
  });
  await test("the address has the state of the graph, and goes between it and the report", async () => {
    await page.evaluate(async () => { const app = hloView; await app.select(app.graph.names.indexOf("x")); await app.setMode("bytes"); });
    const address = await page.evaluate(() => location.hash);
    assert.match(address, /^#graph&.*c=bytes/);
    await page.click("nav a:text-is('Memory')");
    await page.waitForFunction(() => !document.body.classList.contains("graph"));
    assert.ok(await page.evaluate(() => { const { top, bottom } = document.getElementById("memory").getBoundingClientRect(); return bottom > 0 && top < innerHeight; }));
    await page.goBack();
    await page.waitForFunction(() => document.body.classList.contains("graph"));
    assert.equal(await page.evaluate(() => location.hash), address);
    await page.goBack();
    await page.waitForFunction(() => hloView.painter.mode === "time");
    // A link opens the same view.
    const other = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    await other.goto(pathToFileURL(join(folder, "index.html")).href + address);
    await other.waitForSelector("#graph .host[data-ready]");
    assert.deepEqual(await other.evaluate(() => [hloView.painter.mode, hloView.graph.names[hloView.selected]]), ["bytes", "x"]);
    await other.close();
  });
  await test("operations lead to the graph, and the keyboard moves there", async () => {
    await page.click("nav a:text-is('Operations')");
    const name = await page.textContent("#operations tbody tr:first-child td:first-child a");
    await page.click("#operations tbody tr:first-child td:first-child a");
    await page.waitForFunction((wanted) => hloView.graph.names[hloView.selected] === wanted, name);
    assert.equal(await page.textContent("#graph .panel h2"), name);
    await page.focus("#graph #stage");
    await page.keyboard.press("ArrowUp");
    await page.waitForFunction((wanted) => hloView.graph.names[hloView.selected] !== wanted, name);
    await page.goBack();
    await page.goBack();
    await page.goBack();
    await page.waitForFunction(() => !document.body.classList.contains("graph"));
    await page.evaluate(() => { location.hash = ""; });
  });
  await test("the timeline shows the chosen step, window and search", async () => {
    await page.selectOption("#choice-step", "3");
    const step = report.host.activities.find((a) => a[0] === "device" && a[2] === 3);
    const from = await page.inputValue("#device input.instant >> nth=0");
    assert.ok(Math.abs(parseFloat(from) * 1000 - step[3]) < 1e-3 * step[3], from);
    await page.fill("#device input[type=search] >> nth=0", "matmul");
    assert.match(await page.textContent("#device .tools [role=status]"), /[1-9]\d* found/);
    await page.click("#device .tools button:text('Next')");
    assert.match(await page.textContent("#device .tools [role=status]"), /1 of/);
    await page.fill("#device input.instant >> nth=0", "0");
    await page.fill("#device input.instant >> nth=1", "0.1 ms");
    await page.keyboard.press("Tab");
    assert.match(await page.inputValue("#device input.instant >> nth=1"), /^100 µs|^0.1 ms/);
  });
  await test("what runs beside the core stands apart in every table, and the rest adds up to at most the whole", async () => {
    for (const tab of ["Each", "Category", "Source line", "Bound by"]) {
      await page.click(`#operations [role=tab]:text-is('${tab}')`);
      const { heads, rows } = await page.$eval("#operations [role=tabpanel]:not([hidden]) table", (element) => ({
        heads: [...element.querySelectorAll("thead th")].map((head) => head.textContent.trim()),
        rows: [...element.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent)),
      }));
      const part = heads.indexOf("of the device");
      const percents = (list) => list.map((row) => parseFloat(row[part].replace("< ", ""))).reduce((a, b) => a + b, 0);
      const beside = rows.filter((row) => row[0].endsWith(", beside the core") || row[1].endsWith(", beside the core"));
      const core = rows.filter((row) => !beside.includes(row));
      assert.ok(rows.length > 2 && percents(core) > 5 && percents(core) <= 100.5, `${tab}: ${percents(core)} %`);
      if (tab === "Source line") assert.ok(heads.includes("beside the core"), heads.join());
      else assert.ok(percents(beside) > 50 && percents(core) < 50, `${tab}: ${percents(beside)} % beside the core`);
    }
    await page.click("#operations [role=tab]:text-is('Each')");
    // The operations and stalls of the core are the device time, by operation and by category.
    const sums = report.checks.filter((check) => /on the core, and its stalls/.test(check.what));
    assert.equal(sums.length, 2);
    for (const { parts_us: parts, whole_us: whole } of sums) assert.ok(whole === report.device_time_us && Math.abs(parts - whole) < 1e-6 * whole, `${parts} of ${whole}`);
    assert.deepEqual(report.missing, []);
  });
  await test("no scope has more than the whole step", async () => {
    const core = report.scopes.reduce((sum, scope) => sum + scope.time_us, 0);
    assert.ok(core <= report.device_time_us * (1 + 1e-9));
    const parts = await page.$$eval("#scopes tbody tr td:nth-child(3)", (cells) => cells.map((cell) => parseFloat(cell.textContent.replace("< ", ""))));
    assert.ok(parts.length > 3 && parts.every((part) => part <= 100));
  });
  await test("memory is shown over the whole step, by operation, scope and source line", async () => {
    const points = report.memory.timeline;
    assert.equal(points[0][0], 0);
    assert.ok(Math.abs(points.at(-1)[0] - report.device_time_us) < 1e-3);
    assert.equal(Math.max(...points.map((point) => point[1])), report.memory.peak_bytes);
    for (const [tab, heads] of [["Operations", ["allocation", "self", "size increase"]], ["By scope", ["allocation"]], ["By source line", ["allocation"]], ["Ways to fit", []]]) {
      await page.click(`#memory [role=tab]:text-is('${tab}')`);
      const text = await page.textContent("#memory [role=tabpanel]");
      for (const head of heads) assert.ok(text.includes(head), `${tab}: ${head}`);
    }
  });
  await test("flags that are named are those of the tool", async () => {
    const text = await page.evaluate(() => document.querySelector("main").innerText);
    const shown = [...text.matchAll(/--[a-z][a-z-]+/g)].map((match) => match[0]);
    assert.ok(shown.length > 0);
    assert.deepEqual(shown.filter((flag) => !report.flags.includes(flag)), []);
  });
  await test("categories and greys can be told apart in both colour schemes", async () => {
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      const near = await page.evaluate(() => {
        const style = getComputedStyle(document.documentElement);
        const lab = (name) => {
          const hex = style.getPropertyValue(`--${name}`).trim();
          const [r, g, b] = [1, 3, 5].map((at) => { const c = parseInt(hex.slice(at, at + 2), 16) / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
          const f = (t) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
          const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505), y = f(0.2126 * r + 0.7152 * g + 0.0722 * b), z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
          return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
        };
        const names = ["matmul", "convolution", "elementwise", "reduction", "movement", "update", "copy", "sort", "custom", "host", "all-reduce", "all-gather", "reduce-scatter",
          "all-to-all", "permute", "straggler", "overhead", "scalar", "wait", "control", "unknown"];
        const close = [];
        for (let a = 0; a < names.length; ++a) {
          for (let b = 0; b < a; ++b) {
            const distance = Math.hypot(...lab(names[a]).map((v, k) => v - lab(names[b])[k]));
            if (distance < 14) close.push(`${names[a]} and ${names[b]}: ${distance.toFixed(1)}`);
          }
        }
        return close;
      });
      assert.deepEqual(near, [], colorScheme);
    }
    await page.emulateMedia({ colorScheme: "light" });
  });
  await test("two reports are shown side by side", async () => {
    const before = join(scratch, "before");
    execFileSync(join(flags.bin, "hlo-run"), [module, "--device=v5e:2x2", "--timing-only", `--report=${before}`, "--report-output=/dev/null", "--straggler=2:2"]);
    const both = join(scratch, "both");
    const text = execFileSync(join(flags.bin, "hlo-profile"), ["compare", before, folder, `--report=${both}`], { encoding: "utf8" });
    assert.match(text, /step time/);
    const other = await browser.newPage();
    await other.goto(pathToFileURL(join(both, "index.html")).href);
    await other.waitForFunction(() => document.body.dataset.ready);
    assert.match(await other.textContent("#parts"), /waiting for slower devices/);
    assert.equal(await other.$("nav a:text-is('Graph')"), null);
    assert.deepEqual(await violations(other, axe), []);
    // A report reads another one itself.
    await other.goto(pathToFileURL(join(folder, "index.html")).href);
    await other.waitForFunction(() => document.body.dataset.ready);
    await other.setInputFiles("#other", join(before, "report.json"));
    await other.waitForSelector("#both");
    await other.click("button:text('Back to the report')");
    await other.waitForSelector("#roofline");
    await other.close();
  });
  await test("all devices of a run with a slow one are shown", async () => {
    const other = await browser.newPage();
    const slow = JSON.parse(readFileSync(join(scratch, "before/report.json"), "utf8"));
    assert.deepEqual(slow.timeline.devices.map((d) => d.straggler), [false, false, true, false]);
    await other.goto(pathToFileURL(join(scratch, "before/index.html")).href);
    await other.waitForFunction(() => document.body.dataset.ready);
    assert.deepEqual(await other.$$eval("#choice-device option", (list) => list.map((o) => o.textContent)), ["all", "0", "1", "2 (slow)", "3"]);
    await drawAll(other);
    await other.close();
  });
  await test("a traced program has its graphs, threads and uncertainty, and sums that add up", async () => {
    const traced = join(scratch, "traced");
    execFileSync(join(flags.bin, "ir-dump"), ["--model=mlp", "--batch=64", "--hidden=32", "--devices=4", "--steps=4", "--device=v3:2x2",
      "--straggler=2:1.5", `--report=${traced}`]);
    const other = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    other.on("pageerror", (error) => errors.push(error.message));
    await other.goto(pathToFileURL(join(traced, "index.html")).href);
    await other.waitForFunction(() => document.body.dataset.ready);
    assert.match(await other.textContent("#figures"), /± [0-9.]+ %/);
    assert.match(await other.textContent("#time"), /SyncTensorsGraph\.2/);
    await other.click("text=Utilization");
    assert.match(await other.textContent("#device"), /matrix unit busy.*HBM bandwidth of peak/);
    await other.click("text=Threads (8)");
    assert.match(await other.textContent("#host"), /Slow: replica 2, TPU:2 runtime/);
    assert.equal(await other.$$eval("#choice-thread option", (list) => list.length), 10);
    assert.match(await other.textContent("#unmodeled"), /Yes: each of these sums is its whole/);
    await drawAll(other);
    // Each program has its graph, that of the report first.
    await other.click("nav a:text-is('Graph')");
    await other.waitForSelector("#graph .host[data-ready]");
    const made = JSON.parse(readFileSync(join(traced, "report.json"), "utf8"));
    assert.equal(await other.evaluate(() => hloView.graph.module), made.module);
    assert.deepEqual((await other.$$eval("#which option", (list) => list.map((o) => o.textContent))).sort(), made.graphs.map((graph) => graph.module).sort());
    await other.selectOption("#which", "1");
    await other.waitForFunction(() => hloView.current === 1 && document.querySelector("#graph .host").shadowRoot.querySelector("h1").textContent === hloView.graph.module);
    await other.click("nav a:text-is('Time')");
    await other.waitForFunction(() => !document.body.classList.contains("graph"));
    assert.deepEqual(await violations(other, axe), []);
    await other.close();
  });
  await test("text can be read in both colour schemes", async () => {
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      const least = await page.evaluate(() => {
        const style = getComputedStyle(document.documentElement);
        const light = (name) => {
          const hex = style.getPropertyValue(name).trim();
          const channel = (at) => { const c = parseInt(hex.slice(at, at + 2), 16) / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
          return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
        };
        const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
        return Math.min(...["--text", "--quiet", "--accent", "--good", "--bad"].flatMap((name) => [contrast(name, "--page"), contrast(name, "--card")]));
      });
      assert.ok(least >= 4.5, `${colorScheme}: ${least.toFixed(2)}`);
    }
  });
  await test("a narrow window needs no scrolling sideways", async () => {
    await page.setViewportSize({ width: 390, height: 800 });
    // Charts take their new size a moment after the window has its.
    await page.waitForFunction(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
  });
  await test("its policy lets it load nothing", async () => {
    const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute("content");
    assert.match(policy, /^default-src 'none';/);
    assert.doesNotMatch(policy, /connect-src|https?:|\*/);
  });
  await test("no errors, and nothing asked of the network", () => {
    assert.deepEqual(errors, []);
    assert.deepEqual(requests.filter((url) => !/^(file|data|blob):/.test(url)), []);
  });
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
}
tests.finish();

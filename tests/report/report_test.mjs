// SPDX-License-Identifier: Apache-2.0
// The page of hlo-run --report in a real browser: it draws, answers, and asks nothing of the network.
//
//   node report_test.mjs --bin=FOLDER --page=FOLDER     FOLDER/hlo-run; where npm put playwright-core
//
// Exit code 77, with a line that says why, where there is no Chromium or no page was built.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const flags = Object.fromEntries(process.argv.slice(2).map((argument) => argument.replace(/^--/, "").split("=", 2)));
const skip = (why) => {
  console.log(`skipped: ${why}`);
  process.exit(77);
};
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
if (!browserPath) skip("no Chromium here (tools/install-deps installs it)");
if (!existsSync(join(flags.page, "node_modules/playwright-core"))) skip("playwright-core is not installed: the build had no npm");
const { chromium } = createRequire(pathToFileURL(join(flags.page, "x.js")))("playwright-core");

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
let browser;
let failed = 0;
let passed = 0;
async function test(name, body) {
  try {
    await body();
    passed += 1;
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${String(error.stack ?? error).replace(/^/gm, "  ")}`);
  }
}

try {
  const module = join(scratch, "module.hlo");
  writeFileSync(module, program);
  const folder = join(scratch, "report");
  execFileSync(join(flags.bin, "hlo-run"), [module, "--device=v5e:2x2", "--timing-only", `--report=${folder}`, "--report-output=/dev/null",
    "--host=steps=8,trace=1ms,compile=400ms,transfer=4MB,input=2ms,fetch_every=1,fetch=200us"]);
  const report = JSON.parse(readFileSync(join(folder, "report.json"), "utf8"));

  // As root Chromium has no sandbox; without the rest it talks to the network on its own account.
  browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
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
      "Roofline", "Operations", "Scopes", "Memory", "Between devices", "Limits of the estimate"]);
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
  await test("no errors, and nothing asked of the network", () => {
    assert.deepEqual(errors, []);
    assert.deepEqual(requests.filter((url) => !url.startsWith("file:") && !url.startsWith("data:")), []);
  });
} finally {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);

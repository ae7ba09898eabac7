// SPDX-License-Identifier: Apache-2.0
// How long the report of a large module takes to open in Chromium: until its sections stand and the charts in view are drawn.
//
//   node bench/report_open.mjs [--bin=build/release/bin] [--page=build/release/web-pages] [--instructions=40000] [--runs=7]
//
// Makes a module of so many instructions with scopes and source lines, none of which fuse away (each layer is products and
// reductions), writes its report, opens it from a file in a fresh browser context each time and prints the median and the
// size, beside an empty page as the peer.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const flags = { bin: "build/release/bin", page: "build/release/web-pages", instructions: "40000", runs: "7" };
for (const argument of process.argv.slice(2)) {
  const [name, value] = argument.replace(/^--/, "").split("=", 2);
  flags[name] = value;
}
const { chromium } = createRequire(pathToFileURL(join(resolve(flags.page), "x.js")))("playwright-core");

function program(instructions) {
  const lines = ["HloModule large", "", "ENTRY main {", "  x0 = f32[512,512] parameter(0)", "  w = f32[512,512] parameter(1)"];
  for (let k = 0; 2 * k + 2 < instructions; ++k) {
    const scope = `jit(step)/jit(main)/block_${Math.floor(k / 500)}/layer_${Math.floor(k / 20)}`;
    const where = `source_file="/src/model/block_${Math.floor(k / 500)}.py" source_line=${(k % 500) + 1}`;
    lines.push(`  d${k + 1} = f32[512,512] dot(x${k}, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="${scope}/dot_general" ${where}}`);
    lines.push(`  x${k + 1} = f32[512,512] sort(d${k + 1}), dimensions={1}, to_apply=less, metadata={op_name="${scope}/sort" ${where}}`);
  }
  lines[lines.length - 1] = lines[lines.length - 1].replace("  x", "  ROOT x");
  lines.splice(1, 0, "less {", "  a = f32[] parameter(0)", "  b = f32[] parameter(1)", "  ROOT c = pred[] compare(a, b), direction=LT", "}", "");
  return `${lines.join("\n")}\n}\n`;
}

const scratch = mkdtempSync(join(tmpdir(), "hlokit-report-open-"));
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-quic",
  "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
try {
  writeFileSync(join(scratch, "large.hlo"), program(Number(flags.instructions)));
  writeFileSync(join(scratch, "empty.html"), "<!doctype html><title>empty</title><body data-ready=yes>");
  const began = Date.now();
  execFileSync(join(flags.bin, "hlo-run"), [join(scratch, "large.hlo"), "--device=v5e", "--timing-only", `--report=${join(scratch, "report")}`, "--report-output=/dev/null"]);
  const wrote = Date.now() - began;
  const open = async (file) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    const page = await context.newPage();
    const start = performance.now();
    await page.goto(pathToFileURL(file).href);
    await page.waitForFunction(() => document.body.dataset.ready && [...document.querySelectorAll(".chart")].every((c) => c.getBoundingClientRect().top > innerHeight || c.dataset.drawn));
    const ms = performance.now() - start;
    await context.close();
    return ms;
  };
  const times = { report: [], empty: [] };
  for (let run = 0; run < Number(flags.runs); ++run) {
    times.empty.push(await open(join(scratch, "empty.html")));
    times.report.push(await open(join(scratch, "report/index.html")));
  }
  const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
  const [report, empty] = [median(times.report), median(times.empty)];
  console.log(`${flags.instructions} instructions, page of ${(statSync(join(scratch, "report/index.html")).size / 1e6).toFixed(1)} MB, written in ${wrote} ms`);
  console.log(`opens in ${report.toFixed(0)} ms (median of ${flags.runs}, ${Math.min(...times.report).toFixed(0)} to ${Math.max(...times.report).toFixed(0)}); an empty page in ${empty.toFixed(0)} ms: ${(report / empty).toFixed(1)} times`);
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
}

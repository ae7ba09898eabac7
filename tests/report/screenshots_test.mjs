// SPDX-License-Identifier: Apache-2.0
// The report page in twelve situations: each section looks as in tests/report/screenshots, and axe-core finds nothing.
//
//   node screenshots_test.mjs --bin=FOLDER --page=FOLDER [--update=yes]    --update writes the pictures
//
// Pictures are compared at a scale at which text is grey: numbers may differ, as the simulator changes, but not what is
// drawn where and in which color.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Tests, differ, drawAll, flags, launch, uri, violations } from "./browser.mjs";

const kept = join(dirname(fileURLToPath(import.meta.url)), "screenshots");
const width = 80;          // of the compared pictures
const maxDifference = 0.08;  // fraction of pixels with another color
const maxHeight = 0.2;     // difference of the heights as a fraction

const layers = (metadata) => {
  const at = (op, line) => (metadata ? `, metadata={op_name="${op}" source_file="/src/model.py" source_line=${line}}` : "");
  return `HloModule two_layers, replica_count=4

sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }

ENTRY main {
  x = f32[512,2048] parameter(0)
  w1 = f32[2048,2048] parameter(1)
  w2 = f32[2048,2048] parameter(2)
  h = f32[512,2048] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}${at("step/forward/fc1/dot", 31)}
  t = f32[512,2048] tanh(h)${at("step/forward/act/tanh", 32)}
  y = f32[512,2048] dot(t, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}${at("step/forward/fc2/dot", 33)}
  g1 = f32[2048,2048] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}${at("step/backward/fc1/dot", 40)}
  a1 = f32[2048,2048] all-reduce(g1), to_apply=sum, replica_groups={{0,1,2,3}}${at("step/backward/all-reduce", 41)}
  g2 = f32[2048,2048] dot(t, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}${at("step/backward/fc2/dot", 42)}
  a2 = f32[2048,2048] all-reduce(g2), to_apply=sum, replica_groups={{0,1,2,3}}${at("step/backward/all-reduce", 43)}
  u1 = f32[2048,2048] subtract(w1, a1)${at("step/optimizer/sub", 50)}
  u2 = f32[2048,2048] subtract(w2, a2)${at("step/optimizer/sub", 51)}
  ROOT out = (f32[2048,2048], f32[2048,2048]) tuple(u1, u2)
}
`;
};
const large = `HloModule large

ENTRY main {
  x = f32[1024,65536] parameter(0)
  w = f32[65536,32768] parameter(1)
  h = f32[1024,32768] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="train/forward/dot"}
  t = f32[1024,32768] tanh(h), metadata={op_name="train/forward/tanh"}
  g = f32[65536,32768] dot(x, t), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="train/backward/dot"}
  ROOT v = f32[65536,32768] subtract(w, g), metadata={op_name="train/optimizer/sub"}
}
`;
const loop = `HloModule looped

cond {
  p = (s32[], f32[1024,1024], f32[8,1024,1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(8)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[1024,1024], f32[8,1024,1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[1024,1024] get-tuple-element(p), index=1
  ws = f32[8,1024,1024] get-tuple-element(p), index=2
  z = s32[] constant(0)
  w3 = f32[1,1024,1024] dynamic-slice(ws, i, z, z), dynamic_slice_sizes={1,1024,1024}
  w = f32[1024,1024] reshape(w3)
  d = f32[1024,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[4096,1024] custom-call(d), custom_call_target="work"
  y = f32[1024,1024] custom-call(s), custom_call_target="work"
  ROOT r = (s32[], f32[1024,1024], f32[8,1024,1024]) tuple(next, y, ws)
}

ENTRY main {
  x = f32[1024,1024] parameter(0)
  ws = f32[8,1024,1024] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[1024,1024], f32[8,1024,1024]) tuple(zero, x, ws)
  l = (s32[], f32[1024,1024], f32[8,1024,1024]) while(init), condition=cond, body=body
  ROOT y = f32[1024,1024] get-tuple-element(l), index=1
}
`;
const named = layers(true);
const four = "--device=v5e:2x2";

// A name, the program, flags, the sections that are compared, and how the page is opened.
const situations = [
  ["training", named, [four], ["time", "roofline", "scopes"]],
  ["straggler", named, [four, "--straggler=2:1.5"], ["device", "devices"]],
  ["too-large", large, ["--device=v5e"], ["figures", "memory"]],
  ["recording", named, [four, "--host=steps=8,trace=3ms,marker=200us"], ["host"]],
  ["input-stall", named, [four, "--host=steps=8,trace=100us,input=20ms,transfer=4MB"], ["host"]],
  ["value-fetch", named, [four, "--host=steps=8,trace=1ms,fetch_every=1,fetch=300us"], ["host"]],
  ["recompiles", named, [four, "--host=steps=8,trace=1ms,compile=9ms,compile_every=2"], ["host"]],
  ["loop", loop, ["--device=v5e"], ["device", "memory"]],
  ["no-metadata", layers(false), [four], ["scopes"]],
  ["one-device", large.replaceAll("65536", "4096").replaceAll("32768", "4096"), ["--device=v5e"], ["devices"]],
  ["dark", named, [four, "--straggler=1:2"], ["time", "device"], { colorScheme: "dark" }],
  ["narrow", named, [four], ["figures", "time"], { viewport: { width: 390, height: 800 } }],
];

const tests = new Tests();
const scratch = mkdtempSync(join(tmpdir(), "hlokit-screenshots-"));
const { browser, axe } = await launch();
try {
  mkdirSync(kept, { recursive: true });
  for (const [name, program, flagged, sections, options] of situations) {
    await tests.run(name, async () => {
      const module = join(scratch, `${name}.hlo`);
      writeFileSync(module, program);
      const folder = join(scratch, name);
      execFileSync(join(flags.bin, "hlo-run"), [module, "--timing-only", `--report=${folder}`, "--report-output=/dev/null", ...flagged]);
      const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
      await page.goto(pathToFileURL(join(folder, "index.html")).href);
      await page.waitForFunction(() => document.body.dataset.ready);
      await drawAll(page);
      await page.addStyleTag({ content: "nav { position: static !important; }" });
      for (const id of sections) {
        const picture = uri(await (await page.$(`#${id}`)).screenshot({ animations: "disabled" }));
        const file = join(kept, `${name}-${id}.png`);
        if (flags.update) {
          const { small } = await differ(page, picture, picture, width);
          writeFileSync(file, Buffer.from(small.split(",")[1], "base64"));
          continue;
        }
        assert.ok(existsSync(file), `${file} is missing: --update=yes writes it`);
        const { part, height } = await differ(page, picture, uri(readFileSync(file)), width);
        assert.ok(part <= maxDifference && height <= maxHeight, `${id}: ${(100 * part).toFixed(1)} % of the pixels differ, the heights by ${height.toFixed(2)}`);
        // The comparison finds a chart that is missing.
        if (id !== "device" || name !== "straggler") continue;
        await page.$$eval("#device .chart", (charts) => charts.forEach((chart) => { chart.style.visibility = "hidden"; }));
        const blank = uri(await (await page.$("#device")).screenshot());
        assert.ok((await differ(page, blank, uri(readFileSync(file)), width)).part > maxDifference, "a missing chart is not found");
        await page.$$eval("#device .chart", (charts) => charts.forEach((chart) => { chart.style.visibility = ""; }));
      }
      assert.deepEqual(await violations(page, axe), []);
      await page.close();
    });
  }
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
}
tests.finish();

// SPDX-License-Identifier: Apache-2.0
// The graphs of a recorded program, whether the parts of the report add up, and the uncertainty of the estimate.
import { h, table } from "../../../common/dom";
import { bytes, count, digits, percent, share, time } from "../../../common/format";
import type { Report } from "../types";

// Returns null where one graph is the whole step.
export function graphs(r: Report): HTMLElement | null {
  if (r.graphs.length < 2) return null;
  const source = r.graphs[0].compile.source;
  return h("div", { class: "card", style: "margin-top:14px" }, h("h3", { style: "margin-top:0" }, `${count(r.graphs.length)} graphs`),
    table("Graphs of the run", [
      { head: "graph", text: true, cell: (g) => h("span", { class: "mono" }, g.module), key: (g) => g.module },
      { head: "runs a step", cell: (g) => digits(g.runs_per_step), key: (g) => g.runs_per_step },
      { head: "once", cell: (g) => time(g.device_time_us), key: (g) => g.device_time_us },
      { head: "a step", cell: (g) => time(g.time_per_step_us), key: (g) => g.time_per_step_us },
      { head: "of the device", cell: (g) => percent(share(g.time_per_step_us, r.device_time_us)), key: (g) => g.time_per_step_us },
      { head: "HBM peak", cell: (g) => h("span", { class: g.fits ? "" : "bad" }, `${bytes(g.peak_bytes)}${g.fits ? "" : ", does not fit"}`), key: (g) => g.peak_bytes },
      { head: "compilation", cell: (g) => time(g.compile.modeled_us), key: (g) => g.compile.modeled_us },
      { head: "compiled here in", cell: (g) => (g.compile.measured_us === undefined ? "" : time(g.compile.measured_us)), key: (g) => g.compile.measured_us ?? 0 },
      { head: "instructions", cell: (g) => count(g.compile.instructions), key: (g) => g.compile.instructions },
      { head: "kernels", cell: (g) => count(g.compile.kernels), key: (g) => g.compile.kernels },
    ], r.graphs, { page: 10, sort: 3 }),
    h("p", { class: "quiet" }, "Runs a step are those of the steady state; others run at the beginning only. Compilation: ", source, "."));
}

export function checks(r: Report): HTMLElement {
  return h("div", {}, h("h3", {}, "Do the parts add up?"),
    r.missing.length
      ? h("ul", {}, ...r.missing.map((m) => h("li", { class: "bad" }, `Missing ${m.what}: ${time(m.time_us)}`)))
      : h("p", {}, "Yes: each of these sums is its whole."),
    table("Sums of parts beside the whole", [
      { head: "sum", text: true, cell: (c) => c.what },
      { head: "parts", cell: (c) => time(c.parts_us), key: (c) => c.parts_us },
      { head: "whole", cell: (c) => time(c.whole_us), key: (c) => c.whole_us },
    ], r.checks));
}

export function uncertainty(r: Report): HTMLElement {
  const u = r.uncertainty;
  return h("div", {}, h("h3", {}, "Uncertainty"),
    h("p", {}, `The device time is ${time(r.device_time_us)} ± ${percent(u.relative)}: ${percent(u.model)} for the model itself, the rest from the parameters that it depends on.`),
    u.figures.length === 0 ? null : table("Parameters with an error", [
      { head: "parameter", text: true, cell: (f) => h("span", { class: "mono" }, f.figure), key: (f) => f.figure },
      { head: "error", cell: (f) => percent(f.error), key: (f) => f.error },
      { head: "time that it scales", cell: (f) => percent(f.time_share), key: (f) => f.time_share },
      { head: "of the device time", cell: (f) => `± ${percent(f.error * f.time_share)}`, key: (f) => f.error * f.time_share },
    ], u.figures, { sort: 3 }));
}

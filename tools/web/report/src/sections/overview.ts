// SPDX-License-Identifier: Apache-2.0
// Summary, key metrics, time breakdown, and recommendations.
import { color, fillOf } from "../../../common/colors";
import { h, table } from "../../../common/dom";
import { bytes, percent, rate, share, time } from "../../../common/format";
import { hasGraph } from "../graph";
import { graphs } from "./graphs";
import type { Report } from "../types";

const boundNames: Record<string, string> = {
  mxu: "the matrix units", vpu: "the vector units", eup: "transcendental functions", xlu: "lane crossings", vmem: "vector memory",
  scalar: "the scalar unit", hbm: "HBM bandwidth", ici: "the links between chips", dcn: "the data-centre network", host: "the host",
  overhead: "the start of kernels",
};
export const boundName = (bound: string) => boundNames[bound] ?? bound;

const used = (some: number, all: number, noun: string) => `${some < all ? `${some} of ` : ""}${all} ${noun}${all === 1 ? "" : "s"}`;

export function header(r: Report): HTMLElement {
  const idle = r.breakdown.filter((s) => s.kind === "idle").reduce((sum, s) => sum + s.time_us, 0);
  const sentences: (string | HTMLElement)[] = [
    "One step takes ", h("b", {}, time(r.step_time_us)), ", bound by ", h("b", {}, boundName(r.bound_by)), ". ",
    `The core works ${percent(share(r.core_busy_us, r.step_time_us))} of it`,
  ];
  if (r.core_stall_us > 0.005 * r.step_time_us) sentences.push(`, stalls ${percent(share(r.core_stall_us, r.step_time_us))}`);
  if (idle > 0.005 * r.step_time_us) sentences.push(`, and is idle ${percent(share(idle, r.step_time_us))} because of the host`);
  sentences.push(". ");
  for (const note of r.notes ?? []) sentences.push(h("b", { class: "bad" }, note), " ");
  if (r.missing.length) sentences.push(h("a", { class: "bad", href: "#unmodeled" }, "The parts do not add up. "));
  for (const g of r.graphs) if (!g.fits && g.module !== r.module) sentences.push(h("b", { class: "bad" }, `${g.module} does not fit: its peak is ${bytes(g.peak_bytes)}. `));
  if (!r.memory.fits) sentences.push(h("b", { class: "bad" }, `It does not fit: ${bytes(r.memory.peak_bytes)} of ${bytes(r.memory.limit_bytes)} HBM. `));
  if (r.unmodeled.length) sentences.push(h("a", { href: "#unmodeled" }, `Unmodeled: ${r.unmodeled.length} item${r.unmodeled.length > 1 ? "s" : ""}.`));
  return h("header", { class: "top" },
    h("h1", {}, r.title),
    h("p", { class: "where" }, r.title === r.module ? "" : `${r.module}, `, `${r.device} ${r.topology}, ${used(r.used_chips, r.chips, "chip")}, ${used(r.used_devices, r.devices, "device")}, simulated`, hasGraph ? h("span", {}, ", ", h("a", { href: "#graph" }, "graph of the module")) : null),
    h("p", { class: "verdict" }, ...sentences),
    r.command ? h("code", {}, r.command) : null);
}

// A part above 1 is over a limit.
function figure(name: string, value: string, of: string, part?: number): HTMLElement {
  const over = part !== undefined && part > 1;
  return h("div", { class: `figure${over ? " over" : ""}` }, h("dt", {}, name),
    h("dd", {}, value, h("span", { class: "of" }, of), over ? h("span", { class: "hidden" }, "over the limit") : null,
      part === undefined ? null : h("span", { class: "meter" }, h("i", { style: `width:${Math.min(100, 100 * part).toFixed(1)}%` }))));
}

export function figures(r: Report): HTMLElement {
  const u = r.utilization;
  return h("dl", { class: "cards", id: "figures" },
    figure("Step", time(r.step_time_us), `bound by ${boundName(r.bound_by)}`),
    figure("On the device", time(r.device_time_us), `± ${percent(r.uncertainty.relative)}`, share(r.device_time_us, r.step_time_us)),
    figure("Duty cycle", percent(u.duty_cycle), "core busy", u.duty_cycle),
    figure("Matrix units", percent(u.mxu_busy), "busy", u.mxu_busy),
    figure("Of peak FLOP/s", percent(u.flops_of_peak), `of ${Math.round(r.peaks.bf16_flops_per_second / 1e12)} T bf16`, u.flops_of_peak),
    figure("HBM", percent(u.hbm_bandwidth_of_peak), `of ${rate(r.peaks.hbm_bytes_per_second)}`, u.hbm_bandwidth_of_peak),
    r.interconnect_bytes > 0 ? figure("Links", percent(u.ici_busy), "busy", u.ici_busy) : null,
    figure("HBM peak", bytes(r.memory.peak_bytes), `${r.memory.fits ? "of" : "over"} ${bytes(r.memory.limit_bytes)}`, share(r.memory.peak_bytes, r.memory.limit_bytes)));
}

export function breakdown(r: Report): HTMLElement {
  const whole = r.breakdown.reduce((sum, s) => sum + s.time_us, 0);
  const colored = r.breakdown.map((s) => ({ ...s, color: fillOf(s.name) }));
  const stack = h("div", { class: "stack", role: "img", "aria-label": "The step as a bar of its parts; the table has the same numbers" },
    ...colored.map((s) => h("i", { style: `width:${(100 * share(s.time_us, whole)).toFixed(3)}%;background:${s.color}`, title: `${s.name}: ${time(s.time_us)}, ${percent(share(s.time_us, whole))}` })));
  const rows = table("Parts of the step", [
    { head: "part", text: true, cell: (s) => h("span", {}, h("i", { class: "chip", style: `background:${s.color}` }), s.name), key: (s) => s.name },
    { head: "kind", text: true, cell: (s) => s.kind, key: (s) => s.kind },
    { head: "time", cell: (s) => time(s.time_us), key: (s) => s.time_us },
    { head: "of the step", cell: (s) => percent(share(s.time_us, whole)), key: (s) => s.time_us },
  ], colored, { page: 12, sort: 2 });
  return h("section", { id: "time", "data-nav": "Time" }, h("h2", {}, "Where the time goes"),
    h("p", { class: "lead" }, "The work of the core by kind, its stalls, and the time in which the host leaves it idle."),
    h("div", { class: "card" }, stack, rows), graphs(r));
}

export function recommendations(r: Report): HTMLElement {
  const section = h("section", { id: "recommendations", "data-nav": "Recommendations" }, h("h2", {}, "Recommendations"),
    h("p", { class: "lead" }, "Each gain is simulated with the program, the target or the host changed as stated."));
  if (!r.recommendations.length) section.append(h("div", { class: "card quiet" }, "No change that was simulated gains 1 %. The table below shows the sensitivity to each resource."));
  section.append(h("ol", { class: "recommendations" }, ...r.recommendations.map((a) => {
    const memory = a.peak_bytes_before !== undefined && a.peak_bytes_after !== undefined;
    const less = (a.peak_bytes_before ?? 0) - (a.peak_bytes_after ?? 0);
    const gain = memory && less <= 0
      ? h("div", { class: "gain" }, h("b", {}, "fits"), `${bytes(a.peak_bytes_after!)}`)
      : memory ? h("div", { class: "gain" }, h("b", {}, `−${bytes(a.peak_bytes_before! - a.peak_bytes_after!)}`), `${bytes(a.peak_bytes_before!)} → ${bytes(a.peak_bytes_after!)}`)
      : h("div", { class: "gain" }, h("b", {}, `${(a.before_us / a.after_us).toFixed(2)}×`), `${time(a.before_us)} → ${time(a.after_us)}`);
    return h("li", {}, h("h3", {}, a.title), h("p", {}, a.evidence, " ", a.action, ...(a.flag ? [" ", h("code", {}, a.flag), " shows it."] : [])), h("p", { class: "quiet" }, "Simulated: ", a.simulated, "."), gain);
  })));
  const next = table("The step with one resource twice as fast", [
    { head: "twice as fast", text: true, cell: (s) => s.resource },
    { head: "step", cell: (s) => time(s.step_time_us), key: (s) => s.step_time_us },
    { head: "gain", cell: (s) => bar(1 - share(s.step_time_us, r.step_time_us)), key: (s) => -s.step_time_us },
    { head: "then bound by", text: true, cell: (s) => boundName(s.bound_by) },
  ], r.sensitivity, { sort: 2 });
  const machines = table("The same program on other targets", [
    { head: "target", text: true, cell: (m) => (m.target === r.device ? h("b", {}, m.target) : m.target), key: (m) => m.target },
    { head: "chips", text: true, cell: (m) => m.topology },
    { head: "step", cell: (m) => time(m.step_time_us), key: (m) => m.step_time_us },
    { head: "speedup", cell: (m) => `${share(r.step_time_us, m.step_time_us).toFixed(2)}×`, key: (m) => -m.step_time_us },
    { head: "fits", text: true, cell: (m) => h("span", { class: m.peak_bytes <= m.limit_bytes ? "good" : "bad" }, m.peak_bytes <= m.limit_bytes ? "yes" : "no") },
    { head: "bound by", text: true, cell: (m) => boundName(m.bound_by) },
  ], r.other_targets);
  section.append(h("div", { class: "columns", style: "margin-top:14px" },
    h("div", { class: "card" }, h("h3", { style: "margin-top:0" }, "What bounds next"), next),
    h("div", { class: "card" }, h("h3", { style: "margin-top:0" }, "On other targets, with as many devices"), machines)));
  return section;
}

export function bar(part: number, hue = color("accent")): HTMLElement {
  return h("span", {}, h("i", { class: "bar", style: `width:${Math.max(0, Math.min(90, 90 * part)).toFixed(1)}px;background:${hue}` }), percent(Math.max(0, part)));
}

// SPDX-License-Identifier: Apache-2.0
// Two reports side by side: what a change did to the step, to its parts, to operations and to memory.
import { fillOf } from "../../common/colors";
import { h, table } from "../../common/dom";
import { bytes, percent, share, time } from "../../common/format";
import type { Report } from "./types";

interface Pair {
  name: string;
  before?: number;
  after?: number;
}

const known = (value: number | undefined, format: (n: number) => string) => (value === undefined ? "–" : format(value));
function change(p: Pair, better: "less" | "more" = "less"): HTMLElement | string {
  if (p.before === undefined) return h("span", { class: "quiet" }, "new");
  if (p.after === undefined) return h("span", { class: "quiet" }, "gone");
  if (p.before === p.after) return "=";
  if (p.before === 0) return "new";
  const ratio = p.after / p.before - 1;
  const good = better === "less" ? ratio < 0 : ratio > 0;
  return h("span", { class: Math.abs(ratio) < 0.001 ? "quiet" : good ? "good" : "bad" }, `${ratio > 0 ? "+" : "−"}${percent(Math.abs(ratio))}`);
}

function pairs(before: [string, number][], after: [string, number][]): Pair[] {
  const found = new Map<string, Pair>();
  const add = (list: [string, number][], side: "before" | "after") => {
    for (const [name, value] of list) {
      const p = found.get(name) ?? { name };
      p[side] = (p[side] ?? 0) + value;
      found.set(name, p);
    }
  };
  add(before, "before");
  add(after, "after");
  return [...found.values()].sort((a, b) => Math.abs((b.after ?? 0) - (b.before ?? 0)) - Math.abs((a.after ?? 0) - (a.before ?? 0)));
}

function pairTable(label: string, head: string, rows: Pair[], format: (n: number) => string, colored = false): HTMLElement {
  return table<Pair>(label, [
    { head, text: true, wide: true, cell: (p) => h("span", {}, colored ? h("i", { class: "chip", style: `background:${fillOf(p.name)}` }) : "", p.name || "(none named)"), key: (p) => p.name },
    { head: "before", cell: (p) => known(p.before, format), key: (p) => p.before ?? 0 },
    { head: "after", cell: (p) => known(p.after, format), key: (p) => p.after ?? 0 },
    { head: "difference", cell: (p) => { const d = (p.after ?? 0) - (p.before ?? 0); return d === 0 ? "0" : `${d > 0 ? "+" : "−"}${format(Math.abs(d))}`; }, key: (p) => Math.abs((p.after ?? 0) - (p.before ?? 0)) },
    { head: "change", cell: (p) => change(p), key: (p) => (p.before ? (p.after ?? 0) / p.before : Infinity) },
  ], rows, { find: (p) => p.name, page: 12, sort: 3 });
}

function bars(r: Report, name: string, longest: number): HTMLElement {
  const whole = r.breakdown.reduce((sum, s) => sum + s.time_us, 0);
  return h("div", { class: "compared" }, h("span", {}, name),
    h("div", { class: "stack", style: `width:${(100 * share(whole, longest)).toFixed(2)}%`, role: "img", "aria-label": `${name}: ${time(whole)}; the table has the same numbers` },
      ...r.breakdown.map((s) => h("i", { style: `width:${(100 * share(s.time_us, whole)).toFixed(3)}%;background:${fillOf(s.name)}`, title: `${s.name}: ${time(s.time_us)}` }))),
    h("b", {}, time(r.step_time_us)));
}

const grouped = (r: Report, key: (op: Report["ops"][number]) => string): [string, number][] => r.ops.map((op) => [key(op), op.time_us]);
const outer = (scope: string) => scope.split("/").slice(0, -1).map((part) => part.replace(/\.\d+$/, "")).join("/");

export function comparison(before: Report, after: Report): HTMLElement[] {
  const figures: [string, (r: Report) => number, (n: number) => string, "less" | "more"][] = [
    ["step", (r) => r.step_time_us, time, "less"], ["on the device", (r) => r.device_time_us, time, "less"],
    ["duty cycle", (r) => r.utilization.duty_cycle, percent, "more"], ["matrix units busy", (r) => r.utilization.mxu_busy, percent, "more"],
    ["of peak FLOP/s", (r) => r.utilization.flops_of_peak, percent, "more"], ["HBM bandwidth", (r) => r.utilization.hbm_bandwidth_of_peak, percent, "more"],
    ["gaps on the device, all steps", (r) => r.gaps.time_us, time, "less"], ["bytes over links", (r) => r.interconnect_bytes, bytes, "less"],
    ["HBM traffic", (r) => r.hbm_bytes, bytes, "less"], ["HBM peak", (r) => r.memory.peak_bytes, bytes, "less"],
  ];
  const speed = share(before.step_time_us, after.step_time_us);
  const same = before.title === after.title && before.device === after.device && before.topology === after.topology;
  const label = (r: Report) => `${r.title} on ${r.device} ${r.topology}`;
  const longest = Math.max(before.step_time_us, after.step_time_us);
  const side = (r: Report, name: string) => h("div", { class: "card" }, h("h3", { style: "margin-top:0" }, name), h("p", { style: "margin:0" }, label(r)), h("p", { class: "quiet", style: "margin:0" }, h("code", {}, r.command)),
    h("p", { style: "margin:6px 0 0" }, `${time(r.step_time_us)} a step, HBM peak ${bytes(r.memory.peak_bytes)}`, r.memory.fits ? "" : h("b", { class: "bad" }, ": does not fit"), "."));
  const section = (id: string, nav: string, head: string, lead: string, ...content: (HTMLElement | null)[]) => h("section", { id, "data-nav": nav }, h("h2", {}, head), h("p", { class: "lead" }, lead), ...content);
  return [
    section("both", "Both", "Two reports", same ? `The step is ${speed >= 1 ? `${speed.toFixed(2)} times as fast` : `${(1 / speed).toFixed(2)} times as long`} after the change.` : "Different programs or targets: the step times are those of each.",
      h("div", { class: "columns" }, side(before, "Before"), side(after, "After")),
      h("div", { class: "card", style: "margin-top:14px" }, bars(before, "before", longest), bars(after, "after", longest),
        table("Key figures", [
          { head: "figure", text: true, cell: (f) => f[0] },
          { head: "before", cell: (f) => f[2](f[1](before)) },
          { head: "after", cell: (f) => f[2](f[1](after)) },
          { head: "change", cell: (f) => change({ name: f[0], before: f[1](before), after: f[1](after) }, f[3]) },
        ], figures))),
    section("parts", "Parts", "Parts of the step", "Work, stalls and idle time by kind, the largest differences first.",
      h("div", { class: "card" }, pairTable("Parts of the step", "part", pairs(before.breakdown.map((s) => [s.name, s.time_us]), after.breakdown.map((s) => [s.name, s.time_us])), time, true))),
    section("host", "Host", "The host", "A step of the host in the steady state.",
      h("div", { class: "card" }, pairTable("Host phases", "phase", pairs(before.host.phases.map((p) => [`host: ${p.phase}`, p.time_per_step_us]), after.host.phases.map((p) => [`host: ${p.phase}`, p.time_per_step_us])), time, true))),
    section("operations", "Operations", "Operations", "Names may differ after a change; scopes and source lines are steadier.",
      h("div", { class: "card" }, h("h3", { style: "margin-top:0" }, "By scope"), pairTable("Time by scope", "scope", pairs(before.scopes.map((s) => [outer(s.scope), s.time_us]), after.scopes.map((s) => [outer(s.scope), s.time_us])), time),
        h("h3", {}, "By source line"), pairTable("Time by source line", "source line", pairs(before.sources.map((s) => [s.source, s.time_us]), after.sources.map((s) => [s.source, s.time_us])), time),
        h("h3", {}, "By operation"), pairTable("Time by operation", "operation", pairs(grouped(before, (op) => op.name), grouped(after, (op) => op.name)), time))),
    section("memory", "Memory", "Memory", "Live at the peak by scope and source line.",
      h("div", { class: "card" }, pairTable("Live at the peak by scope", "scope", pairs(before.memory.live_by_scope.map((g) => [g.name, g.bytes]), after.memory.live_by_scope.map((g) => [g.name, g.bytes])), bytes),
        h("h3", {}, "By source line"), pairTable("Live at the peak by source line", "source line", pairs(before.memory.live_by_source.map((g) => [g.name, g.bytes]), after.memory.live_by_source.map((g) => [g.name, g.bytes])), bytes))),
  ];
}

// A button that reads another report.json and shows both.
export function compareButton(r: Report, show: (sections: HTMLElement[]) => void): HTMLElement {
  const status = h("span", { class: "quiet", role: "status" });
  const file = h("input", { type: "file", class: "hidden", id: "other", accept: ".json", onchange: async () => {
    const chosen = file.files?.[0];
    if (!chosen) return;
    try {
      const other = JSON.parse(await chosen.text()) as Report;
      if (other.format !== r.format) throw new Error(`its format is ${other.format ?? "unknown"}, not ${r.format}`);
      show(comparison(other, r));
    } catch (error) {
      status.textContent = `${chosen.name} cannot be compared: ${(error as Error).message}`;
    }
  } });
  return h("p", { class: "tools compare" }, h("label", { for: "other", class: "button" }, "Compare with an earlier report.json …"), file, status);
}

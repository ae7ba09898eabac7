// SPDX-License-Identifier: Apache-2.0
// HBM over the step, memory by operation, scope and source line, live arrays at the peak, and ways to fit.
import { chart, escape, followZoom, roundedEnd, timeAxis, tooltip } from "../charts";
import { color } from "../../../common/colors";
import { h, table, tabs } from "../../../common/dom";
import { bytes, count, percent, share, tick, time } from "../../../common/format";
import { missing } from "../missing";
import { sourceLink } from "../../../common/source";
import type { LiveGroup, OpMemory, Report } from "../types";

const signed = (n: number) => (n > 0 ? `+${bytes(n)}` : n < 0 ? `−${bytes(-n)}` : "0");

function curve(r: Report): HTMLElement {
  const m = r.memory;
  // Ticks at powers of two of bytes, four to eight of them.
  const near = m.peak_bytes > 0.5 * m.limit_bytes;
  const highest = (near ? Math.max(m.peak_bytes, m.limit_bytes) : m.peak_bytes) * 1.02 || 1;
  const step = 2 ** Math.ceil(Math.log2(highest / 8));
  const top = Math.ceil(highest / step) * step;
  const last = m.timeline.length ? m.timeline[m.timeline.length - 1][0] : 1;
  const end = roundedEnd(Math.max(last, 1e-3));
  const under = m.timeline.map(([us, b]) => [us, Math.min(b, m.limit_bytes)]);
  const over = m.timeline.map(([us, b]) => [us, Math.max(0, b - m.limit_bytes)]);
  const area = (data: number[][], hue: string, name: string) => ({
    name, type: "line", step: "end", symbol: "none", stack: "bytes", data, lineStyle: { color: color(hue), width: hue === "bad" ? 0 : 1.5 }, itemStyle: { color: color(hue) }, areaStyle: { color: color(hue), opacity: hue === "bad" ? 0.45 : 0.18 },
  });
  return chart(`HBM over the step, peak ${bytes(m.peak_bytes)}${m.fits ? "" : ", over the limit"}`, 280, () => ({
    tooltip: { ...tooltip(), trigger: "axis", formatter: (p: { dataIndex: number }[]) => {
      const [us, b, name] = m.timeline[p[0].dataIndex];
      return `<b>${bytes(b)}</b> at ${time(us)}${b > m.limit_bytes ? `<br>${bytes(b - m.limit_bytes)} over the limit` : ""}${name ? `<br>${escape(name)}` : ""}`;
    } },
    grid: { left: 92, right: 52, top: 16, bottom: 60, outerBoundsMode: "none" },
    dataZoom: [{ type: "inside" }, { type: "slider", height: 16, bottom: 6, showDetail: false, borderColor: color("line") }],
    xAxis: timeAxis(end, tick),
    yAxis: { type: "value", max: top, interval: step, axisLabel: { formatter: (v: number) => (v > 0 ? bytes(v) : "0") } },
    series: [
      { ...area(under, "memory", "HBM"), markLine: near ? { silent: true, symbol: "none", data: [{ yAxis: m.limit_bytes }], lineStyle: { color: color("bad") }, label: { formatter: "limit", color: color("bad") } } : undefined },
      ...(m.fits ? [] : [area(over, "bad", "over the limit")]),
    ],
  }), (made) => followZoom(made, end, tick));
}

interface Sum {
  name: string;
  ops: number;
  allocation: number;
  self: number;
  increase: number;
}

function sums(ops: OpMemory[], key: (op: OpMemory) => string): Sum[] {
  const groups = new Map<string, Sum>();
  for (const op of ops) {
    const name = key(op);
    let g = groups.get(name);
    if (!g) groups.set(name, (g = { name, ops: 0, allocation: 0, self: 0, increase: 0 }));
    g.ops += 1;
    g.allocation += op.allocation_bytes;
    g.self += op.self_bytes;
    g.increase += op.size_increase_bytes;
  }
  return [...groups.values()];
}

function sumTable(label: string, head: string, rows: Sum[], cell: (g: Sum) => Node | string): HTMLElement {
  return table<Sum>(label, [
    { head, text: true, wide: true, cell, key: (g) => g.name },
    { head: "allocation", cell: (g) => bytes(g.allocation), key: (g) => g.allocation },
    { head: "self", cell: (g) => bytes(g.self), key: (g) => g.self },
    { head: "size increase", cell: (g) => signed(g.increase), key: (g) => g.increase },
    { head: "operations", cell: (g) => count(g.ops), key: (g) => g.ops },
  ], rows, { find: (g) => g.name, page: 15, sort: 1 });
}

const none = () => h("span", { class: "quiet" }, "(none named)");
const outer = (scope: string) => scope.split("/").slice(0, -1).join("/");

function operations(m: Report["memory"]): HTMLElement {
  const computed = m.ops.filter((op) => op.allocation_bytes || op.size_increase_bytes || op.self_bytes);
  return table<OpMemory>("Memory by operation", [
    { head: "operation", text: true, wide: true, cell: (op) => h("span", {}, h("span", { class: "mono" }, op.name), op.operation ? h("span", { class: "under quiet" }, op.operation) : "", op.computation ? h("span", { class: "under quiet" }, `in ${op.computation}`) : ""), key: (op) => op.name },
    { head: "allocation", cell: (op) => bytes(op.allocation_bytes), key: (op) => op.allocation_bytes },
    { head: "self", cell: (op) => bytes(op.self_bytes), key: (op) => op.self_bytes },
    { head: "size increase", cell: (op) => signed(op.size_increase_bytes), key: (op) => op.size_increase_bytes },
    { head: "live", cell: (op) => (op.live_bytes === undefined ? "–" : bytes(op.live_bytes)), key: (op) => op.live_bytes ?? 0 },
    { head: "vector memory", cell: (op) => (op.vmem_bytes ? bytes(op.vmem_bytes) : "–"), key: (op) => op.vmem_bytes ?? 0 },
    { head: "scope and source", text: true, wide: true, cell: (op) => h("span", {}, h("span", { class: "two", title: op.scope }, op.scope), op.source ? h("span", { class: "under" }, sourceLink(op.source)) : ""), key: (op) => `${op.scope} ${op.source}` },
  ], computed, { find: (op) => `${op.name} ${op.scope} ${op.source} ${op.computation ?? ""}`, page: 12, sort: 1 });
}

function alive(r: Report): HTMLElement {
  const m = r.memory;
  const groups = (label: string, list: LiveGroup[]) => table<LiveGroup>(label, [
    { head: label === "Live at the peak by scope" ? "scope" : "source line", text: true, wide: true, cell: (g) => (g.name ? (label.endsWith("scope") ? g.name : sourceLink(g.name)) : none()), key: (g) => g.name },
    { head: "in HBM", cell: (g) => bytes(g.bytes), key: (g) => g.bytes },
    { head: "of the peak", cell: (g) => percent(share(g.bytes, m.peak_bytes)), key: (g) => g.bytes },
    { head: "arrays", cell: (g) => count(g.arrays), key: (g) => g.arrays },
  ], list, { page: 6, sort: 1 });
  const arrays = table("Live arrays at the peak", [
    { head: "array", text: true, wide: true, cell: (a) => h("span", {}, h("span", { class: "mono" }, a.name), a.operation ? h("span", { class: "under quiet" }, a.operation) : ""), key: (a) => a.name },
    { head: "shape", text: true, cell: (a) => h("span", { class: "mono" }, a.shape), key: (a) => a.shape },
    { head: "in HBM", cell: (a) => bytes(a.bytes), key: (a) => a.bytes },
    { head: "of the peak", cell: (a) => percent(share(a.bytes, m.peak_bytes)), key: (a) => a.bytes },
    { head: "padding", cell: (a) => (a.bytes > a.unpadded_bytes ? percent(share(a.bytes - a.unpadded_bytes, a.bytes)) : "–"), key: (a) => a.bytes - a.unpadded_bytes },
    { head: "scope", text: true, wide: true, cell: (a) => h("span", { class: "two", title: a.scope }, a.scope), key: (a) => a.scope },
    { head: "source", text: true, cell: (a) => sourceLink(a.source), key: (a) => a.source },
  ], m.live_at_peak, { find: (a) => `${a.name} ${a.shape} ${a.operation} ${a.scope} ${a.source}`, page: 12, sort: 1 });
  const named = (list: LiveGroup[]) => list.some((g) => g.name);
  return h("div", {}, arrays, h("div", { class: "columns", style: "margin-top:10px" },
    h("div", {}, h("h3", {}, "By scope"), named(m.live_by_scope) ? groups("Live at the peak by scope", m.live_by_scope) : missing(r, "scopes")),
    h("div", {}, h("h3", {}, "By source line"), named(m.live_by_source) ? groups("Live at the peak by source line", m.live_by_source) : missing(r, "source"))));
}

function ways(r: Report): HTMLElement {
  const m = r.memory;
  const list = r.recommendations.filter((a) => a.peak_bytes_after !== undefined);
  if (!list.length) {
    return h("p", { class: "quiet" }, m.fits ? "The program fits, and no donation lowers its peak." : "None of the simulated changes makes it fit: donation, rematerialization, a smaller batch, bf16, more partitions, other targets.");
  }
  return table("Ways to fit", [
    { head: "change", text: true, wide: true, cell: (a) => a.title, key: (a) => a.title },
    { head: "peak", cell: (a) => bytes(a.peak_bytes_after!), key: (a) => a.peak_bytes_after! },
    { head: "fits", text: true, cell: (a) => h("span", { class: a.fits_after ? "good" : "bad" }, a.fits_after ? "yes" : "no") },
    { head: "step", cell: (a) => time(a.after_us), key: (a) => a.after_us },
    { head: "simulated", text: true, wide: true, cell: (a) => a.simulated },
  ], list);
}

export function memory(r: Report): HTMLElement {
  const m = r.memory;
  const scoped = m.ops.some((op) => op.scope), sourced = m.ops.some((op) => op.source);
  return h("section", { id: "memory", "data-nav": "Memory" }, h("h2", {}, "Memory"),
    h("p", { class: "lead" }, "Peak ", h("b", { class: m.fits ? "" : "bad" }, `${bytes(m.peak_bytes)} of ${bytes(m.limit_bytes)}${m.fits ? "" : ": it does not fit"}`),
      `; parameters ${bytes(m.parameter_bytes)}; ${m.padding_bytes_at_peak > 0 ? `${bytes(m.padding_bytes_at_peak)} of the peak are padding` : "no padding"}${m.fragmentation_bytes > 0 ? `; ${bytes(m.fragmentation_bytes)} more for gaps between blocks` : ""}${m.peak_at ? `; it is at ${m.peak_at}` : ""}. Allocation: bytes that an operation and what it calls allocate; self: without what it calls; size increase: less what is freed after it.`),
    h("div", { class: "card" }, m.timeline.length > 1 ? curve(r) : h("p", { class: "quiet" }, "The program has no operations."), tabs("Memory", [
      ["Alive at the peak", () => alive(r)],
      ["Operations", () => operations(m)],
      ["By scope", () => (scoped ? sumTable("Memory by scope", "scope", sums(m.ops, (op) => outer(op.scope)), (g) => g.name || none()) : missing(r, "scopes"))],
      ["By source line", () => (sourced ? sumTable("Memory by source line", "source line", sums(m.ops, (op) => op.source), (g) => (g.name ? sourceLink(g.name) : none())) : missing(r, "source"))],
      ["Ways to fit", () => ways(r)],
    ])));
}

// SPDX-License-Identifier: Apache-2.0
// Roofline, and operations individually, by scope, category and source line.
import { chart, escape, tooltip } from "../charts";
import { categoryColor, color, fillOf } from "../../../common/colors";
import { h, table, tabs } from "../../../common/dom";
import { bytes, count, digits, flops, percent, rate, share, time } from "../../../common/format";
import { editorChoice, sourceLink } from "../../../common/source";
import { hasGraph, inGraph } from "../graph";
import type { Op, Report } from "../types";
import { missing } from "../missing";
import { bar } from "./overview";

export function roofline(r: Report): HTMLElement {
  const peak = r.peaks.bf16_flops_per_second, hbm = r.peaks.hbm_bytes_per_second, vmem = r.peaks.vmem_bytes_per_second;
  // Below a thousandth of an operation per byte are only copies.
  const ops = r.ops.filter((op) => op.time_us > 0 && op.hbm_bytes > 0 && op.flops / op.hbm_bytes > 1e-3).slice(0, 1500);
  const point = (op: Op) => [op.flops / op.hbm_bytes, op.flops / (op.time_us * 1e-6)];
  const whole = r.hbm_bytes > 0 && r.flops > 0 ? [r.flops / r.hbm_bytes, r.flops / (r.device_time_us * 1e-6)] : undefined;
  const xs = ops.map((op) => point(op)[0]);
  const low = 10 ** Math.floor(Math.log10(Math.min(0.5, ...xs))), high = 10 ** Math.ceil(Math.log10(Math.max((10 * peak) / hbm, ...xs)));
  const roof = (bw: number, flat = true) => [[low, low * bw], [peak / bw, peak], ...(flat ? [[high, peak]] : [])].filter(([x]) => x >= low && x <= high);
  const categories = [...new Set(ops.map((op) => op.category))];
  const longest = Math.max(1e-9, ...ops.map((op) => op.time_us));
  const picture = chart(`Roofline: ${ops.length} operations by operational intensity and rate`, 430, () => ({
    tooltip: { ...tooltip(), formatter: (p: { data: { op?: Op; value: number[] }; seriesName: string }) => {
      const op = p.data.op;
      if (!op) return `<b>${escape(p.seriesName)}</b>`;
      return `<b>${escape(op.name)}</b><br>${escape(op.category)}, bound by ${escape(op.bound_by)}<br>${time(op.time_us)}, ${digits(p.data.value[0])} FLOP/B, ${flops(p.data.value[1])}/s<br>${percent(p.data.value[1] / Math.min(peak, p.data.value[0] * hbm))} of the roof${op.scope ? `<br>${escape(op.scope)}` : ""}`;
    } },
    grid: { left: 92, right: 30, top: 14, bottom: 50 },
    xAxis: { type: "log", min: low, max: high, name: "FLOP for each byte of HBM", nameLocation: "middle", nameGap: 30, axisLabel: { formatter: (v: number) => digits(v) } },
    yAxis: { type: "log", name: "", axisLabel: { formatter: (v: number) => `${flops(v)}/s` } },
    series: [
      { name: `HBM ${rate(hbm)}`, type: "line", data: roof(hbm), symbol: "none", lineStyle: { color: color("memory"), width: 2 }, itemStyle: { color: color("memory") } },
      ...(vmem ? [{ name: `vector memory ${rate(vmem)}`, type: "line", data: roof(vmem, false), symbol: "none", lineStyle: { color: color("vmem"), width: 1.5, type: "dashed" }, itemStyle: { color: color("vmem") } }] : []),
      ...categories.map((category) => ({
        name: category, type: "scatter", itemStyle: { color: categoryColor(category), opacity: 0.75 },
        data: ops.filter((op) => op.category === category).map((op) => ({ value: point(op), op, symbolSize: 5 + 22 * Math.sqrt(op.time_us / longest) })),
      })),
      ...(whole ? [{ name: "whole step", type: "scatter", symbol: "diamond", symbolSize: 20, itemStyle: { color: color("text") }, data: [{ value: whole }] }] : []),
    ],
  }));
  const line = (hue: string, text: string, dashed = false) => h("span", {}, h("i", { class: "rule", style: `border-top:2px ${dashed ? "dashed" : "solid"} var(--${hue})` }), text);
  const legend = h("div", { class: "legend" }, line("memory", `HBM ${rate(hbm)}`), vmem ? line("vmem", `vector memory ${rate(vmem)}`, true) : null,
    ...categories.map((c) => h("span", {}, h("i", { class: "chip", style: `background:${fillOf(c)}` }), c)), whole ? h("span", {}, h("i", { class: "chip whole" }), "whole step") : null);
  return h("section", { id: "roofline", "data-nav": "Roofline" }, h("h2", {}, "Roofline"),
    h("p", { class: "lead" }, "Each operation by how much it computes for a byte of HBM and how fast it runs; its area is its time. Below the slope HBM bounds it, below the flat part the matrix units. Operations without HBM traffic, and copies, are not here."),
    h("div", { class: "card" }, ops.length ? legend : null, ops.length ? picture : h("p", { class: "quiet" }, "No operation both computes and reads HBM.")));
}

// What runs beside the core, whose time is no part of the device time, says so in each table.
const beside = (op: Op) => (op.concurrent && op.time_us > 0 ? ", beside the core" : "");

interface Group {
  name: string;
  ops: number;
  us: number;
  besideUs: number;  // of copies and collectives beside the core
  category: string;  // of its first operation
  flops: number;
  hbm: number;
  waited: number;
}

function group(r: Report, key: (op: Op) => string): Group[] {
  const groups = new Map<string, Group>();
  for (const op of r.ops) {
    const name = key(op);
    let g = groups.get(name);
    if (!g) groups.set(name, (g = { name, ops: 0, us: 0, besideUs: 0, category: op.category, flops: 0, hbm: 0, waited: 0 }));
    g.ops += 1;
    g.us += op.time_us;
    g.flops += op.flops;
    g.hbm += op.hbm_bytes;
    g.waited += op.stall_us;
  }
  return [...groups.values()].sort((a, b) => b.us - a.us);
}

// Time of the instructions of each line, also within fusions, and of its copies and collectives beside the core.
function sources(r: Report): Group[] {
  return r.sources.map((s) => ({ name: s.source, ops: s.kernels, us: s.time_us, besideUs: s.concurrent_us, category: "", flops: s.flops, hbm: s.hbm_bytes, waited: 0 })).sort((a, b) => b.us - a.us);
}

function groupTable(label: string, head: string, groups: Group[], whole: number, name: (g: Group) => Node | string, counted = "operations"): HTMLElement {
  return table<Group>(label, [
    { head, text: true, wide: true, cell: name, key: (g) => g.name },
    { head: "time", cell: (g) => time(g.us), key: (g) => g.us },
    { head: "of the device", cell: (g) => bar(share(g.us, whole)), key: (g) => g.us },
    ...(groups.some((g) => g.besideUs > 0) ? [{ head: "beside the core", cell: (g: Group) => (g.besideUs ? time(g.besideUs) : "–"), key: (g: Group) => g.besideUs }] : []),
    { head: counted, cell: (g) => count(g.ops), key: (g) => g.ops },
    { head: "FLOP/s", cell: (g) => (g.flops && g.us ? `${flops(share(g.flops, g.us * 1e-6))}/s` : "–"), key: (g) => share(g.flops, g.us) },
    { head: "HBM", cell: (g) => (g.hbm ? rate(share(g.hbm, (g.us + g.besideUs) * 1e-6)) : "–"), key: (g) => share(g.hbm, g.us + g.besideUs) },
  ], groups, { find: (g) => g.name, sort: 1 });
}

export function operations(r: Report): HTMLElement {
  const whole = r.device_time_us;
  const all = () => table<Op>("Operations", [
    { head: "operation", text: true, wide: true, cell: (op) => (hasGraph ? h("a", { class: "mono", href: inGraph(op.name), title: "in the graph" }, op.name) : h("span", { class: "mono" }, op.name)), key: (op) => op.name },
    { head: "category", text: true, cell: (op) => h("span", {}, h("i", { class: "chip", style: `background:${fillOf(op.category)}` }), op.category + beside(op)), key: (op) => op.category + beside(op) },
    { head: "time", cell: (op) => time(op.time_us), key: (op) => op.time_us },
    { head: "of the device", cell: (op) => bar(share(op.time_us, whole)), key: (op) => op.time_us },
    { head: "runs", cell: (op) => count(op.runs), key: (op) => op.runs },
    { head: "stall", cell: (op) => (op.stall_us ? time(op.stall_us) : "–"), key: (op) => op.stall_us },
    { head: "bound by", text: true, cell: (op) => op.bound_by, key: (op) => op.bound_by },
    { head: "FLOP/s", cell: (op) => (op.flops ? `${flops(share(op.flops, op.time_us * 1e-6))}/s` : "–"), key: (op) => share(op.flops, op.time_us) },
    { head: "HBM", cell: (op) => (op.hbm_bytes ? bytes(op.hbm_bytes) : "–"), key: (op) => op.hbm_bytes },
    { head: "scope and source", text: true, wide: true, cell: (op) => h("span", {}, h("span", { class: "two", title: op.scope }, op.scope), op.source ? h("span", { class: "under" }, sourceLink(op.source)) : ""), key: (op) => `${op.scope} ${op.source}` },
  ], r.ops, { find: (op) => `${op.name} ${op.scope} ${op.source} ${op.category}`, sort: 2 });
  const plain = (g: Group) => g.name || h("span", { class: "quiet" }, "(none named)");
  return h("section", { id: "operations", "data-nav": "Operations" }, h("h2", {}, "Operations"),
    h("p", { class: "lead" }, `${count(r.ops.length)} operations of one step. Heads sort; the field finds.`),
    h("div", { class: "card" }, r.ops.some((op) => op.source) ? editorChoice() : null, tabs("Operations by", [
      ["Each", all],
      ["Category", () => groupTable("By category", "category", group(r, (op) => op.category + beside(op)), whole, (g) => h("span", {}, h("i", { class: "chip", style: `background:${fillOf(g.category)}` }), g.name))],
      ["Source line", () => (!r.ops.some((op) => op.source) ? missing(r, "source") : groupTable("By source line", "source", sources(r), whole, (g) => (g.name ? sourceLink(g.name) : plain(g)), "kernels"))],
      ["Bound by", () => groupTable("By what bounds them", "bound by", group(r, (op) => op.bound_by + beside(op)), whole, plain)],
    ])));
}

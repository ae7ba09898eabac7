// SPDX-License-Identifier: Apache-2.0
// HBM over the step, and live arrays at the peak.
import { chart, color, escape, tooltip } from "../charts";
import { h, table } from "../dom";
import { bytes, percent, share, time } from "../format";
import { sourceLink } from "../source";
import type { Report } from "../types";

export function memory(r: Report): HTMLElement {
  const m = r.memory;
  // Ticks at powers of two of bytes, four to eight of them.
  const highest = (m.peak_bytes > 0.5 * m.limit_bytes ? Math.max(m.peak_bytes, m.limit_bytes) : m.peak_bytes) * 1.02 || 1;
  const step = 2 ** Math.ceil(Math.log2(highest / 8));
  const top = Math.ceil(highest / step) * step;
  const picture = chart(`HBM over the step, peak ${bytes(m.peak_bytes)}`, 260, () => ({
    tooltip: { ...tooltip(), trigger: "axis", formatter: (p: { dataIndex: number }[]) => {
      const [us, b, name] = m.timeline[p[0].dataIndex];
      return `<b>${bytes(b)}</b> at ${time(us)}<br>${escape(name)}`;
    } },
    grid: { left: 84, right: 44, top: 16, bottom: 56 },
    dataZoom: [{ type: "inside" }, { type: "slider", height: 16, bottom: 6, borderColor: color("line"), labelFormatter: (v: number) => time(v) }],
    xAxis: { type: "value", min: "dataMin", max: "dataMax", axisLabel: { formatter: (v: number) => time(v) } },
    yAxis: { type: "value", max: top, interval: step, axisLabel: { formatter: (v: number) => (v > 0 ? bytes(v) : "0") } },
    series: [{
      type: "line", step: "end", symbol: "none", data: m.timeline.map(([us, b]) => [us, b]), lineStyle: { color: color("memory"), width: 1.5 }, itemStyle: { color: color("memory") }, areaStyle: { color: color("memory"), opacity: 0.18 },
      markLine: m.peak_bytes > 0.5 * m.limit_bytes ? { silent: true, symbol: "none", data: [{ yAxis: m.limit_bytes }], lineStyle: { color: color("bad") }, label: { formatter: "HBM", color: color("bad") } } : undefined,
    }],
  }));
  const live = table("Live arrays at the peak", [
    { head: "array", text: true, wide: true, cell: (a) => h("span", { class: "mono" }, a.name), key: (a) => a.name },
    { head: "in HBM", cell: (a) => bytes(a.bytes), key: (a) => a.bytes },
    { head: "of the peak", cell: (a) => percent(share(a.bytes, m.peak_bytes)), key: (a) => a.bytes },
    { head: "padding", cell: (a) => (a.bytes > a.unpadded_bytes ? percent(share(a.bytes - a.unpadded_bytes, a.bytes)) : "–"), key: (a) => a.bytes - a.unpadded_bytes },
    { head: "scope", text: true, wide: true, cell: (a) => h("span", { class: "two", title: a.scope }, a.scope), key: (a) => a.scope },
    { head: "source", text: true, cell: (a) => sourceLink(a.source), key: (a) => a.source },
  ], m.live_at_peak, { find: (a) => `${a.name} ${a.scope} ${a.source}`, page: 12, sort: 1 });
  return h("section", { id: "memory", "data-nav": "Memory" }, h("h2", {}, "Memory"),
    h("p", { class: "lead" }, `Peak ${bytes(m.peak_bytes)} of ${bytes(m.limit_bytes)}${m.fits ? "" : ": it does not fit"}; parameters ${bytes(m.parameter_bytes)}; ${m.padding_bytes_at_peak > 0 ? `${bytes(m.padding_bytes_at_peak)} of the peak are padding` : "no padding"}${m.peak_at ? `; it is at ${m.peak_at}` : ""}.`),
    h("div", { class: "card" }, picture, h("h3", {}, "Live at the peak, largest first"), live));
}

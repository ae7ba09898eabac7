// SPDX-License-Identifier: Apache-2.0
// What each resource does over one step: the same numbers as the counter tracks of the profile.
import { chart, followZoom, roundedEnd, timeAxis, tooltip } from "../charts";
import { color } from "../../../common/colors";
import { h } from "../../../common/dom";
import { percent, tick, time } from "../../../common/format";
import type { Report } from "../types";

const hues = ["matmul", "memory", "all-gather", "elementwise"];  // by column after the time
const dashes = ["solid", "solid", "solid", "dashed"];

export function utilization(r: Report): HTMLElement {
  const u = r.timeline.utilization;
  const names = u.columns.slice(1);
  const end = roundedEnd(Math.max(1e-3, u.width_us * u.rows.length));
  const used = names.map((_, c) => c).filter((c) => u.rows.some((row) => row[c + 1] > 0));
  const picture = chart("Utilization over the step, in percent of each peak", 280, () => ({
    tooltip: { ...tooltip(), trigger: "axis", formatter: (p: { dataIndex: number }[]) => {
      const row = u.rows[p[0].dataIndex];
      return [`at ${time(row[0])}`, ...used.map((c) => `${names[c]}: <b>${percent(row[c + 1])}</b>`)].join("<br>");
    } },
    grid: { left: 62, right: 52, top: 16, bottom: 60, outerBoundsMode: "none" },
    dataZoom: [{ type: "inside" }, { type: "slider", height: 16, bottom: 6, showDetail: false, borderColor: color("line") }],
    xAxis: timeAxis(end, tick),
    yAxis: { type: "value", min: 0, max: 1, interval: 0.25, axisLabel: { formatter: (v: number) => percent(v) } },
    series: used.map((c) => ({
      name: names[c], type: "line", step: "end", symbol: "none", data: u.rows.map((row) => [row[0], row[c + 1]]),
      lineStyle: { color: color(hues[c % hues.length]), width: 1.5, type: dashes[c % dashes.length] }, itemStyle: { color: color(hues[c % hues.length]) },
    })),
  }), (made) => followZoom(made, end, tick));
  const rule = (c: number) => h("span", {}, h("i", { class: "rule", style: `border-top:2px ${dashes[c % dashes.length]} var(--${hues[c % hues.length]})` }), names[c]);
  return h("div", {},
    h("p", { class: "quiet" }, `The first device, means over ${time(u.width_us)}.`, r.host.threads?.length ? " The profile has them as counter tracks." : ""),
    h("div", { class: "legend" }, ...used.map(rule)), picture);
}

// SPDX-License-Identifier: Apache-2.0
// Charts by Apache ECharts, drawn when they come into view, in the colors of the page, with labels for screen readers.
import { BarChart, CustomChart, LineChart, ScatterChart, TreemapChart } from "echarts/charts";
import { AriaComponent, DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { init, use, type EChartsType } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { color } from "../../common/colors";
import { h } from "../../common/dom";

use([BarChart, CustomChart, LineChart, ScatterChart, TreemapChart, AriaComponent, DataZoomComponent, GridComponent, LegendComponent,
  MarkLineComponent, TooltipComponent, CanvasRenderer]);

export type Option = Record<string, unknown>;

interface Drawn {
  place: HTMLElement;
  option: () => Option;
  chart?: EChartsType;
  ready?: (chart: EChartsType) => void;
}
const drawn: Drawn[] = [];

function draw(d: Drawn) {
  const quiet = color("quiet"), line = color("line"), text = color("text");
  const axis = { axisLine: { lineStyle: { color: line } }, axisLabel: { color: quiet }, splitLine: { lineStyle: { color: line, opacity: 0.6 } }, nameTextStyle: { color: quiet } };
  d.chart ??= init(d.place, {
    categoryAxis: axis, valueAxis: axis, logAxis: axis, timeAxis: axis,
    legend: { textStyle: { color: text } },
    textStyle: { fontFamily: "inherit" },
  } as never, { renderer: "canvas" });
  d.chart.setOption({
    animation: false,
    aria: { enabled: true, label: { enabled: false } },
    ...d.option(),
  }, { notMerge: true });
  d.ready?.(d.chart);
  d.place.dataset.drawn = "yes";
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    const d = drawn.find((x) => x.place === entry.target);
    if (d && !d.chart) draw(d);
  }
}, { rootMargin: "200px" });

// `label`: description of the chart; a table of the same numbers is next to or below each chart.
// `ready`: called whenever the chart was drawn anew.
export function chart(label: string, height: number, option: () => Option, ready?: (chart: EChartsType) => void): HTMLElement {
  const place = h("div", { class: "chart", role: "img", "aria-label": label, style: `height:${height}px` });
  drawn.push({ place, option, ready });
  seen.observe(place);
  return place;
}

// Draws a chart again whose option has changed.
export function redraw(place: HTMLElement, height?: number) {
  if (height !== undefined) place.style.height = `${height}px`;
  const d = drawn.find((x) => x.place === place);
  if (!d?.chart) return;
  d.chart.resize();
  draw(d);
}

// Returns the step of about `parts` ticks over a range: 1, 2 or 5 times a power of ten.
export function tickStep(range: number, parts = 6): number {
  const rough = Math.max(range, 1e-9) / parts;
  const power = 10 ** Math.floor(Math.log10(rough));
  const digit = rough / power;
  return (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10) * power;
}
// Returns the end of an axis that begins at 0: a multiple of its ticks.
export const roundedEnd = (most: number, parts = 6) => {
  const step = tickStep(most, parts);
  return Math.max(step, Math.ceil(most / step - 1e-9) * step);
};
// A value axis of times in microseconds, from 0. Its labels are multiples of the tick in the shown range, whose ends need
// not be.
export function timeAxis(end: number, format: (us: number) => string, shown: [number, number] = [0, end]): Option {
  const step = tickStep(shown[1] - shown[0]);
  const ticks: number[] = [];
  for (let k = Math.ceil(shown[0] / step - 1e-9); k * step <= shown[1] + 1e-6 * step && ticks.length < 100; ++k) ticks.push(k * step);
  return { type: "value", min: 0, max: end, axisTick: { show: true, customValues: ticks }, axisLabel: { customValues: ticks, hideOverlap: true, alignMinLabel: "left", alignMaxLabel: "right", formatter: format }, splitLine: { show: true } };
}

// The window of a chart whose x axis begins at 0 and ends at `end`.
export function zoomedRange(chart: EChartsType, end: number): [number, number] {
  const zoom = (chart.getOption() as { dataZoom?: { start: number; end: number }[] }).dataZoom?.[0];
  return zoom ? [(zoom.start / 100) * end, (zoom.end / 100) * end] : [0, end];
}

// Keeps the ticks of the x axis round while it is zoomed.
export function followZoom(chart: EChartsType, end: number, format: (us: number) => string, changed?: (from: number, to: number) => void) {
  chart.off("datazoom");
  chart.on("datazoom", () => {
    const [from, to] = zoomedRange(chart, end);
    chart.setOption({ xAxis: timeAxis(end, format, [from, to]) });
    changed?.(from, to);
  });
}

export function tooltip(): Option {
  return { backgroundColor: color("card"), borderColor: color("line"), textStyle: { color: color("text"), fontSize: 12 }, confine: true };
}

export function watch() {
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const d of drawn) d.chart?.resize();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const d of drawn) {
      if (!d.chart) continue;
      d.chart.dispose();
      d.chart = undefined;
      draw(d);
    }
  });
  // Draws all charts before printing.
  addEventListener("beforeprint", () => { for (const d of drawn) if (!d.chart) draw(d); });
}

export const escape = (text: string) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]!);

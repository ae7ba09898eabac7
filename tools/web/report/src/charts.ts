// SPDX-License-Identifier: Apache-2.0
// Charts by Apache ECharts, drawn when they come into view, in the colors of the page, with labels for screen readers.
import { BarChart, CustomChart, LineChart, ScatterChart, TreemapChart } from "echarts/charts";
import { AriaComponent, DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { init, use, type EChartsType } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { h } from "./dom";

use([BarChart, CustomChart, LineChart, ScatterChart, TreemapChart, AriaComponent, DataZoomComponent, GridComponent, LegendComponent,
  MarkLineComponent, TooltipComponent, CanvasRenderer]);

export type Option = Record<string, unknown>;

export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const phases: Record<string, string> = {
  "input pipeline": "input", "transfer to device": "transfer", "IR generation": "trace", "step marker": "marker", compile: "compile",
  "execute call": "execute", fetch: "fetch", program: "other", step: "compute",
};
export const phaseColor = (phase: string) => color(phases[phase] ?? "other");

const bounds: Record<string, string> = {
  mxu: "compute", vpu: "vpu", eup: "vpu", xlu: "xlu", vmem: "vmem", scalar: "other", hbm: "memory", ici: "communication",
  dcn: "dcn", host: "host", overhead: "overhead",
};
export const boundColor = (bound: string) => color(bounds[bound] ?? "other");

// One hue for each category, the same in all charts.
const hues = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10"];
const given = new Map<string, string>();
export function categoryColor(category: string): string {
  if (!given.has(category)) given.set(category, hues[given.size % hues.length]);
  return color(given.get(category)!);
}

interface Drawn {
  place: HTMLElement;
  option: () => Option;
  chart?: EChartsType;
  click?: (data: unknown) => void;
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
  if (d.click) {
    d.chart.off("click");
    d.chart.on("click", (event) => d.click!(event));
  }
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
export function chart(label: string, height: number, option: () => Option, click?: (data: unknown) => void): HTMLElement {
  const place = h("div", { class: "chart", role: "img", "aria-label": label, style: `height:${height}px` });
  drawn.push({ place, option, click });
  seen.observe(place);
  return place;
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

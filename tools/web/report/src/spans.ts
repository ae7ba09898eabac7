// SPDX-License-Identifier: Apache-2.0
// A timeline of spans on rows, with a search, a window of time, and a wheel and slider that zoom it.
import type { EChartsType } from "echarts/core";
import { chart, followZoom, redraw, timeAxis, tooltip } from "./charts";
import { color, inkOn } from "../../common/colors";
import { escape } from "./charts";
import { h } from "../../common/dom";
import { instant, parseTime, tick } from "../../common/format";

export interface Span {
  at: number;  // the row
  start: number;
  us: number;
  fill: string;
  name: string;
  note: string;  // HTML
  find: string;  // what the search finds
  pale?: boolean;
}
export interface Rows {
  names: string[];
  spans: Span[];
  end: number;                // of the axis
  shown?: [number, number];   // the window to begin with
}

const rowHeight = 34;
const charWidth = 6.6;  // of 11 px text, a little more than the mean
const heightOf = (rows: Rows) => 76 + rowHeight * rows.names.length;
const widest = (names: string[]) => Math.min(220, Math.max(60, ...names.map((n) => 7.2 * n.length)) + 18);

export interface Timeline {
  element: HTMLElement;
  // Shows other rows.
  set: (rows: Rows) => void;
  zoom: (from: number, to: number) => void;
}

// `controls`: further controls, before the search.
export function timeline(label: string, first: Rows, controls: (Node | null)[] = []): Timeline {
  let rows = first;
  let window: [number, number] = rows.shown ?? [0, rows.end];
  let wanted = "";
  let found: number[] = [];
  let current = -1;
  let drawn: EChartsType | undefined;

  const from = h("input", { type: "text", class: "instant", "aria-label": `${label}: window from`, onchange: () => read() });
  const to = h("input", { type: "text", class: "instant", "aria-label": `${label}: window to`, onchange: () => read() });
  const matches = h("span", { class: "quiet", role: "status" });
  const search = h("input", { type: "search", placeholder: "Find …", "aria-label": `Find in: ${label}`, oninput: () => { wanted = search.value.trim().toLowerCase(); current = -1; match(); draw(); },
    onkeydown: (event) => { if ((event as KeyboardEvent).key === "Enter") next(); } });
  const nextButton = h("button", { type: "button", class: "plain", onclick: () => next() }, "Next");
  const whole = h("button", { type: "button", class: "plain", onclick: () => zoom(0, rows.end) }, "Whole");

  function match() {
    found = [];
    if (wanted) rows.spans.forEach((s, k) => { if (s.find.toLowerCase().includes(wanted)) found.push(k); });
    found.sort((a, b) => rows.spans[a].start - rows.spans[b].start);
    matches.textContent = wanted ? `${found.length} found` : "";
    nextButton.disabled = found.length === 0;
  }
  function next() {
    if (!found.length) return;
    current = (current + 1) % found.length;
    matches.textContent = `${current + 1} of ${found.length}`;
    const s = rows.spans[found[current]];
    const margin = Math.max(2 * s.us, rows.end / 2000);
    zoom(s.start - margin, s.start + s.us + margin);
  }
  function show() {
    from.value = instant(window[0]);
    to.value = instant(window[1]);
  }
  function read() {
    const a = parseTime(from.value), b = parseTime(to.value);
    if (a !== undefined && b !== undefined && b > a) zoom(a, b);
    else show();
  }
  function zoom(a: number, b: number) {
    window = [Math.max(0, a), Math.min(rows.end, b)];
    if (!(window[1] > window[0])) window = [0, rows.end];
    show();
    draw();
  }
  function draw() { redraw(place, heightOf(rows)); }

  const option = () => {
    const hit = new Set(found);
    const text = color("text");
    const fills = rows.spans.map((s) => inkOn(s.fill));
    return {
      tooltip: { ...tooltip(), formatter: (p: { dataIndex: number }) => `<b>${escape(rows.spans[p.dataIndex].name)}</b><br>${rows.spans[p.dataIndex].note}` },
      grid: { left: widest(rows.names), right: 30, top: 8, bottom: 62, outerBoundsMode: "none" },
      dataZoom: [
        { type: "inside", filterMode: "weakFilter", startValue: window[0], endValue: window[1] },
        { type: "slider", filterMode: "weakFilter", startValue: window[0], endValue: window[1], height: 18, bottom: 8, left: widest(rows.names), right: 30, showDetail: false, borderColor: color("line") },
      ],
      xAxis: timeAxis(rows.end, tick, window),
      yAxis: { type: "category", data: rows.names, inverse: true, axisTick: { show: false }, axisLabel: { interval: 0 } },
      series: [{
        type: "custom", encode: { x: [1, 2], y: 0 }, progressive: 2000,
        data: rows.spans.map((s) => [s.at, s.start, s.start + s.us]),
        renderItem: (params: { coordSys: { x: number; width: number }; dataIndex: number }, api: { value(i: number): number; coord(v: number[]): number[]; size(v: number[]): number[] }) => {
          const s = rows.spans[params.dataIndex];
          const [x0, y] = api.coord([api.value(1), api.value(0)]);
          const [x1] = api.coord([api.value(2), api.value(0)]);
          const tall = api.size([0, 1])[1] * 0.68;
          const left = Math.max(x0, params.coordSys.x), right = Math.min(x1, params.coordSys.x + params.coordSys.width);
          if (right < left) return null;
          const width = Math.max(right - left, 0.7);
          const dim = wanted !== "" && !hit.has(params.dataIndex);
          // Names that do not fit are in the tooltip.
          const fits = width > charWidth * s.name.length + 8;
          return {
            type: "rect", shape: { x: left, y: y - tall / 2, width, height: tall, r: width > 5 ? 2 : 0 },
            style: { fill: s.fill, opacity: dim ? 0.12 : s.pale ? 0.3 : 1, stroke: hit.has(params.dataIndex) ? text : undefined, lineWidth: hit.has(params.dataIndex) ? 1.5 : 0 },
            textContent: fits && !dim ? { type: "text", style: { text: s.name, fill: s.pale ? text : fills[params.dataIndex], fontSize: 11 } } : undefined,
            textConfig: { position: "inside" },
          };
        },
      }],
    };
  };
  const place = chart(label, heightOf(rows), option, (made) => {
    drawn = made;
    followZoom(drawn, rows.end, tick, (a, b) => { window = [a, b]; show(); });
  });
  match();
  show();
  const element = h("div", {},
    h("div", { class: "tools" }, ...controls, search, nextButton, matches, h("span", { class: "window" }, "from ", from, " to ", to, " ", whole)), place);
  return {
    element, zoom,
    set: (other) => {
      rows = other;
      window = rows.shown ?? [0, rows.end];
      current = -1;
      match();
      show();
      draw();
    },
  };
}

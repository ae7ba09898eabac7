// SPDX-License-Identifier: Apache-2.0
// Host and device over several steps, and one step on the device.
import { boundColor, chart, color, escape, phaseColor, tooltip } from "../charts";
import { h, table, tabs } from "../dom";
import { count, instant, percent, share, time } from "../format";
import type { ActivityRow, EventRow, Gap, Report } from "../types";

const lanes: [string, string][] = [["program", "Program"], ["loader", "Loader"], ["link", "To device"], ["device", "Device"]];

// Spans on tracks: one custom series, zoomable along the time axis.
function spans(label: string, height: number, rows: string[], data: { at: number; start: number; us: number; fill: string; name: string; note: string; pale?: boolean }[], shown?: [number, number]): HTMLElement {
  const zoom = shown ? { startValue: shown[0], endValue: shown[1] } : {};
  return chart(label, height, () => ({
    tooltip: { ...tooltip(), formatter: (p: { dataIndex: number }) => `<b>${escape(data[p.dataIndex].name)}</b><br>${data[p.dataIndex].note}` },
    grid: { left: 96, right: 20, top: 10, bottom: 62 },
    dataZoom: [
      { type: "inside", filterMode: "weakFilter", ...zoom },
      { type: "slider", filterMode: "weakFilter", ...zoom, height: 18, bottom: 8, borderColor: color("line"), textStyle: { color: color("quiet") }, labelFormatter: instant },
    ],
    xAxis: { type: "value", min: "dataMin", max: "dataMax", axisLabel: { formatter: instant, hideOverlap: true } },
    yAxis: { type: "category", data: rows, inverse: true, axisTick: { show: false } },
    series: [{
      type: "custom", encode: { x: [1, 2], y: 0 }, progressive: 2000,
      data: data.map((d) => [d.at, d.start, d.start + d.us]),
      renderItem: (params: { coordSys: { x: number; width: number }; dataIndex: number }, api: { value(i: number): number; coord(v: number[]): number[]; size(v: number[]): number[] }) => {
        const d = data[params.dataIndex];
        const [x0, y] = api.coord([api.value(1), api.value(0)]);
        const [x1] = api.coord([api.value(2), api.value(0)]);
        const tall = api.size([0, 1])[1] * 0.68;
        const left = Math.max(x0, params.coordSys.x), right = Math.min(x1, params.coordSys.x + params.coordSys.width);
        if (right < left) return null;
        const width = Math.max(right - left, 0.7);
        return {
          type: "rect", shape: { x: left, y: y - tall / 2, width, height: tall, r: width > 5 ? 2 : 0 },
          style: { fill: d.fill, opacity: d.pale ? 0.28 : 1 },
          textContent: width > 44 ? { type: "text", style: { text: d.name, fill: d.pale ? color("text") : color("ink"), fontSize: 11, width: width - 8, overflow: "truncate" } } : undefined,
          textConfig: { position: "inside" },
        };
      },
    }],
  }));
}

export function host(r: Report): HTMLElement {
  const used = lanes.filter(([lane]) => r.host.activities.some((a) => a[0] === lane));
  const rows = used.map(([, name]) => name);
  const place = new Map(used.map(([lane], at) => [lane, at]));
  const data = r.host.activities.map(([lane, phase, step, start, us, waits]: ActivityRow) => ({
    at: place.get(lane)!, start, us, fill: phaseColor(phase), pale: waits === 1, name: lane === "device" ? `step ${step}` : phase,
    note: `${waits ? "waits " : ""}${time(us)}, step ${step}, at ${time(start)}`,
  }));
  for (const gap of r.gaps.list) {
    data.push({ at: place.get("device")!, start: gap.start_us, us: gap.time_us, fill: color("idle"), pale: true, name: `gap: ${gap.filled_by}`, note: `nothing to run for ${time(gap.time_us)}<br>${gap.parts.map((p) => `${escape(p.phase)} ${time(p.time_us)}`).join("<br>")}` });
  }
  // A compilation at the start would leave no space for the steps.
  const end = Math.max(0, ...data.map((d) => d.start + d.us));
  const begin = Math.min(...r.host.activities.filter((a) => a[2] >= r.host.steady_from).map((a) => a[3]));
  const steady: [number, number] | undefined = end - begin < 0.25 * end ? [begin, end] : undefined;
  const phases = [...new Set(r.host.activities.filter((a) => a[0] !== "device").map((a) => a[1]))];
  const section = h("section", { id: "host", "data-nav": "Host and gaps" }, h("h2", {}, "The host and the gaps on the device"),
    h("p", { class: "lead" }, `${count(r.host.steps)} steps, host times from ${r.host.source}. A gap is time in which the device has nothing to run; each is explained by what the next execution waited for.${steady ? " The chart begins at the steady state; widen the bar below it for the start." : ""}`));
  section.append(h("div", { class: "card" },
    h("div", { class: "legend" }, ...phases.map((p) => h("span", {}, h("i", { class: "chip", style: `background:${phaseColor(p)}` }), p)),
      h("span", {}, h("i", { class: "chip", style: `background:${color("idle")};opacity:.35` }), "gap on the device")),
    spans("Timeline of the host’s threads and the device", 60 + 44 * rows.length + 40, rows, data, steady)));
  const perStep = table("Host phases in the steady state", [
    { head: "phase", text: true, cell: (p) => h("span", {}, h("i", { class: "chip", style: `background:${phaseColor(p.phase)}` }), p.phase) },
    { head: "a step", cell: (p) => time(p.time_per_step_us), key: (p) => p.time_per_step_us },
    { head: "device idle for it", cell: (p) => time(p.device_idle_per_step_us), key: (p) => p.device_idle_per_step_us },
    { head: "of the step", cell: (p) => percent(share(p.device_idle_per_step_us, r.step_time_us)), key: (p) => p.device_idle_per_step_us },
  ], r.host.phases);
  const gaps = table<Gap>("Gaps on the device", [
    { head: "at", cell: (g) => time(g.start_us), key: (g) => g.start_us },
    { head: "gap", cell: (g) => time(g.time_us), key: (g) => g.time_us },
    { head: "before", text: true, cell: (g) => `step ${g.before_step}`, key: (g) => g.before_step },
    { head: "filled by", text: true, cell: (g) => h("b", {}, g.filled_by), key: (g) => g.filled_by },
    { head: "in order", text: true, wide: true, cell: (g) => g.parts.map((p) => `${p.phase} ${time(p.time_us)}`).join(", ") },
  ], r.gaps.list, { page: 8 });
  section.append(h("div", { class: "columns unlike", style: "margin-top:14px" },
    h("div", { class: "card" }, h("h3", { style: "margin-top:0" }, "A step of the host in the steady state"), perStep),
    h("div", { class: "card" }, h("h3", { style: "margin-top:0" }, r.gaps.count ? `${count(r.gaps.count)} gap${r.gaps.count === 1 ? "" : "s"}, ${time(r.gaps.time_us)} in all` : "No gaps"), gaps)));
  return section;
}

export function device(r: Report): HTMLElement {
  const depths = Math.max(1, ...r.timeline.events.filter((e) => e[0] === 0).map((e) => e[1] + 1));
  const rows = Array.from({ length: depths }, (_, d) => (d === 0 ? "Core" : `inside ${d}`));
  const lineRows = [0, 0, 0];
  for (const [line, name] of [[1, "Concurrent"], [2, "Core stalls"]] as [number, string][]) {
    if (!r.timeline.events.some((e) => e[0] === line)) continue;
    lineRows[line] = rows.length;
    rows.push(name);
  }
  const place = (e: EventRow) => (e[0] === 0 ? e[1] : lineRows[e[0]]);
  const data = r.timeline.events.map((e) => ({
    at: place(e), start: e[2], us: e[3], fill: e[0] === 2 ? color("idle") : boundColor(e[5]), pale: e[0] === 2,
    name: e[6] > 1 ? `${e[6]} operations` : e[4],
    note: `${time(e[3])} at ${time(e[2])}${e[5] ? `, bound by ${escape(e[5])}` : ""}${e[6] > 1 ? `<br>the longest is ${escape(e[4])}` : ""}`,
  }));
  const bounds = [...new Set(r.timeline.events.map((e) => e[5]).filter(Boolean))];
  const waits = table("Stalls of the core", [
    { head: "time", cell: (w) => time(w.time_us), key: (w) => w.time_us },
    { head: "of the step", cell: (w) => percent(share(w.time_us, r.step_time_us)), key: (w) => w.time_us },
    { head: "times", cell: (w) => count(w.runs), key: (w) => w.runs },
    { head: "waiting for", text: true, wide: true, cell: (w) => h("span", { class: "mono" }, w.waiting_for), key: (w) => w.waiting_for },
    { head: "stalled", text: true, wide: true, cell: (w) => h("span", { class: "mono" }, w.stalled), key: (w) => w.stalled },
    { head: "scope", text: true, wide: true, cell: (w) => w.scope ?? "" },
  ], r.core_stalls, { page: 8 });
  return h("section", { id: "device", "data-nav": "Device" }, h("h2", {}, "One step on the device"),
    h("p", { class: "lead" }, "Kernels on the core, colored by what bounds them; concurrent collectives and copies; the stalls of the core. Scroll to zoom, drag to move. Adjacent operations too short to see are merged."),
    h("div", { class: "card" },
      h("div", { class: "legend" }, ...bounds.map((b) => h("span", {}, h("i", { class: "chip", style: `background:${boundColor(b)}` }), `bound by ${b}`))),
      tabs("Device", [
        ["Timeline", () => spans("Timeline of one step on the device", 70 + 36 * rows.length + 40, rows, data)],
        [`Stalls (${count(r.core_stalls.length)})`, () => waits],
      ])));
}

// SPDX-License-Identifier: Apache-2.0
// Host and device over several steps, and the steps of each device.
import { escape, roundedEnd } from "../charts";
import { categoryColor, color, fillOf, phaseColor } from "../../../common/colors";
import { h, table, tabs } from "../../../common/dom";
import { count, percent, share, time } from "../../../common/format";
import { missing } from "../missing";
import { timeline, type Rows, type Span } from "../spans";
import { threads } from "./threads";
import { utilization } from "./utilization";
import type { ActivityRow, EventRow, Gap, Report } from "../types";

const lanes: [string, string][] = [["program", "Program"], ["loader", "Loader"], ["link", "To device"], ["device", "Device"]];
const maxSpanDepth = 4;

const chip = (background: string, name: string) => h("span", {}, h("i", { class: "chip", style: `background:${background}` }), name);

function choice(label: string, options: [string, string][], changed: (value: string) => void): HTMLElement {
  const id = `choice-${label.replace(/\W+/g, "-").toLowerCase()}`;
  const select = h("select", { id, onchange: () => changed(select.value) });
  for (const [value, name] of options) select.append(h("option", { value }, name));
  return h("span", { class: "choice" }, h("label", { for: id }, label), " ", select);
}

// Spans of the program nested by their times.
function userRows(r: Report): { depth: number; spans: { depth: number; scope: string; step: number; start: number; us: number }[] } {
  const open: number[] = [];
  const spans = [...r.host.spans].sort((a, b) => a[2] - b[2] || b[3] - a[3]).map(([scope, step, start, us]) => {
    while (open.length && start >= open[open.length - 1] - 1e-6) open.pop();
    const depth = Math.min(open.length, maxSpanDepth - 1);
    open.push(start + us);
    return { depth, scope, step, start, us };
  });
  return { depth: spans.length ? 1 + Math.max(...spans.map((s) => s.depth)) : 0, spans };
}

const stepEnds = (r: Report) => new Map(r.host.activities.filter((a) => a[0] === "device").map((a) => [a[2], a]));

function hostRows(r: Report): Rows {
  const used = lanes.filter(([lane]) => r.host.activities.some((a) => a[0] === lane));
  const user = userRows(r);
  const names: string[] = [];
  const place = new Map<string, number>();
  for (const [lane, name] of used) {
    place.set(lane, names.length);
    names.push(name);
    if (lane !== "program") continue;
    for (let d = 0; d < user.depth; ++d) names.push(d === 0 ? "Spans" : `Spans, level ${d + 1}`);
  }
  const spans: Span[] = r.host.activities.map(([lane, phase, step, start, us, waits]: ActivityRow) => ({
    at: place.get(lane)!, start, us, fill: phaseColor(phase), pale: waits === 1, name: lane === "device" ? `step ${step}` : phase,
    find: lane === "device" ? `step ${step}` : `${phase} step ${step}`,
    note: `${waits ? "waits " : ""}${time(us)}, step ${step}, at ${time(start)}`,
  }));
  for (const s of user.spans) {
    const name = s.scope.split("/").pop()!;
    spans.push({ at: (place.get("program") ?? 0) + 1 + s.depth, start: s.start, us: s.us, fill: color("user"), name, find: s.scope, note: `${escape(s.scope)}<br>${time(s.us)}, step ${s.step}, at ${time(s.start)}` });
  }
  for (const gap of r.gaps.list) {
    spans.push({ at: place.get("device")!, start: gap.start_us, us: gap.time_us, fill: color("idle"), pale: true, name: `gap: ${gap.filled_by}`, find: `gap ${gap.filled_by}`, note: `nothing to run for ${time(gap.time_us)}<br>${gap.parts.map((p) => `${escape(p.phase)} ${time(p.time_us)}`).join("<br>")}` });
  }
  // A compilation at the start would leave no space for the steps.
  const end = Math.max(1e-3, ...spans.map((s) => s.start + s.us));
  const begin = Math.min(...r.host.activities.filter((a) => a[2] >= r.host.steady_from).map((a) => a[3]));
  return { names, spans, end: roundedEnd(end), shown: end - begin < 0.25 * end ? [begin, end] : undefined };
}

export function host(r: Report): HTMLElement {
  const rows = hostRows(r);
  const phases = [...new Set(r.host.activities.filter((a) => a[0] !== "device").map((a) => a[1]))];
  const steps = [...stepEnds(r).keys()].sort((a, b) => a - b);
  const section = h("section", { id: "host", "data-nav": "Host and gaps" }, h("h2", {}, "The host and the gaps on the device"),
    h("p", { class: "lead" }, `${count(r.host.steps)} steps, host times from ${r.host.source}. A gap is time in which the device has nothing to run; each is explained by what the next execution waited for.${rows.shown ? " The chart begins at the steady state; widen the bar below it for the start." : ""}`));
  const steady = rows.shown;
  const chart = timeline("Timeline of the host’s threads and the device", rows, [
    choice("Host step", [["", "all"], ...steps.map((k): [string, string] => [String(k), String(k)])], (value) => {
      const of = r.host.activities.filter((a) => a[2] === Number(value));
      if (value === "" || !of.length) chart.zoom(...(steady ?? [0, rows.end]));
      else chart.zoom(Math.min(...of.map((a) => a[3])), Math.max(...of.map((a) => a[3] + a[4])));
    })]);
  section.append(h("div", { class: "card" },
    h("div", { class: "legend" }, ...phases.map((p) => chip(fillOf(`host: ${p}`), p)), r.host.spans.length ? chip("var(--user)", "spans of the program") : null,
      h("span", {}, h("i", { class: "chip", style: "background:var(--idle);opacity:.35" }), "gap on the device")),
    r.host.threads?.length ? tabs("Host", [["Phases", () => chart.element], [`Threads (${count(r.host.threads.length)})`, () => threads(r)]]) : chart.element,
    r.host.spans.length ? null : missing(r, "spans")));
  const perStep = table("Host phases in the steady state", [
    { head: "phase", text: true, cell: (p) => chip(fillOf(`host: ${p.phase}`), p.phase) },
    { head: "a step", cell: (p) => time(p.time_per_step_us), key: (p) => p.time_per_step_us },
    { head: "device idle", cell: (p) => time(p.device_idle_per_step_us), key: (p) => p.device_idle_per_step_us },
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
    h("div", { class: "card" }, h("h3", { style: "margin-top:0" }, "A step of the host in the steady state"), perStep, r.host.phases.length > 1 ? null : missing(r, "host")),
    h("div", { class: "card" }, h("h3", { style: "margin-top:0" }, r.gaps.count ? `${count(r.gaps.count)} gap${r.gaps.count === 1 ? "" : "s"}, ${time(r.gaps.time_us)} in all` : "No gaps"),
      r.gaps.count ? gaps : h("p", { class: "quiet" }, "The device always has a step to run."))));
  return section;
}

const note = (e: EventRow) => `${time(e[3])} at ${time(e[2])}${e[7] ? `, ${escape(e[7])}` : ""}${e[5] ? `, bound by ${escape(e[5])}` : ""}${e[6] > 1 ? `<br>the longest is ${escape(e[4])}` : ""}`;
const spanOf = (e: EventRow, at: number, offset: number): Span => ({
  at, start: e[2] + offset, us: e[3], fill: e[0] === 2 ? color("idle") : categoryColor(e[7] || "other"), pale: e[0] === 2,
  name: e[6] > 1 ? `${e[6]} operations` : e[4], find: `${e[4]} ${e[7]}`, note: note(e),
});

// One device: its core, what is nested in loops and calls, what runs beside the core, and its stalls.
function deviceRows(events: EventRow[], offset: number, end: number, shown?: [number, number]): Rows {
  const depths = Math.max(1, ...events.filter((e) => e[0] === 0).map((e) => e[1] + 1));
  const names = Array.from({ length: depths }, (_, d) => (d === 0 ? "Core" : `inside ${d}`));
  const lineRows = [0, 0, 0];
  for (const [line, name] of [[1, "Concurrent"], [2, "Core stalls"]] as [number, string][]) {
    if (!events.some((e) => e[0] === line)) continue;
    lineRows[line] = names.length;
    names.push(name);
  }
  return { names, end, shown, spans: events.map((e) => spanOf(e, e[0] === 0 ? e[1] : lineRows[e[0]], offset)) };
}

// All devices: one row for each, with its kernels and stalls.
function allRows(r: Report, offset: number, end: number, shown?: [number, number]): Rows {
  const names = r.timeline.devices.map((d) => `${d.straggler ? "slow " : ""}device ${d.device}`);
  const spans = r.timeline.devices.flatMap((d, at) => d.events.filter((e) => (e[0] === 0 && e[1] === 0) || e[0] === 2).map((e) => spanOf(e, at, offset)));
  return { names, end, shown, spans };
}

export function device(r: Report): HTMLElement {
  const devices = r.timeline.devices;
  const all = devices.flatMap((d) => d.events);
  const categories = [...new Set(all.map((e) => e[7]).filter(Boolean))].sort();
  const steps = [...stepEnds(r).values()].sort((a, b) => a[2] - b[2]);
  const last = Math.max(1e-3, r.device_time_us, ...all.map((e) => e[2] + e[3]));
  const several = devices.length > 1;
  let chosen = several ? "all" : "0";
  let step = "";
  const rows = (): Rows => {
    const begin = step === "" ? undefined : steps.find((a) => a[2] === Number(step));
    const offset = begin ? begin[3] : 0;
    const end = roundedEnd(offset + last);
    const shown: [number, number] | undefined = begin ? [offset, Math.min(end, offset + Math.max(last, begin[4]))] : undefined;
    return chosen === "all" ? allRows(r, offset, end, shown) : deviceRows(devices[Number(chosen)].events, offset, end, shown);
  };
  const chart = timeline("Timeline of one step on the device", rows(), [
    choice("Device", [...(several ? [["all", "all"] as [string, string]] : []), ...devices.map((d): [string, string] => [String(d.device), `${d.device}${d.straggler ? " (slow)" : ""}`])],
      (value) => { chosen = value; chart.set(rows()); }),
    choice("Step", [["", "from 0"], ...steps.map((a): [string, string] => [String(a[2]), String(a[2])])], (value) => { step = value; chart.set(rows()); }),
  ]);
  const waits = table("Stalls of the core", [
    { head: "time", cell: (w) => time(w.time_us), key: (w) => w.time_us },
    { head: "of the step", cell: (w) => percent(share(w.time_us, r.step_time_us)), key: (w) => w.time_us },
    { head: "times", cell: (w) => count(w.runs), key: (w) => w.runs },
    { head: "waiting for", text: true, wide: true, cell: (w) => h("span", { class: "mono" }, w.waiting_for), key: (w) => w.waiting_for },
    { head: "stalled", text: true, wide: true, cell: (w) => h("span", { class: "mono" }, w.stalled), key: (w) => w.stalled },
    { head: "scope", text: true, wide: true, cell: (w) => w.scope ?? "" },
  ], r.core_stalls, { page: 8 });
  const shownDevices = several && devices.length < r.timeline.count ? ` The first ${count(devices.length)} of ${count(r.timeline.count)} devices.` : "";
  return h("section", { id: "device", "data-nav": "Device" }, h("h2", {}, "One step on the device"),
    h("p", { class: "lead" }, `Kernels on the core, colored by category; concurrent collectives and copies; the stalls of the core. Scroll to zoom, drag to move. Adjacent operations too short to see are merged.${r.workers.homogeneous || several ? "" : " All devices have the same times."}${shownDevices}`),
    h("div", { class: "card" },
      h("div", { class: "legend" }, ...categories.map((c) => chip(fillOf(c), c)), all.some((e) => e[0] === 2) ? h("span", {}, h("i", { class: "chip", style: "background:var(--idle);opacity:.35" }), "stall") : null),
      tabs("Device", [
        ["Timeline", () => chart.element],
        ["Utilization", () => utilization(r)],
        [`Stalls (${count(r.core_stalls.length)})`, () => (r.core_stalls.length ? waits : h("p", { class: "quiet" }, "The core never stalls: nothing it needs arrives late."))],
      ])));
}

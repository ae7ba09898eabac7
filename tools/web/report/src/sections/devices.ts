// SPDX-License-Identifier: Apache-2.0
// Devices: compute time, stalls and stragglers, and collectives.
import { chart, roundedEnd, tickStep, tooltip } from "../charts";
import { color } from "../../../common/colors";
import { h, table } from "../../../common/dom";
import { bytes, count, percent, rate, share, tick, time } from "../../../common/format";
import { missing } from "../missing";
import type { Report, Worker } from "../types";

const parts: [keyof Worker, string, string][] = [
  ["compute_us", "compute", "matmul"], ["exposed_communication_us", "exposed communication", "all-gather"],
  ["sync_wait_us", "synchronization stall", "idle"], ["other_wait_us", "other stalls", "convolution"], ["idle_us", "done early", "unknown"],
];
const mostBars = 1024;

function bars(devices: Worker[]): HTMLElement {
  const most = Math.max(1e-3, ...devices.map((d) => parts.reduce((sum, [key]) => sum + d[key], 0)));
  return chart(`Time of ${devices.length} devices by what they do`, 260, () => ({
    tooltip: { ...tooltip(), trigger: "axis", formatter: (p: { dataIndex: number }[]) => {
      const d = devices[p[0].dataIndex];
      return `<b>device ${d.device}</b><br>${parts.map(([key, name]) => `${name}: ${time(d[key])}`).join("<br>")}`;
    } },
    grid: { left: 92, right: 20, top: 14, bottom: 38 },
    xAxis: { type: "category", data: devices.map((d) => d.device), name: "device", nameLocation: "middle", nameGap: 22 },
    yAxis: { type: "value", max: roundedEnd(most, 5), interval: tickStep(most, 5), axisLabel: { formatter: tick } },
    series: parts.map(([key, name, hue]) => ({ name, type: "bar", stack: "all", barCategoryGap: devices.length > 128 ? 0 : "12%", large: devices.length > 256, itemStyle: { color: color(hue) }, data: devices.map((d) => d[key]) })),
  }));
}

export function devices(r: Report): HTMLElement {
  const workers = r.workers;
  if (!r.collectives.length && workers.count < 2) {
    return h("section", { id: "devices", "data-nav": "Between devices" }, h("h2", {}, "Between devices"), h("div", { class: "card" }, missing(r, "devices")));
  }
  const rows = workers.devices;
  const whole = r.device_time_us;
  const stragglers = workers.stragglers.length
    ? `Device${workers.stragglers.length > 1 ? "s" : ""} ${workers.stragglers.slice(0, 12).join(", ")}${workers.stragglers.length > 12 ? ", …" : ""} compute${workers.stragglers.length > 1 ? "" : "s"} so much longer that the others stall.`
    : workers.homogeneous ? "" : "No device stands out.";
  const each = table<Worker>("Devices", [
    { head: "device", cell: (d) => h("span", {}, workers.homogeneous ? "each" : d.device, workers.stragglers.includes(d.device) ? h("b", { class: "bad" }, " straggler") : ""), key: (d) => d.device },
    { head: "compute", cell: (d) => time(d.compute_us), key: (d) => d.compute_us },
    { head: "of the step", cell: (d) => percent(share(d.compute_us, whole)), key: (d) => d.compute_us },
    { head: "communication", cell: (d) => time(d.communication_us), key: (d) => d.communication_us },
    { head: "overlapped", cell: (d) => percent(share(d.hidden_communication_us, d.communication_us)), key: (d) => share(d.hidden_communication_us, d.communication_us) },
    { head: "exposed communication", cell: (d) => time(d.exposed_communication_us), key: (d) => d.exposed_communication_us },
    { head: "synchronization stall", cell: (d) => time(d.sync_wait_us), key: (d) => d.sync_wait_us },
    { head: "other stalls", cell: (d) => time(d.other_wait_us), key: (d) => d.other_wait_us },
    { head: "done early", cell: (d) => time(d.idle_us), key: (d) => d.idle_us },
  ], rows, { page: 16 });
  const kinds = table("Collectives by kind", [
    { head: "kind", text: true, cell: (c) => c.kind, key: (c) => c.kind },
    { head: "runs", cell: (c) => count(c.runs), key: (c) => c.runs },
    { head: "bytes", cell: (c) => bytes(c.bytes), key: (c) => c.bytes },
    { head: "on the links", cell: (c) => time(c.time_us), key: (c) => c.time_us },
    { head: "rate", cell: (c) => rate(c.bytes_per_second), key: (c) => c.bytes_per_second },
    { head: "efficiency", cell: (c) => percent(c.efficiency), key: (c) => c.efficiency },
    { head: "exposed", cell: (c) => time(c.exposed_us), key: (c) => c.exposed_us },
    { head: "synchronization stall", cell: (c) => time(c.sync_wait_us), key: (c) => c.sync_wait_us },
  ], r.collectives, { sort: 3 });
  return h("section", { id: "devices", "data-nav": "Between devices" }, h("h2", {}, "Between devices"),
    h("p", { class: "lead" }, `${count(workers.count)} devices on ${r.topology}; one link carries ${rate(r.peaks.ici_bytes_per_second_one_way)} each way. ${stragglers}`),
    h("div", { class: "card" }, rows.length > 1 ? h("div", { class: "legend" }, ...parts.map(([, name, hue]) => h("span", {}, h("i", { class: "chip", style: `background:var(--${hue})` }), name))) : null,
      workers.homogeneous && workers.count > 1 ? missing(r, "variation") : null, rows.length > 1 ? bars(rows.slice(0, mostBars)) : null,
      rows.length > mostBars ? h("p", { class: "quiet" }, `The chart shows the first ${count(mostBars)} of ${count(rows.length)} devices.`) : null, each),
    r.collectives.length ? h("div", { class: "card" }, h("h3", { style: "margin-top:0" }, "Collectives by kind, a device’s mean"), kinds) : h("div", { class: "card quiet" }, "The program has no collectives: its devices exchange nothing."));
}

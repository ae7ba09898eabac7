// What the chips say to each other.
import { h, table } from "../dom";
import { bytes, count, percent, rate, share, time } from "../format";
import type { Report } from "../types";

export function devices(r: Report): HTMLElement | null {
  if (!r.collectives.length) return null;
  const kinds = table("Collectives by kind", [
    { head: "kind", text: true, cell: (c) => c.kind, key: (c) => c.kind },
    { head: "instructions", cell: (c) => count(c.instructions), key: (c) => c.instructions },
    { head: "runs", cell: (c) => count(c.runs), key: (c) => c.runs },
    { head: "bytes", cell: (c) => bytes(c.bytes), key: (c) => c.bytes },
    { head: "on the links", cell: (c) => time(c.us), key: (c) => c.us },
    { head: "the core waits", cell: (c) => time(c.exposed_us), key: (c) => c.exposed_us },
    { head: "behind compute", cell: (c) => percent(1 - share(c.exposed_us, c.us)), key: (c) => 1 - share(c.exposed_us, c.us) },
    { head: "rate", cell: (c) => rate(c.bytes_per_second), key: (c) => c.bytes_per_second },
    { head: "of one axis", cell: (c) => percent(c.of_one_axis), key: (c) => c.of_one_axis },
  ], r.collectives, { sort: 4 });
  return h("section", { id: "devices", "data-nav": "Between devices" }, h("h2", {}, "Between devices"),
    h("p", { class: "lead" }, `${count(r.chips)} chips as ${r.topology}; one link carries ${rate(r.peaks.ici_bytes_per_second_one_way)} each way. Bytes are of the full array; “of one axis” is against both directions of one axis of the torus.`),
    h("div", { class: "card" }, kinds));
}

// SPDX-License-Identifier: Apache-2.0
// Scopes of the program: host time in each, and the device time that it caused.
import { chart, escape, tooltip } from "../charts";
import { color, inkOn, scopeColor } from "../../../common/colors";
import { h, table } from "../../../common/dom";
import { count, percent, share, time } from "../../../common/format";
import { missing } from "../missing";
import type { Report } from "../types";

interface Node {
  name: string;
  path: string;
  device: number;      // on the core
  concurrent: number;  // of collectives and copies
  own: number;
  host: number;
  mixed: number;
  kernels: number;
  depth: number;
  children: Map<string, Node>;
}

// Names are arbitrary and may contain any number of slashes.
const deepest = 40;

function tree(r: Report): Node {
  const root: Node = { name: "step", path: "", device: 0, concurrent: 0, own: 0, host: 0, mixed: 0, kernels: 0, depth: -1, children: new Map() };
  const walk = (path: string, leaf: boolean) => {
    let node = root;
    // The tracer numbers scopes in the program ("forward.1"), but not on the host.
    const parts = path ? path.split("/", deepest).map((part) => (r.host.scopes.length ? part.replace(/\.\d+$/, "") : part)) : ["(none named)"];
    const nodes = [root];
    // The last component of a device scope is the operation.
    for (const part of leaf && parts.length > 1 ? parts.slice(0, -1) : parts) {
      let child = node.children.get(part);
      if (!child) node.children.set(part, (child = { name: part, path: node.path ? `${node.path}/${part}` : part, device: 0, concurrent: 0, own: 0, host: 0, mixed: 0, kernels: 0, depth: node.depth + 1, children: new Map() }));
      nodes.push((node = child));
    }
    return nodes;
  };
  for (const s of r.scopes) {
    const nodes = walk(s.scope, true);
    for (const node of nodes) {
      node.device += s.time_us;
      node.concurrent += s.concurrent_us;
      node.mixed += s.in_mixed_kernels_us;
      node.kernels += s.kernels;
    }
    nodes[nodes.length - 1].own += s.time_us + s.concurrent_us;
  }
  for (const s of r.host.scopes) {
    const nodes = walk(s.scope, false);
    nodes[nodes.length - 1].host += s.time_per_step_us;
  }
  return root;
}

export function scopes(r: Report): HTMLElement {
  const root = tree(r);
  const rows: Node[] = [];
  const collect = (node: Node) => {
    const children = [...node.children.values()].sort((a, b) => b.device + b.host - a.device - a.host);
    for (const child of children) {
      if (rows.length < 3000) rows.push(child);
      collect(child);
    }
  };
  collect(root);
  // Skips scopes that contain everything: begins where the program divides.
  let first = root;
  while (first.children.size === 1 && [...first.children.values()][0].children.size > 0) first = [...first.children.values()][0];
  const hasHost = r.host.scopes.length > 0;
  const hasConcurrent = r.scopes.some((s) => s.concurrent_us > 0);
  const total = root.device + root.concurrent;
  type Leaf = { name: string; path: string; value: number; children?: Leaf[]; itemStyle?: { color: string }; label?: { color: string } };
  const leaf = (node: Node, top: string): Leaf => {
    const children = [...node.children.values()].map((c) => leaf(c, top));
    if (children.length && node.own > 0) children.push({ name: "own", path: `${node.path} (own)`, value: node.own });
    return { name: node.name, path: node.path, value: node.device + node.concurrent, children: children.length ? children : undefined, itemStyle: { color: scopeColor(top) }, label: { color: inkOn(scopeColor(top)) } };
  };
  const picture = chart("Device time by scope as nested areas; the table says the same", 340, () => ({
    tooltip: { ...tooltip(), formatter: (p: { data: Leaf }) => `<b>${escape(p.data.path || "step")}</b><br>${time(p.data.value)}, ${percent(share(p.data.value, total))} of all scopes` },
    series: [{
      type: "treemap", name: first.path || "step", data: [...first.children.values()].map((c) => leaf(c, c.name)), leafDepth: 2, roam: false, nodeClick: "zoomToNode", left: 0, right: 0, top: 0, bottom: 28, width: "auto", height: "auto",
      breadcrumb: { bottom: 0, itemStyle: { color: color("soft"), textStyle: { color: color("text") } } },
      label: { fontSize: 11.5, overflow: "truncate" },
      itemStyle: { borderColor: color("card"), borderWidth: 1, gapWidth: 1 },
      levels: [
        { itemStyle: { borderWidth: 0, gapWidth: 3 } },
        { upperLabel: { show: true, height: 21, color: color("text"), fontSize: 12 }, itemStyle: { borderColor: color("soft"), borderWidth: 3, gapWidth: 1 } },
        { itemStyle: { borderWidth: 1, gapWidth: 1 } },
      ],
    }],
  }));
  const list = table<Node>("Scopes", [
    { head: "scope", text: true, wide: true, cell: (n) => h("span", { style: `padding-left:${Math.min(n.depth, 8) * 16}px` }, n.name), key: (n) => n.path },
    ...(hasHost ? [{ head: "recorded on the host", cell: (n: Node) => (n.host ? time(n.host) : "–"), key: (n: Node) => n.host }] : []),
    { head: "on the core", cell: (n) => time(n.device), key: (n) => n.device },
    { head: "of the step on the device", cell: (n) => percent(share(n.device, r.device_time_us)), key: (n) => n.device },
    ...(hasConcurrent ? [{ head: "collectives and copies", cell: (n: Node) => (n.concurrent ? time(n.concurrent) : "–"), key: (n: Node) => n.concurrent }] : []),
    { head: "in mixed kernels", cell: (n) => (n.mixed ? percent(share(n.mixed, n.device)) : "–"), key: (n) => share(n.mixed, n.device) },
    { head: "kernels", cell: (n) => count(n.kernels), key: (n) => n.kernels },
  ], rows, { find: (n) => n.path, page: 30 });
  return h("section", { id: "scopes", "data-nav": "Scopes" }, h("h2", {}, "Scopes"),
    h("p", { class: "lead" }, `The parts the program names${hasHost ? ", with the host’s time to record them" : ""}, and the device time each caused, wherever the compiler put its work: a kernel’s time is shared among its instructions by their operations. Collectives and copies, which run beside the core or stall it, have a column of their own; areas count both.`),
    h("div", { class: "card" }, r.scopes.some((s) => s.scope) ? picture : missing(r, "scopes"), list));
}

// SPDX-License-Identifier: Apache-2.0
// What is known of the selected instruction or group.
import { h } from "../dom";
import { bytes, count, flops, percent, time } from "../format";
import { sourceLink } from "../source";
import { flagBits, statusNames, type Graph } from "./graph";
import { layoutPicture, shardingPicture } from "./tensors";

export interface Actions {
  select: (node: number) => void;
  toggle: (node: number) => void;
  neighborhood: (node: number, hops: number) => void;
  pathFrom: (node: number) => void;
  pathTo: (node: number) => void;
  isOpen: (node: number) => boolean;
  pathStart: () => number;
}

const listed = 40;

function nodeList(g: Graph, title: string, nodes: number[], actions: Actions): HTMLElement | null {
  if (!nodes.length) return null;
  let shown = listed;
  const list = h("ul", { class: "nodes" });
  const more = h("button", { type: "button", class: "plain", onclick: () => { shown += 200; fill(); } }, "Show more");
  const fill = () => {
    list.replaceChildren(...nodes.slice(0, shown).map((node) => h("li", {},
      h("button", { type: "button", class: "node mono", title: node < g.size ? g.shapeOf(node) : "", onclick: () => actions.select(node) }, g.labelOf(node)),
      h("span", { class: "quiet" }, node < g.size ? ` ${g.opcodeOf(node)} ${g.shapeOf(node).length > 40 ? `${g.shapeOf(node).slice(0, 38)}…` : g.shapeOf(node)}` : ` ${count(g.count[node])}`))));
    more.hidden = shown >= nodes.length;
  };
  fill();
  return h("section", {}, h("h3", {}, `${title} (${count(nodes.length)})`), list, more);
}

const fact = (name: string, value: Node | string | null | undefined | false) => (value ? [h("dt", {}, name), h("dd", {}, value)] : []);

function highlights(g: Graph, i: number): string {
  const flags = g.flags[i];
  const words: string[] = [];
  if (flags & flagBits.root) words.push("root");
  if (flags & flagBits.live) words.push(`live at the peak (${bytes(g.live[i])})`);
  if (flags & flagBits.donated) words.push("donated");
  if (flags & flagBits.dead) words.push("dead");
  if (flags & flagBits.recomputed) words.push("recomputed");
  if (flags & flagBits.effect) words.push("side effect");
  return words.join(", ");
}

function instruction(g: Graph, i: number, actions: Actions): HTMLElement[] {
  const shape = g.shapeOf(i), sharding = g.shardingOf(i);
  const callees = g.callees.get(i) ?? [];
  const literal = g.opcodeOf(i) === "constant" ? g.payloadOf(i) : "";
  const groups = /replica_groups=(\{\{.*?\}\}|\[[^\]]*\]<=\[[^\]]*\](?:T\([\d,]+\))?|\{\})/.exec(g.attributesOf(i));
  const trips = g.trips.get(i);
  const hops = h("input", { type: "number", min: 1, max: 50, value: "2", "aria-label": "hops" });
  const start = actions.pathStart();
  return [
    h("h2", { class: "mono" }, g.names[i]),
    h("p", { class: "mono shape" }, `${g.opcodeOf(i)} ${shape}`),
    g.isFolded(i) ? h("p", { class: "quiet folded" }, `Element ${g.placeOf(i)} of ${g.names[g.standInOf(i)]}, in the lines from it.`) : null,
    h("div", { class: "tools" },
      g.hasChildren(i) && h("button", { type: "button", class: "plain", onclick: () => actions.toggle(i) }, actions.isOpen(i) ? "Close" : "Open"),
      h("button", { type: "button", class: "plain", onclick: () => actions.neighborhood(i, Math.max(1, Number(hops.value) || 1)) }, "Neighborhood"), h("label", {}, hops, " hops"),
      h("button", { type: "button", class: "plain", onclick: () => actions.pathFrom(i) }, "Paths from here …"),
      start >= 0 && start !== i && h("button", { type: "button", class: "plain", onclick: () => actions.pathTo(i) }, `Paths from ${g.names[start]} to here`)),
    h("dl", {},
      ...fact("computation", g.computationNames[g.computationOf[i]]),
      ...fact("parameter", g.opcodeOf(i) === "parameter" && g.payloadOf(i)),
      ...fact("iterations", trips !== undefined && count(trips)),
      ...fact("groups", groups && (groups[1] === "{}" ? "all devices" : groups[1])),
      ...fact("result", bytes(g.resultBytes[i])),
      ...fact("bytes read and written", g.bytes[i] > 0 && bytes(g.bytes[i])),
      ...fact("operations", g.flops[i] > 0 && flops(g.flops[i])),
      ...fact("simulated time", g.hasTime && time(g.time[i])),
      ...fact("is", highlights(g, i)),
      ...fact("difference", g.compared && g.status[i] > 0 && statusNames[g.status[i]]),
      ...fact("scope", g.opNameOf(i)),
      ...fact("source", g.sourceOf(i) && (sourceLink(g.sourceOf(i)) as Node)),
      ...fact("calls", callees.length > 0 && callees.map((c) => g.computationNames[c]).join(", "))),
    g.differencesOf(i) ? h("section", {}, h("h3", {}, "Differences"), h("pre", {}, g.differencesOf(i))) : null,
    g.remarksOf(i) ? h("section", {}, h("h3", {}, "Why"), h("pre", {}, g.remarksOf(i))) : null,
    literal ? h("section", {}, h("h3", {}, "Value"), h("pre", {}, literal)) : null,
    sharding ? h("section", {}, h("h3", {}, "Sharding"), h("pre", {}, sharding), shardingPicture(shape, sharding)) : null,
    /\{.*\}/.test(shape) ? h("section", {}, h("h3", {}, "Layout"), layoutPicture(shape) ?? h("p", { class: "quiet" }, "in the shape")) : null,
    g.attributesOf(i) ? h("section", {}, h("h3", {}, "Attributes"), h("pre", {}, g.attributesOf(i))) : null,
    nodeList(g, "Operands", Array.from(g.operandsOf(i)), actions),
    nodeList(g, "Users", [...new Set(g.usersOf(i))], actions),
    nodeList(g, "Called computations end in", callees.map((c) => g.computationRoot[c]).filter((root) => root >= 0), actions),
  ].filter((element) => element !== null);
}

function opcodes(g: Graph, group: number): [string, number][] {
  const counts = new Map<string, number>();
  const stack = [group];
  while (stack.length) {
    const node = stack.pop()!;
    if (node < g.size) counts.set(g.opcodeOf(node), (counts.get(g.opcodeOf(node)) ?? 0) + 1);
    for (const child of g.childrenOf(node)) stack.push(child);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

function group(g: Graph, node: number, actions: Actions): HTMLElement[] {
  const list = opcodes(g, node);
  const children = Array.from(g.childrenOf(node));
  const whole = g.time[g.root];
  return [
    h("h2", { class: "mono" }, g.labelOf(node)),
    h("p", { class: "shape" }, node === g.root ? `module${g.file ? ` of ${g.file}` : ""}` : g.kindOf(node)),
    node === g.root && g.causes.length ? h("section", {}, h("h3", {}, "What changed"), h("ul", {}, ...g.causes.map((cause) => h("li", {}, cause)))) : null,
    node !== g.root ? h("div", { class: "tools" }, h("button", { type: "button", class: "plain", onclick: () => actions.toggle(node) }, actions.isOpen(node) ? "Close" : "Open")) : null,
    h("dl", {},
      ...fact("instructions", count(g.count[node])),
      ...fact("bytes read and written", bytes(g.bytes[node])),
      ...fact("operations", flops(g.flops[node])),
      ...fact("simulated time", g.hasTime && `${time(g.time[node])}${whole > 0 ? ` (${percent(g.time[node] / whole)})` : ""}`),
      ...fact("live at the peak", g.live[node] > 0 && bytes(g.live[node])),
      ...fact("peak of live buffers", node === g.root && g.peakBytes > 0 && bytes(g.peakBytes)),
      ...fact("numbers", node === g.root && g.wholeOf > 1 && `not partitioned: of all ${count(g.wholeOf)} devices, before fusion`),
      ...fact("devices", node === g.root && g.devices > 1 && count(g.devices)),
      ...fact("simulated on", node === g.root && g.device)),
    h("section", {}, h("h3", {}, "Opcodes"), h("ul", { class: "nodes" }, ...list.slice(0, 12).map(([opcode, n]) => h("li", {}, h("span", { class: "mono" }, opcode), h("span", { class: "quiet" }, ` ${count(n)}`))),
      list.length > 12 ? h("li", { class: "quiet" }, `and ${list.length - 12} more`) : null)),
    nodeList(g, "Contains", children.sort((a, b) => g.bytes[b] - g.bytes[a] || a - b), actions),
  ].filter((element) => element !== null);
}

export function details(g: Graph, node: number, actions: Actions): HTMLElement[] {
  return node < g.size ? instruction(g, node, actions) : group(g, node, actions);
}

// One sentence for a screen reader.
export function spoken(g: Graph, node: number, open: boolean): string {
  if (node >= g.size) return `${g.kindOf(node)} ${g.labelOf(node)}, ${count(g.count[node])} instructions, ${open ? "open" : "closed"}`;
  const inside = g.hasChildren(node) ? `, ${count(g.count[node] - 1)} inside, ${open ? "open" : "closed"}` : "";
  const folded = g.isFolded(node) ? `, in the lines from ${g.names[g.standInOf(node)]}` : "";
  return `${g.names[node]}, ${g.opcodeOf(node)} ${g.shapeOf(node)}${folded}, ${g.operandsOf(node).length} operands, ${g.usersOf(node).length} users${inside}`;
}

// SPDX-License-Identifier: Apache-2.0
// Positions of boxes: each group is laid out by itself by ELK, in a worker, once; the groups around what opens or closes
// are only stretched.
import ELK, { type ElkNode } from "elkjs/lib/elk-api.js";
import { inflated } from "./graph";
import { stretch, type BaseLayout, type Point, type Route, type Size } from "./stretch";

export type { Size };
export interface Link { from: number; to: number; bytes: number }
export interface Placed {
  size: Size;
  at: Map<number, Point>;  // of the children, in the group
  routes: Route[];                       // of the links: points in the group; none of those that are not routed
}

interface Base { layout: BaseLayout; drawn: number[] }  // drawn: the indices of the links with a route

export const header = 26;  // above the children of a group
const padding = 12;

const options = {
  "elk.algorithm": "layered",
  "elk.direction": "DOWN",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.layered.spacing.nodeNodeBetweenLayers": "26",
  "elk.layered.spacing.edgeNodeBetweenLayers": "9",
  "elk.layered.spacing.edgeEdgeBetweenLayers": "5",
  "elk.spacing.nodeNode": "16",
  "elk.spacing.edgeNode": "9",
  "elk.spacing.edgeEdge": "5",
  "elk.separateConnectedComponents": "false",
  "elk.layered.thoroughness": "4",
  "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF",
  "elk.layered.nodePlacement.bk.fixedAlignment": "BALANCED",
  "elk.layered.considerModelOrder.strategy": "NONE",
  "elk.layered.mergeEdges": "true",
};
// A few long layers are a strip that cannot be read as a whole: a group with so many children that is so many times as wide as
// high is laid out again with fewer children in a layer.
const stripChildren = 12, stripAspect = 2.5;
const folded = (children: number) => ({ ...options, "elk.layered.layering.strategy": "COFFMAN_GRAHAM", "elk.layered.layering.coffmanGraham.layerBound": String(Math.ceil(Math.sqrt(children))) });
// Where nearly all is connected with all, routes take long and show nothing: only so many links are routed.
const maxRouted = 80;

let engine: Promise<InstanceType<typeof ELK>> | undefined;
export function startLayout() {
  engine ??= inflated("layout-worker").then((script) => {
    const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    return new ELK({ workerFactory: () => new Worker(url), algorithms: ["layered"] });
  });
  return engine;
}

// Returns the indices of the links to route. Of many those are left out that follow from others, a -> c beside
// a -> b -> c, but for the largest.
function routed(children: number[], links: Link[]): number[] {
  const all = links.map((_, k) => k);
  if (links.length <= maxRouted) return all;
  const next = new Map<number, number[]>(children.map((child) => [child, []]));
  for (const link of links) next.get(link.from)!.push(link.to);
  const follows = (link: Link): boolean => {
    const seen = new Set([link.from]);
    const stack = next.get(link.from)!.filter((to) => to !== link.to);
    while (stack.length) {
      const node = stack.pop()!;
      if (node === link.to) return true;
      if (seen.has(node)) continue;
      seen.add(node);
      stack.push(...next.get(node)!);
    }
    return false;
  };
  const needed = all.filter((k) => !follows(links[k]));
  const rest = all.filter((k) => follows(links[k])).sort((a, b) => links[b].bytes - links[a].bytes || a - b);
  return [...needed, ...rest.slice(0, Math.max(0, maxRouted - needed.length))].sort((a, b) => a - b);
}

// Lays out boxes of these sizes.
async function layOutBase(children: number[], sizes: Map<number, Size>, links: Link[]): Promise<Base> {
  const elk = await startLayout();
  const shown = routed(children, links);
  const linked = new Set(shown.flatMap((index) => [links[index].from, links[index].to]));
  const graph: ElkNode = {
    id: "group",
    layoutOptions: options,
    children: children.filter((child) => linked.has(child)).map((child) => ({ id: String(child), ...sizes.get(child)! })),
    edges: shown.map((index) => ({ id: `e${index}`, sources: [String(links[index].from)], targets: [String(links[index].to)] })),
  };
  const at = new Map<number, Point>(children.map((child) => [child, { x: 0, y: 0 }]));
  const routes: Route[] = links.map(() => []);
  if (linked.size) {
    let result = await elk.layout(graph);
    if (linked.size >= stripChildren && result.width! > stripAspect * result.height!) {
      const other = await elk.layout({ ...graph, layoutOptions: folded(linked.size) });
      if (Math.max(other.width!, stripAspect * other.height!) < result.width!) result = other;
    }
    for (const child of result.children!) at.set(Number(child.id), { x: child.x!, y: child.y! });
    result.edges!.forEach((edge, k) => {
      const section = edge.sections?.[0];
      if (section) routes[shown[k]] = [section.startPoint, ...(section.bendPoints ?? []), section.endPoint].map((p): [number, number] => [p.x, p.y]);
    });
  }
  const drawn = shown.filter((index) => routes[index].length > 1);
  return { layout: { at, sizes, links: drawn.map((index) => ({ from: links[index].from, to: links[index].to, route: routes[index] })) }, drawn };
}

// Lays out a group once, with all its children closed, and fits that to what is open.
export class GroupLayout {
  private constructor(private readonly base: Base, private readonly links: number) {}
  static async create(children: number[], closed: Map<number, Size>, links: Link[]) {
    return new GroupLayout(await layOutBase(children, closed, links), links.length);
  }
  placed(sizes: Map<number, Size>): Placed {
    const { at, routes, size } = stretch(this.base.layout, sizes);
    for (const point of at.values()) { point.x += padding; point.y += header + padding; }
    const all: Route[] = Array.from({ length: this.links }, () => []);
    routes.forEach((route, k) => { all[this.base.drawn[k]] = route.map(([x, y]) => [x + padding, y + header + padding]); });
    return { size: { width: size.width + 2 * padding, height: size.height + header + 2 * padding }, at, routes: all };
  }
}

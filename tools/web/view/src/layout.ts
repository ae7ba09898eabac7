// SPDX-License-Identifier: Apache-2.0
// Positions of boxes: each group is laid out by itself by ELK, in a worker, with the sizes of its children as given. A
// change so lays out only the groups whose children changed, from the innermost outwards.
import ELK, { type ElkNode } from "elkjs/lib/elk-api.js";
import { inflated } from "./graph";

export interface Size { width: number; height: number }
export interface Link { from: number; to: number }
export interface Placed {
  size: Size;
  at: Map<number, { x: number; y: number }>;  // of the children, in the group
  routes: [number, number][][];               // of the links: points in the group
}

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
  "elk.spacing.componentComponent": "20",
  "elk.aspectRatio": "1.6",
  "elk.padding": `[top=${header + padding},left=${padding},bottom=${padding},right=${padding}]`,
  "elk.layered.thoroughness": "4",
  "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF",
  "elk.layered.nodePlacement.bk.fixedAlignment": "BALANCED",
  "elk.layered.considerModelOrder.strategy": "NONE",
  "elk.layered.mergeEdges": "true",
};
// For groups in which all is connected with all, orthogonal routes take long and show nothing.
const manyLinks = 260;

let engine: Promise<InstanceType<typeof ELK>> | undefined;
export function startLayout() {
  engine ??= inflated("worker").then((script) => {
    const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    return new ELK({ workerFactory: () => new Worker(url), algorithms: ["layered"] });
  });
  return engine;
}

// Lays out boxes. `sizes` has those of the children.
export async function layOut(children: number[], sizes: Map<number, Size>, links: Link[]): Promise<Placed> {
  const elk = await startLayout();
  const graph: ElkNode = {
    id: "group",
    layoutOptions: links.length > manyLinks ? { ...options, "elk.edgeRouting": "POLYLINE", "elk.layered.thoroughness": "1" } : options,
    children: children.map((child) => ({ id: String(child), ...sizes.get(child)! })),
    edges: links.map((link, index) => ({ id: `e${index}`, sources: [String(link.from)], targets: [String(link.to)] })),
  };
  const result = await elk.layout(graph);
  const at = new Map(result.children!.map((child) => [Number(child.id), { x: child.x!, y: child.y! }]));
  const routes = result.edges!.map((edge) => {
    const section = edge.sections?.[0];
    if (!section) return [];
    return [section.startPoint, ...(section.bendPoints ?? []), section.endPoint].map((p): [number, number] => [p.x, p.y]);
  });
  return { size: { width: result.width!, height: result.height! }, at, routes };
}

// SPDX-License-Identifier: Apache-2.0
// Tuple elements as parts of lines: a get-tuple-element computes nothing, so the line from the tuple to what reads the element
// can carry its index instead of going through a box.
import { flagBits, type Graph } from "./graph";

export interface Elements {
  count: number;           // of get-tuple-elements without a box
  folded: Uint8Array;      // by node: it has no box; groups with nothing else in them are so too
  standIn: Int32Array;     // by node: what is drawn for it: itself, or the instruction whose result it is a part of
}

// Roots, differences, and elements that nothing reads keep their boxes: no line could show them.
const foldable = (g: Graph, i: number) => g.opcodeOf(i) === "get-tuple-element" && g.operandsOf(i).length === 1 && g.usersOf(i).length > 0 && !(g.flags[i] & flagBits.root) && !g.status[i];

export function elementsOf(g: Graph): Elements {
  const folded = new Uint8Array(g.total), standIn = new Int32Array(g.total);
  let count = 0;
  for (let i = 0; i < g.size; ++i) {
    folded[i] = foldable(g, i) ? 1 : 0;
    standIn[i] = folded[i] ? -1 : i;
    count += folded[i];
  }
  for (let i = 0; i < g.size; ++i) {
    const path: number[] = [];
    let at = i;
    for (; standIn[at] < 0; at = g.operandsOf(at)[0]) {
      standIn[at] = at;
      path.push(at);
    }
    for (const element of path) standIn[element] = standIn[at];
  }
  for (let k = g.order.length - 1; k >= 0; --k) {
    const node = g.order[k];
    if (node < g.size) continue;
    standIn[node] = node;
    const children = g.childrenOf(node);
    if (!children.length || !children.every((child) => folded[child])) continue;
    folded[node] = 1;
    standIn[node] = standIn[children[0]];
  }
  return { count, folded, standIn };
}

const indexOf = (g: Graph, i: number) => /(?:^|, )index=(\d+)/.exec(g.attributesOf(i))?.[1] ?? "?";

// Returns the place of a folded element in what stands for it: "1", or "1.0" of a tuple in a tuple.
export function placeOf(g: Graph, i: number): string {
  const places: string[] = [];
  for (let at = i; g.isFolded(at); at = g.operandsOf(at)[0]) places.push(indexOf(g, at));
  return places.reverse().join(".");
}

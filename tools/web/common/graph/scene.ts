// SPDX-License-Identifier: Apache-2.0
// What is on the canvas: the boxes of the groups that are open, with absolute positions, and the edges between them.
import { GroupLayout, type Placed, type Size } from "./layout";
import type { Bundle, Graph } from "./graph";

export interface Box { node: number; x: number; y: number; width: number; height: number; open: boolean; depth: number }
// An edge without a route is drawn only while one of its ends is selected.
export interface Edge { bundle: Bundle; points: [number, number][]; routed: boolean; from: number; to: number }

const maxLabel = 34;
export const shortened = (text: string, limit = maxLabel) => (text.length > limit ? `${text.slice(0, limit / 2 - 1)}…${text.slice(1 - limit / 2)}` : text);

let ruler: CanvasRenderingContext2D | undefined;
export const fontSize = 12, lineHeight = 15;
const font = 'px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
export const fontOf = (size: number, bold = false) => `${bold ? "600 " : ""}${size}${font}`;
const widths = new Map<string, number>();
// Of a text of `fontSize`.
export function widthOf(text: string, bold: boolean): number {
  const key = (bold ? "b" : "n") + text;
  let width = widths.get(key);
  if (width === undefined) {
    ruler ??= document.createElement("canvas").getContext("2d")!;
    ruler.font = fontOf(fontSize, bold);
    widths.set(key, width = ruler.measureText(text).width);
  }
  return width;
}

export class Scene {
  readonly open = new Set<number>();
  // Nodes that are shown; null: all.
  only: Uint8Array | null = null;
  boxes = new Map<number, Box>();
  edges: Edge[] = [];
  size: Size = { width: 0, height: 0 };
  private readonly placed = new Map<number, { key: string; layout: Promise<GroupLayout>; bundles: Bundle[]; done: boolean }>();

  constructor(readonly graph: Graph, private readonly lines: (node: number) => string[]) {
    this.open.add(graph.root);
  }

  shownChildren(node: number): number[] {
    const children = Array.from(this.graph.childrenOf(node));
    return children.filter((child) => !this.graph.isFolded(child) && (!this.only || this.only[child]));
  }
  shownBundles(node: number): Bundle[] {
    const bundles = this.graph.bundlesOf(node);
    if (!this.only) return bundles;
    const list: Bundle[] = [];
    for (const bundle of bundles) {
      const edges = bundle.edges.filter((e) => this.only![this.graph.originOf(e)] && this.only![this.graph.edgeUser[e]]);
      if (edges.length) list.push({ ...bundle, edges, count: edges.length, bytes: this.graph.bytesOf(edges) });
    }
    return list;
  }

  isOpen(node: number) { return this.open.has(node) && this.graph.hasChildren(node); }

  // Shows only these instructions and the groups around them; null: everything.
  show(instructions: Iterable<number> | null) {
    this.placed.clear();
    if (!instructions) { this.only = null; return; }
    const only = this.only = new Uint8Array(this.graph.total);
    for (const i of instructions) {
      for (const drawn of [i, this.graph.standInOf(i)]) for (let node = drawn; node >= 0 && !only[node]; node = this.graph.parent[node]) only[node] = 1;
    }
  }

  // Opens groups from the module down while there are few boxes.
  openAtFirst(limit: number) {
    let boxes = this.shownChildren(this.graph.root).length;
    const queue = this.shownChildren(this.graph.root);
    const worthwhile = (node: number) => this.graph.hasChildren(node) && ["scope", "computation", "section"].includes(this.graph.kindOf(node));
    // Groups of one group each may be very deep.
    for (let opened = 0; opened < limit; ++opened) {
      queue.sort((a, b) => this.graph.count[b] - this.graph.count[a]);
      const at = queue.findIndex((node) => worthwhile(node) && boxes - 1 + this.shownChildren(node).length <= limit);
      if (at < 0) return;
      const node = queue.splice(at, 1)[0];
      this.open.add(node);
      const children = this.shownChildren(node);
      boxes += children.length - 1;
      queue.push(...children);
    }
  }

  private sizeOfClosed(node: number): Size {
    const lines = this.lines(node);
    let width = 64;
    lines.forEach((line, k) => { width = Math.max(width, widthOf(line, k === 0)); });
    const group = this.graph.hasChildren(node);
    return { width: Math.ceil(Math.min(width, 300)) + (group ? 34 : 18), height: 10 + 15 * lines.length + (group ? 8 : 0) };
  }

  // Returns the open groups in view, outer ones first.
  private openGroups(): number[] {
    const list = [this.graph.root];
    for (let k = 0; k < list.length; ++k) for (const child of this.shownChildren(list[k])) if (this.isOpen(child)) list.push(child);
    return list;
  }

  // Returns the layout of a group with all its children closed; each is computed once.
  private layoutOf(group: number) {
    const children = this.shownChildren(group);
    const closed = new Map(children.map((child) => [child, this.sizeOfClosed(child)]));
    const key = children.map((child) => `${child}:${closed.get(child)!.width}x${closed.get(child)!.height}`).join();
    let entry = this.placed.get(group);
    if (entry?.key !== key) {
      const bundles = this.shownBundles(group);
      const made = { key, layout: GroupLayout.create(children, closed, bundles), bundles, done: false };
      made.layout.then(() => { made.done = true; }, () => { if (this.placed.get(group) === made) this.placed.delete(group); });
      this.placed.set(group, entry = made);
    }
    return { closed, ...entry };
  }

  // Places the boxes of the module in rows, without lines: what is seen while the layout is computed.
  sketch() {
    const root = this.graph.root, gap = 16;
    const boxes = this.shownChildren(root).map((node): Box => ({ node, x: 0, y: 0, ...this.sizeOfClosed(node), open: false, depth: 1 }));
    const area = boxes.reduce((sum, box) => sum + (box.width + gap) * (box.height + gap), 0);
    const wide = Math.max(Math.sqrt(1.6 * area), ...boxes.map((box) => box.width + gap));
    let x = gap, y = gap, row = 0, width = 0;
    for (const box of boxes) {
      if (x > gap && x + box.width > wide) {
        x = gap;
        y += row + gap;
        row = 0;
      }
      [box.x, box.y] = [x, y];
      x += box.width + gap;
      row = Math.max(row, box.height);
      width = Math.max(width, x);
    }
    this.size = { width, height: y + row + gap };
    this.boxes = new Map([{ node: root, x: 0, y: 0, ...this.size, open: true, depth: 0 }, ...boxes].map((box) => [box.node, box]));
    this.edges = [];
  }

  // Lays out a group that may be opened.
  async prepare(group: number): Promise<void> { await this.layoutOf(group).layout; }

  isLaidOut(group: number) { return this.placed.get(group)?.done === true; }

  // Computes boxes and edges anew.
  async update(): Promise<void> {
    const groups = this.openGroups();
    const sizes = new Map<number, Size>();
    const results = new Map<number, { result: Placed; bundles: Bundle[] }>();
    for (let k = groups.length - 1; k >= 0; --k) {
      const group = groups[k];
      const { closed, layout, bundles } = this.layoutOf(group);
      for (const [child, size] of closed) if (!sizes.has(child)) sizes.set(child, size);
      const result = (await layout).placed(sizes);
      results.set(group, { result, bundles });
      const least = widthOf(shortened(this.graph.labelOf(group), 60), true) + 60;
      sizes.set(group, { width: Math.max(result.size.width, least), height: result.size.height });
    }
    this.size = sizes.get(this.graph.root)!;
    this.boxes = new Map();
    this.edges = [];
    this.boxes.set(this.graph.root, { node: this.graph.root, x: 0, y: 0, ...this.size, open: true, depth: 0 });
    for (const group of groups) {
      const box = this.boxes.get(group)!;
      const { result, bundles } = results.get(group)!;
      for (const [child, at] of result.at) {
        this.boxes.set(child, { node: child, x: box.x + at.x, y: box.y + at.y, ...sizes.get(child)!, open: this.isOpen(child), depth: box.depth + 1 });
      }
      bundles.forEach((bundle, k) => {
        let points = result.routes[k].map(([x, y]): [number, number] => [x + box.x, y + box.y]);
        const routed = points.length > 0;
        if (!routed) {
          const from = this.boxes.get(bundle.from)!, to = this.boxes.get(bundle.to)!;
          points = [[from.x + from.width / 2, from.y + from.height], [to.x + to.width / 2, to.y]];
        }
        this.edges.push({ bundle, points, routed, from: bundle.from, to: bundle.to });
      });
    }
  }

  // Returns the box in which a node is seen: its own, that of the closed group around it, or of what stands for it.
  shownAs(node: number): number {
    const drawn = this.graph.standInOf(node);
    for (let at = drawn; at >= 0; at = this.graph.parent[at]) {
      const box = this.boxes.get(at);
      if (box && (at === drawn || !box.open)) return at;
    }
    return -1;
  }

  // Returns the pairs of boxes in open groups that a bundle connects, with how often; `element`: only by what carries it.
  inner(edge: Edge, element = -1): { from: number; to: number; count: number }[] {
    const pairs = new Map<string, { from: number; to: number; count: number }>();
    for (const e of edge.bundle.edges) {
      if (element >= 0 && !this.graph.carries(e, element)) continue;
      const from = this.shownAs(this.graph.operands[e]), to = this.shownAs(this.graph.edgeUser[e]);
      const key = `${from},${to}`;
      const pair = pairs.get(key);
      if (pair) ++pair.count;
      else pairs.set(key, { from, to, count: 1 });
    }
    return [...pairs.values()];
  }

  // Returns the innermost box at a point of the canvas.
  boxAt(x: number, y: number): number {
    let node = this.graph.root;
    for (;;) {
      let inside = -1;
      for (const child of this.shownChildren(node)) {
        const box = this.boxes.get(child);
        if (box && x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height) { inside = child; break; }
      }
      if (inside < 0) return node;
      if (!this.boxes.get(inside)!.open) return inside;
      node = inside;
    }
  }
}

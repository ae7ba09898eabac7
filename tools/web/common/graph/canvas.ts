// SPDX-License-Identifier: Apache-2.0
// Draws the scene on a canvas: only what is in view, texts only where they can be read.
import { bytes, count } from "../format";
import type { Graph } from "./graph";
import { header } from "./layout";
import type { Painter } from "./paint";
import { fontOf, fontSize, lineHeight, shortened, widthOf, type Box, type Edge, type Scene } from "./scene";
import { holdersOf, hueOfDevice, parseSharding, type Tiling } from "./tensors";

export interface Camera { x: number; y: number; scale: number }  // of the scene at the corner of the canvas
export interface Marks {
  selected: number;
  hits: Set<number> | null;        // instructions; others are dimmed
  hitBoxes: Map<number, number>;   // how many are in each box
  current: number;
}

const dimmed = 0.25;

// Texts are this large on the screen (CSS pixels), or larger, as long as a line of that size has room in its box; in smaller
// boxes as large as there is room for, and none at all below the second size.
const readable = 9, least = 6;
// Returns the size of text, in the scene, for a box of this height without its margins; 0: none.
function textSize(scale: number, room: number): number {
  const size = Math.min(Math.max(fontSize, readable / scale), (room * fontSize) / lineHeight);
  return size * scale >= least ? size : 0;
}
const margin = 2;  // above and below the text of a box
const shortest = 40;  // box of two lines

// Returns the scale from which on all texts can be read.
export function leastScale(scene: Scene): number {
  const opened = [...scene.boxes.values()].some((box) => box.open && box.depth > 0);
  return ((readable / fontSize) * lineHeight) / (opened ? header - 2 * margin : shortest - 2 * margin);
}

// Returns as much of a text as has room, of names of instructions both ends; fewer than three letters say nothing.
function fitted(text: string, bold: boolean, size: number, room: number, ends = false): string {
  const width = (widthOf(text, bold) * size) / fontSize;
  if (width <= room) return text;
  const letters = Math.floor((text.length * room) / width);
  return letters < 3 ? "" : ends ? shortened(text, letters).replace("……", "…") : `${text.slice(0, letters - 1)}…`;
}

function roundRect(c: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, radius: number) {
  c.beginPath();
  c.roundRect(x, y, width, height, radius);
}

// Bends of a route are rounded.
function route(c: CanvasRenderingContext2D, points: [number, number][]) {
  c.moveTo(points[0][0], points[0][1]);
  for (let k = 1; k + 1 < points.length; ++k) c.arcTo(points[k][0], points[k][1], points[k + 1][0], points[k + 1][1], 6);
  c.lineTo(points[points.length - 1][0], points[points.length - 1][1]);
}

// Returns the number of operands and the bytes of what they read, of elements of a tuple their indices: "[0] [2] 8.0 KiB".
const maxPlaces = 3;
export function labelOf(g: Graph, { bundle }: Edge): string {
  const places = g.placesIn(bundle);
  const what = places.length > maxPlaces ? `${count(places.length)} elements ` : places.length ? `${places.map((place) => `[${place}]`).join(" ")} ` : bundle.count > 1 ? `${count(bundle.count)} × ` : "";
  return what + bytes(bundle.bytes);
}
// Returns the middle of the longest part of an edge.
export function labelPoint({ points }: Edge): [number, number] {
  let longest = 1, length = -1;
  for (let k = 1; k < points.length; ++k) {
    const size = Math.hypot(points[k][0] - points[k - 1][0], points[k][1] - points[k - 1][1]);
    if (size > length) { length = size; longest = k; }
  }
  return [(points[longest][0] + points[longest - 1][0]) / 2, (points[longest][1] + points[longest - 1][1]) / 2];
}

export class Drawing {
  private labels: { x: number; y: number; width: number; text: string; fill: string; alpha: number }[] = [];  // of this frame

  constructor(readonly scene: Scene, readonly painter: Painter) {}

  draw(c: CanvasRenderingContext2D, width: number, height: number, ratio: number, camera: Camera, marks: Marks, at: (box: Box) => Box, edgeAlpha: number) {
    const p = this.painter;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = p.variable("page");
    c.fillRect(0, 0, width, height);
    c.setTransform(ratio * camera.scale, 0, 0, ratio * camera.scale, -camera.x * camera.scale * ratio, -camera.y * camera.scale * ratio);
    const view = { left: camera.x, top: camera.y, right: camera.x + width / camera.scale, bottom: camera.y + height / camera.scale };
    const inView = (b: Box) => b.x < view.right && b.x + b.width > view.left && b.y < view.bottom && b.y + b.height > view.top;
    const related = this.related(marks.selected);
    // Maps keep boxes of outer groups first.
    const closed: Box[] = [];
    for (const settled of this.scene.boxes.values()) {
      const box = at(settled);
      if (!inView(box)) continue;
      if (box.open) this.drawOpen(c, box, camera, marks);
      else closed.push(box);
    }
    if (edgeAlpha > 0) this.drawEdges(c, view, camera, marks, edgeAlpha, related);
    for (const box of closed) this.drawClosed(c, box, camera, marks, related);
  }

  private related(node: number): Set<number> | null {
    if (node < 0 || node >= this.scene.graph.total) return null;
    const g = this.scene.graph;
    const set = new Set<number>();
    if (node < g.size) {
      for (const i of [...g.readsOf(node), ...g.readersOf(node)]) set.add(this.scene.shownAs(i));
    }
    return set;
  }

  private drawOpen(c: CanvasRenderingContext2D, box: Box, camera: Camera, marks: Marks) {
    const p = this.painter;
    roundRect(c, box.x, box.y, box.width, box.height, 9);
    c.globalAlpha = 1;
    c.fillStyle = box.depth % 2 ? p.variable("card") : p.variable("page");
    c.fill();
    c.lineWidth = box.node === marks.selected ? 3 : 1;
    c.strokeStyle = box.node === marks.selected ? p.variable("accent") : p.variable("line");
    if (box.depth > 0 || box.node === marks.selected) c.stroke();
    const size = textSize(camera.scale, header - 2 * margin);
    if (!size || box.depth === 0) return;
    const g = this.scene.graph;
    c.fillStyle = p.variable("text");
    c.font = fontOf(size, true);
    c.textBaseline = "middle";
    c.textAlign = "left";
    const trips = g.trips.get(box.node);
    const suffix = trips !== undefined ? `  × ${count(trips)}` : "";
    c.fillText(fitted(`▾ ${shortened(g.labelOf(box.node), 60)}${suffix}`, true, size, box.width - 20), box.x + 10, box.y + header / 2 + 1, box.width - 20);
  }

  private drawClosed(c: CanvasRenderingContext2D, box: Box, camera: Camera, marks: Marks, related: Set<number> | null) {
    const g = this.scene.graph, p = this.painter;
    const paint = p.paintOf(box.node);
    const group = g.hasChildren(box.node);
    const hits = marks.hits ? (marks.hitBoxes.get(box.node) ?? 0) : -1;
    c.globalAlpha = hits === 0 ? dimmed : 1;
    const small = camera.scale * box.height < 5;
    if (small) {
      c.fillStyle = paint.fill;
      c.fillRect(box.x, box.y, box.width, box.height);
    } else {
      if (group) {
        // A stack of cards.
        roundRect(c, box.x + 4, box.y + 4, box.width, box.height, 7);
        c.fillStyle = p.variable("line");
        c.fill();
      }
      roundRect(c, box.x, box.y, box.width, box.height, 7);
      c.fillStyle = paint.fill;
      c.fill();
      const selected = box.node === marks.selected, current = box.node === marks.current;
      c.lineWidth = selected || current ? 3 : related?.has(box.node) ? 2.5 : 1;
      c.strokeStyle = current ? p.variable("bad") : selected || related?.has(box.node) ? p.variable("accent") : hits > 0 ? p.variable("bad") : p.variable("quiet");
      c.stroke();
      if (paint.bar) {
        let x = box.x + 8;
        for (const [fill, part] of paint.bar) {
          c.fillStyle = fill;
          c.fillRect(x, box.y + box.height - 9, part * (box.width - 16), 4);
          x += part * (box.width - 16);
        }
      }
    }
    // Where only one line has room, it stands in the middle.
    const bottom = paint.bar?.length ? 10 : margin;
    const size = textSize(camera.scale, box.height - bottom - margin);
    if (size) {
      c.fillStyle = paint.ink;
      c.textBaseline = "middle";
      c.textAlign = "left";
      const pitch = (size * lineHeight) / fontSize;
      const lines = p.lines(box.node).slice(0, Math.max(1, Math.floor((box.height - bottom - margin) / pitch)));
      const first = lines.length === 1 ? (box.height - bottom + margin) / 2 : (13 * size) / fontSize;
      lines.forEach((line, k) => {
        c.font = fontOf(size, k === 0);
        c.fillText(fitted(k === 0 && group ? `▸ ${line}` : line, k === 0, size, box.width - 14, box.node < g.size), box.x + 9, box.y + first + pitch * k, box.width - 14);
      });
      const tiling = box.node < g.size && g.shardingOf(box.node) ? parseSharding(g.shardingOf(box.node)) : null;
      if (tiling) this.drawTiling(c, box, tiling, paint.ink);
      if (hits > 0 && group) {
        const larger = size / fontSize;
        c.fillStyle = p.variable("bad");
        roundRect(c, box.x + box.width + 6 - 38 * larger, box.y - 8, 38 * larger, 16 * larger, 8 * larger);
        c.fill();
        c.fillStyle = p.variable("card");
        c.font = fontOf(size);
        c.textAlign = "center";
        c.fillText(hits > 9999 ? "9999+" : String(hits), box.x + box.width + 6 - 19 * larger, box.y - 8 + 9 * larger);
      }
    }
    c.globalAlpha = 1;
  }

  // A small grid of the parts of a tensor, in the corner of its box; if the colors tell devices, in those of the devices.
  private drawTiling(c: CanvasRenderingContext2D, box: Box, tiling: Tiling, ink: string) {
    const holders = holdersOf(tiling);
    const rows = Math.min(4, holders.rows), columns = Math.min(4, holders.columns);
    const size = 12, x = box.x + box.width - size - 5, y = box.y + 6;
    if (this.painter.mode === "device") {
      for (let row = 0; row < rows; ++row) {
        for (let column = 0; column < columns; ++column) {
          c.fillStyle = this.painter.variable(hueOfDevice(holders.of(row, column)[0]));
          c.fillRect(x + (size * column) / columns, y + (size * row) / rows, size / columns, size / rows);
        }
      }
    }
    c.strokeStyle = ink;
    c.lineWidth = 0.8;
    c.beginPath();
    for (let k = 0; k <= rows; ++k) { c.moveTo(x, y + (size * k) / rows); c.lineTo(x + size, y + (size * k) / rows); }
    for (let k = 0; k <= columns; ++k) { c.moveTo(x + (size * k) / columns, y); c.lineTo(x + (size * k) / columns, y + size); }
    c.stroke();
  }

  private drawEdges(c: CanvasRenderingContext2D, view: { left: number; top: number; right: number; bottom: number }, camera: Camera, marks: Marks, alpha: number, related: Set<number> | null) {
    const p = this.painter, g = this.scene.graph;
    const selected = marks.selected;
    const strong: Edge[] = [];
    this.labels = [];
    c.lineJoin = "round";
    for (const edge of this.scene.edges) {
      const xs = edge.points.map((q) => q[0]), ys = edge.points.map((q) => q[1]);
      if (Math.max(...xs) < view.left || Math.min(...xs) > view.right || Math.max(...ys) < view.top - 200 || Math.min(...ys) > view.bottom + 200) continue;
      if (selected >= 0 && selected !== g.root && (this.concerns(edge, selected))) { strong.push(edge); continue; }
      if (!edge.routed) continue;
      c.globalAlpha = alpha * (related || marks.hits ? 0.35 : 0.75);
      this.drawEdge(c, edge, camera, p.variable("quiet"), false, selected);
    }
    for (const edge of strong) {
      c.globalAlpha = alpha;
      this.drawEdge(c, edge, camera, p.variable("accent"), true, selected);
    }
    const size = Math.max(fontSize, readable / camera.scale);
    c.font = fontOf(size);
    c.textAlign = "left";
    c.textBaseline = "middle";
    for (const label of this.labels) {
      c.globalAlpha = label.alpha;
      c.fillStyle = p.variable("page");
      c.fillRect(label.x, label.y, label.width, size + 2);
      c.fillStyle = label.fill;
      c.fillText(label.text, label.x + 3, label.y + size / 2 + 1);
    }
    c.globalAlpha = 1;
  }

  // Does the edge begin or end in the selected box?
  private concerns(edge: Edge, selected: number): boolean {
    const g = this.scene.graph;
    if (edge.from === selected || edge.to === selected) return true;
    const drawn = g.standInOf(selected);
    if (!g.isIn(drawn, edge.from) && !g.isIn(drawn, edge.to)) return false;
    if (g.isFolded(selected)) return edge.bundle.edges.some((e) => g.carries(e, selected));
    return edge.bundle.edges.some((e) => g.isIn(g.originOf(e), selected) || g.isIn(g.edgeUser[e], selected));
  }

  // Keeps the label for the longest part of the edge, unless another one is there.
  private placeLabel(c: CanvasRenderingContext2D, edge: Edge, scale: number) {
    const text = labelOf(this.scene.graph, edge);
    const size = Math.max(fontSize, readable / scale);
    const width = (widthOf(text, false) * size) / fontSize + 6;
    const [middle, height] = labelPoint(edge);
    const x = middle - width / 2, y = height - size / 2 - 1;
    if (this.labels.some((label) => label.x < x + width && x < label.x + label.width && Math.abs(label.y - y) < size + 3)) return;
    this.labels.push({ x, y, width, text, fill: String(c.fillStyle), alpha: Math.min(1, 1.3 * c.globalAlpha) });
  }

  private drawEdge(c: CanvasRenderingContext2D, edge: Edge, camera: Camera, stroke: string, strong: boolean, selected: number) {
    const { points, bundle } = edge;
    c.strokeStyle = stroke;
    c.fillStyle = stroke;
    // Wider for more bytes: 1 below 1 KiB, 4 at 1 GiB.
    const width = 1 + 3 * Math.max(0, Math.min(1, (Math.log2(Math.max(1, bundle.bytes)) - 10) / 20));
    c.lineWidth = strong ? width + 0.8 : width;
    c.beginPath();
    if (edge.routed) {
      route(c, points);
    } else {
      const [[x, y], [u, v]] = points;
      const reach = 40 + Math.abs(v - y) / 5;
      c.setLineDash([6, 4]);
      c.moveTo(x, y);
      c.bezierCurveTo(x + reach, y + 30, u + reach, v - 30, u, v);
    }
    c.stroke();
    c.setLineDash([]);
    const g = this.scene.graph;
    const from = this.scene.boxes.get(edge.from), to = this.scene.boxes.get(edge.to);
    const end = points[points.length - 1];
    if (from?.open || to?.open) {
      // Tails to the boxes inside open groups.
      const start = points[0];
      const reach = start[1] > end[1] ? -30 : 30;  // against the flow: from the top to the bottom
      c.lineWidth = strong ? 1.4 : 0.8;
      if (!strong) c.globalAlpha *= 0.55;
      c.beginPath();
      let tails = 0;
      for (const pair of this.scene.inner(edge, strong && g.isFolded(selected) ? selected : -1)) {
        if (++tails > 60) break;
        if (strong && !g.isFolded(selected) && !(g.isIn(pair.from, selected) || g.isIn(pair.to, selected)) && selected !== edge.from && selected !== edge.to) continue;
        const a = this.scene.boxes.get(pair.from), b = this.scene.boxes.get(pair.to);
        if (a && from?.open && pair.from !== edge.from) {
          const x = a.x + a.width / 2, y = reach > 0 ? a.y + a.height : a.y;
          c.moveTo(x, y);
          c.bezierCurveTo(x, y + reach, start[0], start[1] - reach, start[0], start[1]);
        }
        if (b && to?.open && pair.to !== edge.to) {
          const x = b.x + b.width / 2, y = reach > 0 ? b.y : b.y + b.height;
          c.moveTo(end[0], end[1]);
          c.bezierCurveTo(end[0], end[1] + reach, x, y - reach, x, y);
        }
      }
      c.stroke();
    }
    if (camera.scale > 0.25) {
      c.beginPath();
      c.moveTo(end[0], end[1]);
      const back = points[points.length - 2][1] > end[1] ? 8 : -8;
      c.lineTo(end[0] - 4, end[1] + back);
      c.lineTo(end[0] + 4, end[1] + back);
      c.fill();
    }
    // The elements of a tuple differ by their labels.
    if (camera.scale > 0.5 && (strong || bundle.count > 1 || g.isFolded(g.operands[bundle.edges[0]]))) this.placeLabel(c, edge, camera.scale);
  }
}

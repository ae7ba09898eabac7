// SPDX-License-Identifier: Apache-2.0
// Exports what is shown: as SVG with texts, or as PNG.
import { shortened, type Scene } from "./scene";
import { header } from "./layout";
import type { Painter } from "./paint";
import { Drawing, labelOf, labelPoint } from "./canvas";

const escaped = (text: string) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]!)
  // XML has no other control characters.
  .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");

export function svgOf(scene: Scene, painter: Painter): string {
  const g = scene.graph;
  const n = (x: number) => Number(x.toFixed(1));
  const { width, height } = scene.size;
  const out = [`<svg xmlns="http://www.w3.org/2000/svg" width="${n(width)}" height="${n(height)}" viewBox="0 0 ${n(width)} ${n(height)}" font-family="system-ui, sans-serif" font-size="12">`,
    `<title>${escaped(g.module)}</title>`, `<rect width="100%" height="100%" fill="${painter.variable("page")}"/>`];
  for (const box of scene.boxes.values()) {
    if (!box.open || box.node === g.root) continue;
    out.push(`<rect x="${n(box.x)}" y="${n(box.y)}" width="${n(box.width)}" height="${n(box.height)}" rx="9" fill="${painter.variable(box.depth % 2 ? "card" : "page")}" stroke="${painter.variable("line")}"/>`,
      `<text x="${n(box.x + 10)}" y="${n(box.y + header / 2 + 5)}" font-weight="600" fill="${painter.variable("text")}">${escaped(shortened(g.labelOf(box.node), 60))}</text>`);
  }
  const quiet = painter.variable("quiet");
  for (const edge of scene.edges) {
    if (!edge.routed) continue;
    out.push(`<polyline points="${edge.points.map((q) => `${n(q[0])},${n(q[1])}`).join(" ")}" fill="none" stroke="${quiet}"/>`);
    const end = edge.points[edge.points.length - 1];
    out.push(`<path d="M${n(end[0])} ${n(end[1])}l-4 ${edge.points[edge.points.length - 2][1] > end[1] ? 8 : -8}h8z" fill="${quiet}"/>`);
    if (!g.placesIn(edge.bundle).length) continue;
    const [x, y] = labelPoint(edge);
    out.push(`<text x="${n(x)}" y="${n(y + 4)}" text-anchor="middle" fill="${quiet}" stroke="${painter.variable("page")}" stroke-width="3" paint-order="stroke">${escaped(labelOf(g, edge))}</text>`);
  }
  for (const box of scene.boxes.values()) {
    if (box.open) continue;
    const paint = painter.paintOf(box.node);
    out.push(`<g><title>${escaped(g.labelOf(box.node))}</title><rect x="${n(box.x)}" y="${n(box.y)}" width="${n(box.width)}" height="${n(box.height)}" rx="7" fill="${paint.fill}" stroke="${quiet}"/>`);
    painter.lines(box.node).forEach((line, k) => out.push(`<text x="${n(box.x + 9)}" y="${n(box.y + 17 + 15 * k)}"${k === 0 ? ' font-weight="600"' : ""} fill="${paint.ink}">${escaped(line)}</text>`));
    out.push("</g>");
  }
  out.push("</svg>");
  return out.join("\n");
}

const maxSide = 8192;  // of a canvas, in pixels, that browsers draw
export function pngOf(scene: Scene, painter: Painter): Promise<Blob | null> {
  const scale = Math.min(2, maxSide / scene.size.width, maxSide / scene.size.height);
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(scene.size.width * scale));
  canvas.height = Math.max(1, Math.round(scene.size.height * scale));
  const none = { selected: -1, hits: null, hitBoxes: new Map<number, number>(), current: -1 };
  new Drawing(scene, painter).draw(canvas.getContext("2d")!, canvas.width, canvas.height, 1, { x: 0, y: 0, scale }, none, (box) => box, 1);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

export function download(name: string, blob: Blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

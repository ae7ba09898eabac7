// SPDX-License-Identifier: Apache-2.0
// Fits a layout to children of other sizes, without laying it out anew: layers move apart, boxes of one layer aside, and
// edges follow. So a box that opens leaves all others where they were in relation to each other, and the positions depend
// on what is open, not on the way there.
export interface Size { width: number; height: number }
export interface Point { x: number; y: number }
export type Route = [number, number][];

// Positions with the sizes they were computed for.
export interface BaseLayout {
  at: Map<number, Point>;
  sizes: Map<number, Size>;
  links: { from: number; to: number; route: Route }[];
}

interface Band { top: number; bottom: number; nodes: number[]; newTop: number; newBottom: number; growth: number }
interface Part { nodes: number[]; links: number[]; bands: Band[]; x: number; y: number; width: number; height: number }

const spacing = 18;  // between connected parts
const aspect = 1.6;

// Returns the parts of the graph that no edge connects, by their first child.
function partsOf(base: BaseLayout): Part[] {
  const leader = new Map<number, number>();
  for (const node of base.at.keys()) leader.set(node, node);
  const find = (node: number): number => {
    while (leader.get(node) !== node) {
      leader.set(node, leader.get(leader.get(node)!)!);
      node = leader.get(node)!;
    }
    return node;
  };
  for (const { from, to } of base.links) leader.set(find(from), find(to));
  const parts = new Map<number, Part>();
  for (const node of base.at.keys()) {
    const key = find(node);
    if (!parts.has(key)) parts.set(key, { nodes: [], links: [], bands: [], x: 0, y: 0, width: 0, height: 0 });
    parts.get(key)!.nodes.push(node);
  }
  base.links.forEach(({ from }, k) => parts.get(find(from))!.links.push(k));
  return [...parts.values()];
}

// Bands are the layers: rows of boxes with nothing but edges between them.
function bandsOf(base: BaseLayout, part: Part): Band[] {
  const bands: Band[] = [];
  const nodes = [...part.nodes].sort((a, b) => base.at.get(a)!.y - base.at.get(b)!.y || a - b);
  for (const node of nodes) {
    const top = base.at.get(node)!.y, bottom = top + base.sizes.get(node)!.height;
    const last = bands[bands.length - 1];
    if (last && top < last.bottom) {
      last.bottom = Math.max(last.bottom, bottom);
      last.nodes.push(node);
    } else {
      bands.push({ top, bottom, nodes: [node], newTop: 0, newBottom: 0, growth: 0 });
    }
  }
  for (const band of bands) band.nodes.sort((a, b) => base.at.get(a)!.x - base.at.get(b)!.x || a - b);
  return bands;
}

// The horizontal position of a route where it crosses the middle of a band.
function crossing(route: Route, band: Band): number {
  const y = (band.top + band.bottom) / 2;
  for (let k = 1; k < route.length; ++k) {
    const [a, b] = [route[k - 1], route[k]];
    if (Math.min(a[1], b[1]) <= y && y <= Math.max(a[1], b[1])) return Math.abs(b[1] - a[1]) < 1e-6 ? a[0] : a[0] + ((b[0] - a[0]) * (y - a[1])) / (b[1] - a[1]);
  }
  return route[route.length - 1][0];
}

class Stretcher {
  readonly at = new Map<number, Point>();
  readonly routes: Route[];
  constructor(private readonly base: BaseLayout, private readonly sizes: Map<number, Size>) {
    this.routes = base.links.map(() => []);
  }

  private grownBy(node: number) { return this.sizes.get(node)!.width - this.base.sizes.get(node)!.width; }

  // Where a line that passes a band at x goes through it now.
  private passing(band: Band, x: number): number {
    let shift = -band.growth / 2;
    for (const node of band.nodes) {
      const left = this.base.at.get(node)!.x, width = this.base.sizes.get(node)!.width;
      if (x >= left + width) shift += this.grownBy(node);
      else if (x > left) shift += (this.grownBy(node) * (x - left)) / width;
    }
    return x + shift;
  }

  place(part: Part) {
    const { base, sizes } = this;
    part.bands = bandsOf(base, part);
    let y = 0;
    part.bands.forEach((band, k) => {
      if (k) y += band.top - part.bands[k - 1].bottom;
      band.newTop = y;
      let height = band.bottom - band.top;
      for (const node of band.nodes) height = Math.max(height, sizes.get(node)!.height);
      band.newBottom = y += height;
      band.growth = band.nodes.reduce((sum, node) => sum + this.grownBy(node), 0);
      let shift = -band.growth / 2;
      for (const node of band.nodes) {
        const at = base.at.get(node)!;
        this.at.set(node, { x: at.x + shift, y: band.newTop + Math.min(at.y - band.top, height - sizes.get(node)!.height) });
        shift += this.grownBy(node);
      }
    });
    const bandOf = new Map<number, number>();
    part.bands.forEach((band, k) => band.nodes.forEach((node) => bandOf.set(node, k)));
    for (const link of part.links) this.routes[link] = this.routed(part.bands, bandOf, link);

    let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
    const cover = (x: number, v: number) => { left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, v); bottom = Math.max(bottom, v); };
    for (const node of part.nodes) {
      const at = this.at.get(node)!, size = sizes.get(node)!;
      cover(at.x, at.y);
      cover(at.x + size.width, at.y + size.height);
    }
    for (const link of part.links) for (const [x, v] of this.routes[link]) cover(x, v);
    part.width = right - left;
    part.height = bottom - top;
    this.move(part, -left, -top);
  }

  move(part: Part, dx: number, dy: number) {
    for (const node of part.nodes) {
      const at = this.at.get(node)!;
      at.x += dx;
      at.y += dy;
    }
    for (const link of part.links) for (const point of this.routes[link]) { point[0] += dx; point[1] += dy; }
  }

  // The end of a route at a box, in proportion to its width.
  private port(node: number, x: number, atBottom: boolean): [number, number] {
    const before = this.base.at.get(node)!, old = this.base.sizes.get(node)!, size = this.sizes.get(node)!, now = this.at.get(node)!;
    return [now.x + ((x - before.x) / old.width) * size.width, atBottom ? now.y + size.height : now.y];
  }

  private routed(bands: Band[], bandOf: Map<number, number>, link: number): Route {
    const { from, to, route } = this.base.links[link];
    const first = bandOf.get(from)!, last = bandOf.get(to)!;
    // Lines against the flow leave at the top and come in at the bottom.
    if (last < first && !this.isAtBottom(from, route[0]) && this.isAtBottom(to, route[route.length - 1])) {
      return this.downwards(bands, to, from, last, first, [...route].reverse()).reverse();
    }
    if (last > first && this.isAtBottom(from, route[0])) return this.downwards(bands, from, to, first, last, route);
    return this.around(bands, from, to, route);
  }

  private isAtBottom(node: number, point: [number, number]) {
    const at = this.base.at.get(node)!;
    return point[1] > at.y + this.base.sizes.get(node)!.height / 2;
  }

  // A route that does not go from one layer to a later one: each point moves with what is beside it.
  private around(bands: Band[], from: number, to: number, route: Route): Route {
    const final = route[route.length - 1];
    const begin = this.port(from, route[0][0], this.isAtBottom(from, route[0])), end = this.port(to, final[0], this.isAtBottom(to, final));
    const inner = route.slice(1, -1).map(([x, y]): [number, number] => {
      let k = bands.findIndex((band) => y < band.bottom);
      if (k < 0) k = bands.length - 1;
      const band = bands[k];
      const moved = y < band.top ? band.newTop - (band.top - y) : y > band.bottom ? band.newBottom + (y - band.bottom) : band.newTop + ((y - band.top) / (band.bottom - band.top)) * (band.newBottom - band.newTop);
      return [this.passing(band, x), moved];
    });
    const points: Route = [begin, ...inner, end];
    // What was vertical stays so: outside of both ends, and at the boxes below or above them.
    const middle = (route[0][0] + route[route.length - 1][0]) / 2;
    for (let k = 1; k < route.length; ++k) {
      if (Math.abs(route[k][0] - route[k - 1][0]) > 0.1) continue;
      const [a, b] = [points[k - 1], points[k]];
      if (k === 1) b[0] = a[0];
      else if (k + 1 === route.length) a[0] = b[0];
      else a[0] = b[0] = route[k][0] < middle ? Math.min(a[0], b[0]) : Math.max(a[0], b[0]);
    }
    return points;
  }

  private downwards(bands: Band[], from: number, to: number, first: number, last: number, route: Route): Route {
    const begin = this.port(from, route[0][0], true), end = this.port(to, route[route.length - 1][0], false);
    const points: Route = [begin];
    let x = begin[0];
    for (let k = first; k < last; ++k) {
      // Crosses the gap below band k, on the track it had there.
      const next = k + 1 === last ? end[0] : this.passing(bands[k + 1], crossing(route, bands[k + 1]));
      if (Math.abs(next - x) > 0.5) {
        const gap = bands[k + 1].top - bands[k].bottom;
        let track = gap / 2;
        for (let p = 1; p < route.length; ++p) {
          const offset = route[p][1] - bands[k].bottom;
          if (Math.abs(route[p][1] - route[p - 1][1]) < 0.1 && offset > 0 && offset < gap) track = offset;
        }
        points.push([x, bands[k].newBottom + track], [next, bands[k].newBottom + track]);
      }
      x = next;
    }
    points.push(end);
    return points;
  }
}

// Returns positions, routes by link and the size without a margin. `sizes`: of the children.
export function stretch(base: BaseLayout, sizes: Map<number, Size>): { at: Map<number, Point>; routes: Route[]; size: Size } {
  const stretcher = new Stretcher(base, sizes);
  const parts = partsOf(base);
  for (const part of parts) stretcher.place(part);
  // Parts fill rows of about the width that makes the whole look balanced.
  const area = parts.reduce((sum, part) => sum + (part.width + spacing) * (part.height + spacing), 0);
  const wide = Math.max(Math.sqrt(area * aspect), ...parts.map((part) => part.width));
  let x = 0, y = 0, row = 0, width = 0;
  for (const part of parts) {
    if (x > 0 && x + part.width > wide) {
      x = 0;
      y += row + spacing;
      row = 0;
    }
    stretcher.move(part, x, y);
    x += part.width + spacing;
    width = Math.max(width, x - spacing);
    row = Math.max(row, part.height);
  }
  return { at: stretcher.at, routes: stretcher.routes, size: { width, height: y + row } };
}

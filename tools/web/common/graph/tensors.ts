// SPDX-License-Identifier: Apache-2.0
// Shapes, layouts and shardings of tensors, and small pictures of them.
import { h } from "../dom";

export interface ArrayShape { type: string; dims: number[]; minorToMajor: number[] | null; tiles: number[][]; memorySpace: number }

// Parses "f32[8,128]{1,0:T(8,128)S(1)}"; null for tuples and tokens.
export function parseShape(text: string): ArrayShape | null {
  const found = /^([a-z][a-z0-9]*)\[([^\]]*)\](?:\{([^}]*)\})?$/.exec(text);
  if (!found) return null;
  const dims = found[2] ? found[2].split(",").map((d) => Number(d.replace(/[<=?]/g, ""))) : [];
  const [order, rest] = (found[3] ?? "").split(":", 2);
  const minorToMajor = found[3] === undefined ? null : order.split(",").filter(Boolean).map(Number);
  const tiled = /T((?:\([\d,*]+\))+)/.exec(rest ?? "");
  const tiles = tiled ? [...tiled[1].matchAll(/\(([^)]*)\)/g)].map((tile) => tile[1].split(",").map(Number)) : [];
  return { type: found[1], dims, minorToMajor, tiles, memorySpace: Number(/S\((\d+)\)/.exec(rest ?? "")?.[1] ?? 0) };
}
export const memorySpaceOf = (text: string) => Math.max(0, ...[...text.matchAll(/S\((\d+)\)/g)].map((space) => Number(space[1])));

export interface Tiling { tiles: number[]; devices: number[]; replicated: number }

// Parses "{devices=[2,4]<=[8] last_tile_dim_replicate}", "{devices=[2,2]<=[2,2]T(1,0)}", "{devices=[2,1]0,1}".
export function parseSharding(text: string): Tiling | null {
  let tiling = tilings.get(text);
  if (tiling === undefined) tilings.set(text, tiling = readSharding(text));
  return tiling;
}
const tilings = new Map<string, Tiling | null>();

function readSharding(text: string): Tiling | null {
  const found = /devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))/.exec(text);
  if (!found) return null;
  const tiles = found[1].split(",").map(Number);
  const product = (list: number[]) => list.reduce((a, b) => a * b, 1);
  const total = product(tiles);
  if (!(total > 0) || total > 1 << 20) return null;
  let devices: number[];
  if (found[4]) {
    devices = found[4].split(",").map(Number);
  } else {
    const reshape = found[2].split(",").map(Number);
    const permutation = found[3] ? found[3].split(",").map(Number) : reshape.map((_, k) => k);
    if (product(reshape) !== total || permutation.length !== reshape.length) return null;
    const strides = reshape.map((_, k) => product(reshape.slice(k + 1)));
    const sizes = permutation.map((k) => reshape[k]);
    devices = Array.from({ length: total }, (_, index) => {
      let device = 0;
      for (let k = sizes.length - 1; k >= 0; --k) { device += (index % sizes[k]) * strides[permutation[k]]; index = Math.floor(index / sizes[k]); }
      return device;
    });
  }
  let replicated = 1;
  if (/last_tile_dim_replicate/.test(text)) replicated = tiles.pop()!;
  const subgroups = /last_tile_dims=\{([^}]*)\}/.exec(text);
  if (subgroups) for (let k = subgroups[1].split(",").length; k > 0; --k) replicated *= tiles.pop() ?? 1;
  return { tiles, devices, replicated };
}
// Returns the shardings of a tuple's elements, or the one of an array.
function elementsOf(sharding: string): string[] {
  const list: string[] = [];
  if (!/^\{\s*\{/.test(sharding)) return [sharding];
  let depth = 0, begin = 0;
  for (let k = 0; k < sharding.length; ++k) {
    if (sharding[k] === "{" && ++depth === 2) begin = k;
    if (sharding[k] === "}" && depth-- === 2) list.push(sharding.slice(begin, k + 1));
  }
  return list;
}

// Where a tensor lives: in how many parts, and on which devices. parts 0: no rule says, or none of this kind.
export interface Placement { parts: number; text: string; device?: number }

// "0–7", "0, 2, 4, …".
function deviceList(devices: number[]): string {
  const sorted = [...devices].sort((a, b) => a - b);
  const row = sorted.every((device, k) => device === sorted[0] + k);
  if (sorted.length === 1) return `device ${sorted[0]}`;
  return `devices ${row ? `${sorted[0]}–${sorted[sorted.length - 1]}` : sorted.length > 6 ? `${sorted.slice(0, 5).join(", ")}, …` : sorted.join(", ")}`;
}

function placementOfElement(sharding: string): Placement {
  const single = /maximal device=(\d+)/.exec(sharding);
  if (single) return { parts: 1, text: `whole on device ${single[1]}`, device: Number(single[1]) };
  if (/\breplicated\b/.test(sharding)) return { parts: 1, text: "a copy on every device" };
  const tiling = parseSharding(sharding);
  if (tiling) {
    const parts = tiling.tiles.reduce((a, b) => a * b, 1);
    const where = deviceList(tiling.devices);
    if (parts === 1) return { parts, text: `a copy on each of ${where}` };
    return { parts, text: `${parts} parts on ${where}${tiling.replicated > 1 ? `, each on ${tiling.replicated}` : ""}` };
  }
  return { parts: 0, text: /\bmanual\b/.test(sharding) ? "divided by the program (manual)" : "not said" };
}

export function placementOf(sharding: string): Placement {
  if (!sharding) return { parts: 0, text: "not said" };
  const all = elementsOf(sharding).map(placementOfElement);
  if (!all.length) return { parts: 0, text: "not said" };
  if (all.every((one) => one.text === all[0].text)) return all[0];
  return { parts: Math.max(...all.map((one) => one.parts)), text: `a tuple, in up to ${Math.max(...all.map((one) => one.parts))} parts` };
}

// The parts as a table, by the two dimensions with most of them: which devices hold each.
export function holdersOf(tiling: Tiling) {
  const dims = tiling.tiles.map((_, k) => k).sort((a, b) => tiling.tiles[b] - tiling.tiles[a]).slice(0, 2).sort((a, b) => a - b);
  const [rowDim, columnDim] = dims.length === 2 ? dims : [-1, dims.length ? dims[0] : -1];
  const strides = tiling.tiles.map((_, k) => tiling.tiles.slice(k + 1).reduce((a, b) => a * b, 1));
  const at = (dim: number, index: number) => (dim < 0 ? 0 : index * strides[dim]);
  return {
    rows: rowDim < 0 ? 1 : tiling.tiles[rowDim],
    columns: columnDim < 0 ? 1 : tiling.tiles[columnDim],
    of: (row: number, column: number) => {
      const first = (at(rowDim, row) + at(columnDim, column)) * tiling.replicated;
      return tiling.devices.slice(first, first + tiling.replicated);
    },
  };
}

const svgTag = (name: string, attributes: Record<string, string | number>, ...children: (Node | string)[]) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
};

// A rectangle of rows and columns with a text in each cell.
function grid(name: string, rows: number, columns: number, text: (row: number, column: number) => string, fill: (row: number, column: number) => string): SVGElement {
  const width = 250, cell = Math.max(16, Math.min(30, 120 / rows));
  const across = Math.min(60, width / columns);
  const svg = svgTag("svg", { class: "tensor", role: "img", "aria-label": name, width: across * columns + 1, height: cell * rows + 1 }, svgTag("title", {}, name));
  for (let row = 0; row < rows; ++row) {
    for (let column = 0; column < columns; ++column) {
      svg.append(svgTag("rect", { x: column * across + 0.5, y: row * cell + 0.5, width: across, height: cell, style: `fill:${fill(row, column)}` }));
      const label = text(row, column);
      if (label && label.length * 6 < across) svg.append(svgTag("text", { x: (column + 0.5) * across, y: row * cell + cell / 2 + 4 }, label));
    }
  }
  return svg;
}

// Variables of the colors of devices, the same in all pictures.
const deviceHues = ["matmul", "elementwise", "reduction", "custom", "all-gather", "convolution", "update", "movement"];
export const hueOfDevice = (device: number) => deviceHues[device % deviceHues.length];
const tint = (device: number) => `color-mix(in srgb, var(--${hueOfDevice(device)}) 34%, var(--card))`;
const maxCells = 8;

// Shows which devices hold which part of the tensor: the two dimensions with most parts.
export function shardingPicture(shape: string, sharding: string): HTMLElement | null {
  const tiling = parseSharding(sharding);
  const array = parseShape(shape);
  if (!tiling || !array || tiling.tiles.length !== array.dims.length) return null;
  if (!tiling.tiles.length) return null;
  const { rows, columns, of: holders } = holdersOf(tiling);
  const shownRows = Math.min(rows, maxCells), shownColumns = Math.min(columns, maxCells);
  const picture = grid(`${rows} times ${columns} parts`, shownRows, shownColumns,
    (row, column) => { const list = holders(row, column); return list.length > 2 ? `${list[0]}, …` : list.join(","); }, (row, column) => tint(holders(row, column)[0]));
  const parts = tiling.tiles.map((tile, k) => `dimension ${k} (${array.dims[k]}) in ${tile}`).filter((_, k) => tiling.tiles[k] > 1);
  const cut = shownRows < rows || shownColumns < columns ? `; shown: ${shownRows} × ${shownColumns}` : "";
  return h("div", {}, picture as unknown as Node, h("p", { class: "quiet" }, `${parts.join(", ") || "not divided"}${tiling.replicated > 1 ? `; each part on ${tiling.replicated} devices` : ""}${cut}. Numbers are devices.`));
}

// Shows the order of dimensions in memory, and how tiles cover the two minor ones.
export function layoutPicture(shape: string): HTMLElement | null {
  const array = parseShape(shape);
  if (!array?.minorToMajor || !array.dims.length) return null;
  const order = array.minorToMajor;
  const words = `fastest to slowest: ${order.map((d) => `dimension ${d} (${array.dims[d]})`).join(", ")}`;
  const tile = array.tiles[0];
  if (!tile || tile.length > 2 || tile.some((t) => !(t > 0))) return h("p", { class: "quiet" }, words);
  const columnTile = tile[tile.length - 1], rowTile = tile.length === 2 ? tile[0] : 1;
  const columnDim = array.dims[order[0]], rowDim = order.length > 1 ? array.dims[order[1]] : 1;
  const columns = Math.max(1, Math.ceil(columnDim / columnTile)), rows = Math.max(1, Math.ceil(rowDim / rowTile));
  const whole = (row: number, column: number) => (row + 1) * rowTile <= rowDim && (column + 1) * columnTile <= columnDim;
  const padding = 1 - (rowDim * columnDim) / (rows * rowTile * columns * columnTile);
  const picture = grid(`${rows} times ${columns} tiles`, Math.min(rows, maxCells), Math.min(columns, maxCells),
    (row, column) => String(row * columns + column),
    (row, column) => (whole(Math.min(row, maxCells) === maxCells - 1 ? rows - 1 : row, Math.min(column, maxCells) === maxCells - 1 ? columns - 1 : column) ? tint(0) : tint(1)));
  return h("div", {}, picture as unknown as Node,
    h("p", { class: "quiet" }, `${words}; ${rows} × ${columns} tiles of ${rowTile} × ${columnTile}${padding > 0.0005 ? `, ${(100 * padding).toFixed(1)} % padding` : ""}.`));
}

// SPDX-License-Identifier: Apache-2.0
// Colors of boxes by what the user chose, and the legend.
import { color, inkOn } from "../colors";
import { bytes, count, flops, percent, time } from "../format";
import { statusNames, type Graph } from "./graph";
import { hueOfDevice, memorySpaceOf, placementOf, type Placement } from "./tensors";

export interface Mode { key: string; name: string; available: (g: Graph) => boolean }
export const modes: Mode[] = [
  { key: "family", name: "operation", available: () => true },
  { key: "time", name: "simulated time", available: (g) => g.hasTime },
  { key: "bytes", name: "bytes read and written", available: () => true },
  { key: "flops", name: "operations (flops)", available: () => true },
  { key: "live", name: "bytes live at the peak", available: (g) => g.live[g.root] > 0 },
  { key: "space", name: "memory space", available: () => true },
  { key: "sharding", name: "sharding", available: () => true },
  { key: "device", name: "devices that hold it", available: () => true },
  { key: "status", name: "difference", available: (g) => g.compared },
];

const familyVariables: Record<string, string> = {
  parameter: "x1", constant: "control", matmul: "matmul", elementwise: "elementwise", reduction: "reduction", "data movement": "movement",
  collective: "all-reduce", fusion: "custom", "control flow": "scalar", "host transfer": "host", other: "unknown",
};
const hues = ["matmul", "elementwise", "reduction", "custom", "all-gather", "convolution", "update", "movement", "copy", "x2"];
const statusVariables = ["control", "elementwise", "matmul", "all-reduce"];

// Sequential scale of Viridis (van der Walt and Smith), which grows in lightness and can be told apart by all.
const scale = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37]];
export function scaleColor(part: number): string {
  const at = Math.max(0, Math.min(1, part)) * (scale.length - 1);
  const k = Math.min(scale.length - 2, Math.floor(at)), f = at - k;
  return `#${[0, 1, 2].map((c) => Math.round(scale[k][c] * (1 - f) + scale[k + 1][c] * f).toString(16).padStart(2, "0")).join("")}`;
}

export interface Paint { fill: string; ink: string; bar?: [string, number][] }
export interface Legend { rows: [string, string][]; gradient?: { from: string; to: string } }

export class Painter {
  mode = "family";
  private variables = new Map<string, string>();
  private papers = new Map<string, Paint>();
  private classes = new Map<string, number>();  // of shardings
  private placements = new Map<string, Placement>();  // by sharding
  private mostParts = 1;
  private largest = 0;

  constructor(private readonly g: Graph) {}

  // Reads the colors of the style sheet again.
  refresh() { this.variables.clear(); this.papers.clear(); }

  set(mode: string) {
    this.mode = modes.some((m) => m.key === mode && m.available(this.g)) ? mode : "family";
    this.papers.clear();
    this.largest = 0;
    if (this.isQuantity()) for (let i = 0; i < this.g.size; ++i) this.largest = Math.max(this.largest, this.quantity(i));
    if (this.mode === "device") for (let i = 0; i < this.g.size; ++i) this.mostParts = Math.max(this.mostParts, this.placement(i).parts);
    if (this.mode === "sharding") {
      const counts = new Map<string, number>();
      for (let i = 0; i < this.g.size; ++i) { const s = this.g.shardingOf(i); if (s) counts.set(s, (counts.get(s) ?? 0) + 1); }
      this.classes = new Map([...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([text], k) => [text, k]));
    }
  }

  private placement(i: number): Placement {
    const sharding = this.g.shardingOf(i);
    let placement = this.placements.get(sharding);
    if (!placement) this.placements.set(sharding, placement = placementOf(sharding));
    return placement;
  }

  private isQuantity() { return ["time", "bytes", "flops", "live"].includes(this.mode); }
  private values(): Float64Array { return this.mode === "time" ? this.g.time : this.mode === "bytes" ? this.g.bytes : this.mode === "live" ? this.g.live : this.g.flops; }
  private quantity(node: number) { return this.values()[node]; }
  private text(value: number) { return this.mode === "time" ? time(value) : this.mode === "flops" ? flops(value) : bytes(value); }

  // Of a name in the style sheet; colors stay.
  variable(name: string): string {
    if (name.startsWith("#")) return name;
    let value = this.variables.get(name);
    if (value === undefined) this.variables.set(name, value = color(name));
    return value;
  }

  // The class of an instruction in a mode with names: its name, and its color or the variable of it.
  private classOf(i: number): [string, string] {
    switch (this.mode) {
      case "space": {
        const space = memorySpaceOf(this.g.shapeOf(i));
        return [space === 0 ? "default memory (S(0))" : `memory space S(${space})`, space === 0 ? "control" : hues[(space - 1) % hues.length]];
      }
      case "sharding": {
        const text = this.g.shardingOf(i);
        if (!text) return ["no sharding", "unknown"];
        const at = this.classes.get(text) ?? 0;
        return at < hues.length ? [text, hues[at]] : ["other shardings", "scalar"];
      }
      case "device": {
        // Tensors in parts have a scale by the number of parts, those on one device the color of the device.
        const { parts, text, device } = this.placement(i);
        if (device !== undefined) return [text, hueOfDevice(device)];
        if (parts <= 1) return [text, parts ? "control" : "unknown"];
        return [text, scaleColor(0.2 + 0.8 * (Math.log2(parts) / Math.log2(this.mostParts)))];
      }
      case "status": return [statusNames[this.g.status[i]], statusVariables[this.g.status[i]]];
      default: return [this.g.families[this.g.family[i]], familyVariables[this.g.families[this.g.family[i]]]];
    }
  }

  private paper(hex: string, bar?: [string, number][]): Paint { return { fill: hex, ink: inkOn(hex) === "#ffffff" ? "#ffffff" : "#000000", bar }; }

  paintOf(node: number): Paint {
    if (this.isQuantity()) {
      // Groups by their part of the whole, instructions, fusions too, by that of the largest.
      const whole = node >= this.g.size ? this.quantity(this.g.root) : this.largest;
      const value = this.quantity(node);
      return this.paper(whole > 0 && value > 0 ? scaleColor(0.08 + 0.92 * Math.sqrt(Math.min(1, value / whole))) : this.variable("unknown"));
    }
    if (!this.g.hasChildren(node) || (node < this.g.size && this.mode !== "family" && this.mode !== "status")) {
      const [key, name] = this.classOf(node);
      let paint = this.papers.get(key);
      if (!paint) this.papers.set(key, paint = this.paper(this.variable(name)));
      return paint;
    }
    if (this.mode === "status") return this.paper(this.variable(statusVariables[this.g.status[node]]));
    return { fill: this.variable("card"), ink: this.variable("text"), bar: this.mode === "family" ? this.families(node) : undefined };
  }

  // Parts of the instructions in a group by family, for a bar.
  private families(node: number): [string, number][] {
    const families = this.g.families.length;
    const list: [string, number][] = [];
    for (let f = 0; f < families; ++f) {
      const n = this.g.familyCount[node * families + f];
      if (n) list.push([this.variable(familyVariables[this.g.families[f]]), n / this.g.count[node]]);
    }
    return list;
  }

  legend(): Legend {
    if (this.isQuantity()) return { rows: [], gradient: { from: "0", to: `${this.text(this.largest)} (an instruction) or ${this.text(this.quantity(this.g.root))} (a group)` } };
    const counts = new Map<string, [string, number]>();
    for (let i = 0; i < this.g.size; ++i) {
      const [key, name] = this.classOf(i);
      const entry = counts.get(key);
      if (entry) ++entry[1];
      else counts.set(key, [name, 1]);
    }
    return { rows: [...counts].sort((a, b) => b[1][1] - a[1][1]).slice(0, 14).map(([key, [name, n]]) => [`${key} (${count(n)})`, name.startsWith("#") ? name : `var(--${name})`]) };
  }

  // The lines of a box.
  lines(node: number): string[] {
    const g = this.g;
    const lines: string[] = [];
    const trips = g.trips.get(node);
    if (node >= g.size) {
      lines.push(this.shortened(g.labelOf(node), 40));
      lines.push(`${count(g.count[node])} instruction${g.count[node] === 1 ? "" : "s"}${this.summary(node)}`);
    } else {
      lines.push(this.shortened(g.names[node], 36));
      const opcode = g.opcodeOf(node);
      const value = opcode === "constant" ? ` ${this.shortened(g.payloadOf(node), 18)}` : opcode === "parameter" ? ` ${g.payloadOf(node)}` : "";
      lines.push(`${opcode}${value} ${this.shortened(g.shapeOf(node), 34)}`);
      const notes: string[] = [];
      if (trips !== undefined) notes.push(`${count(trips)} iteration${trips === 1 ? "" : "s"}`);
      const groups = /replica_groups=(\{\{.*?\}\}|\[[^\]]*\]<=\[[^\]]*\](?:T\([\d,]+\))?|\{\})/.exec(g.attributesOf(node));
      if (groups) notes.push(`groups ${groups[1] === "{}" ? "of all" : this.shortened(groups[1], 24)}`);
      if (g.hasChildren(node)) notes.push(`${count(g.count[node] - 1)} inside`);
      if (this.isQuantity() && this.quantity(node) > 0) notes.push(this.text(this.quantity(node)));
      if (notes.length) lines.push(notes.join(", "));
    }
    return lines;
  }
  private summary(node: number): string {
    if (this.isQuantity()) {
      const whole = this.quantity(this.g.root);
      return `, ${this.text(this.quantity(node))}${whole > 0 ? ` (${percent(this.quantity(node) / whole)})` : ""}`;
    }
    return "";
  }
  private shortened(text: string, limit: number) { return text.length > limit ? `${text.slice(0, Math.ceil(limit / 2))}…${text.slice(1 - Math.floor(limit / 2))}` : text; }
}

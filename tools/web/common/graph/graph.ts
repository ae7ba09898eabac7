// SPDX-License-Identifier: Apache-2.0
// The module as flat arrays. Nodes are instructions [0, size) and then groups; passes/view/graph_document.h writes them.
import { elementsOf, placeOf, type Elements } from "./elements";

interface Document {
  format: string; version: number; module: string; file: string; device?: string; replica_count: number; num_partitions: number; whole_program_devices?: number;
  strings: string[]; families: string[];
  computations: { name: string[]; size: number[]; root: number[]; entry: number };
  instructions: {
    name: string[]; opcode: number[]; family: number[]; shape: number[]; operand_count: number[]; operands: number[]; attributes: number[];
    sharding: number[]; payload: number[]; op_name: number[]; source: number[]; flops: number[]; bytes: number[]; result_bytes: number[];
    flags: number[]; peak_bytes: number; live_bytes: [number, number][]; time_ps?: [number, number][]; trip_count: [number, number][];
    callees: number[][]; counterpart?: number[]; status?: [number, number][]; differences?: [number, number][]; remarks?: [number, number][];
  };
  causes?: string[];  // of the differences from the graph before
  parent: number[];
  groups: { kind: number[]; label: number[] };
}

export const flagBits = { root: 1, live: 2, donated: 4, dead: 8, recomputed: 16, effect: 32 };
export const statusNames = ["same", "changed", "added", "removed"];

// Edges between two children of one group: how many operands, and the bytes of the distinct instructions they read.
export interface Bundle { from: number; to: number; count: number; bytes: number; edges: number[] }

export class Graph {
  readonly module: string;
  readonly file: string;
  readonly device: string;
  readonly devices: number;
  readonly causes: string[];  // of the differences from the other module, if this is the one after
  readonly wholeOf: number;  // devices whose bytes and operations those of the unpartitioned module are
  readonly size: number;      // instructions
  readonly total: number;     // nodes
  readonly root: number;      // the node of the module
  readonly names: string[];
  readonly strings: string[];
  readonly families: string[];
  readonly family: Uint8Array;
  readonly parent: Int32Array;
  readonly childBegin: Int32Array;
  readonly children: Int32Array;
  readonly operandBegin: Int32Array;
  readonly operands: Int32Array;
  readonly userBegin: Int32Array;
  readonly users: Int32Array;
  readonly flags: Uint8Array;
  readonly status: Uint8Array;
  readonly compared: boolean;
  readonly counterpart: number[] | undefined;  // the node in the other module, or -1
  readonly peakBytes: number;
  // By node, with everything in it.
  readonly count: Int32Array;
  readonly flops: Float64Array;
  readonly bytes: Float64Array;
  readonly time: Float64Array;  // microseconds
  readonly live: Float64Array;
  readonly familyCount: Uint32Array;  // [node * families + family]
  readonly resultBytes: number[];
  readonly trips = new Map<number, number>();
  readonly callees = new Map<number, number[]>();
  readonly computationNames: string[];
  readonly computationRoot: number[];
  readonly computationOf: Int32Array;
  readonly hasTime: boolean;
  readonly order: Int32Array;  // nodes, parents first
  private readonly depth: Int32Array;
  private readonly columns: Document["instructions"];
  private readonly groups: Document["groups"];
  private readonly differenceOf = new Map<number, number>();
  private readonly remarkOf = new Map<number, number>();
  // Edges by the group in which their ends are in different children.
  private edgeBegin!: Int32Array;
  private edgeFrom!: Int32Array;  // child of the group
  private edgeTo!: Int32Array;
  private edgeIndex!: Int32Array;  // into operands
  readonly edgeUser: Int32Array;  // by index into operands
  private readonly bundleCache = new Map<number, Bundle[]>();
  private readonly placesCache = new WeakMap<Bundle, string[]>();

  constructor(d: Document) {
    if (d.format !== "hlokit-graph" || d.version !== 1) throw new Error("the data of the page has an unknown format");
    const c = d.instructions;
    this.columns = c;
    this.groups = d.groups;
    this.module = d.module;
    this.file = d.file;
    this.device = d.device ?? "";
    this.wholeOf = d.whole_program_devices ?? 1;
    this.devices = Math.max(1, d.replica_count) * Math.max(1, d.num_partitions);
    this.causes = d.causes ?? [];
    this.names = c.name;
    this.strings = d.strings;
    this.families = d.families;
    this.size = c.name.length;
    this.total = d.parent.length;
    this.root = this.size;
    this.family = Uint8Array.from(c.family);
    this.flags = Uint8Array.from(c.flags);
    this.resultBytes = c.result_bytes;
    this.peakBytes = c.peak_bytes;
    this.parent = Int32Array.from(d.parent);
    this.computationNames = d.computations.name;
    this.computationRoot = d.computations.root;
    this.computationOf = new Int32Array(this.size);
    for (let k = 0, at = 0; k < d.computations.size.length; ++k) {
      this.computationOf.fill(k, at, at + d.computations.size[k]);
      at += d.computations.size[k];
    }

    // Operands and users.
    this.operandBegin = new Int32Array(this.size + 1);
    for (let i = 0; i < this.size; ++i) this.operandBegin[i + 1] = this.operandBegin[i] + c.operand_count[i];
    const edges = this.operandBegin[this.size];
    this.operands = new Int32Array(edges);
    this.edgeUser = new Int32Array(edges);
    this.userBegin = new Int32Array(this.size + 1);
    for (let i = 0; i < this.size; ++i) {
      for (let e = this.operandBegin[i]; e < this.operandBegin[i + 1]; ++e) {
        this.operands[e] = i - c.operands[e];
        this.edgeUser[e] = i;
        ++this.userBegin[this.operands[e] + 1];
      }
    }
    for (let i = 0; i < this.size; ++i) this.userBegin[i + 1] += this.userBegin[i];
    const next = this.userBegin.slice();
    this.users = new Int32Array(edges);
    for (let e = 0; e < edges; ++e) this.users[next[this.operands[e]]++] = this.edgeUser[e];

    // Children, and an order with parents first.
    this.childBegin = new Int32Array(this.total + 1);
    for (const p of this.parent) if (p >= 0) ++this.childBegin[p + 1];
    for (let k = 0; k < this.total; ++k) this.childBegin[k + 1] += this.childBegin[k];
    const place = this.childBegin.slice();
    this.children = new Int32Array(Math.max(0, this.total - 1));
    for (let k = 0; k < this.total; ++k) if (this.parent[k] >= 0) this.children[place[this.parent[k]]++] = k;
    this.order = new Int32Array(this.total);
    this.depth = new Int32Array(this.total);
    this.order[0] = this.root;
    for (let read = 0, write = 1; read < write; ++read) {
      const node = this.order[read];
      for (let k = this.childBegin[node]; k < this.childBegin[node + 1]; ++k) {
        this.depth[this.children[k]] = this.depth[node] + 1;
        this.order[write++] = this.children[k];
      }
    }

    // Totals. An instruction's cost has that of its callees, but not their times.
    const families = this.families.length;
    this.count = new Int32Array(this.total);
    this.flops = new Float64Array(this.total);
    this.bytes = new Float64Array(this.total);
    this.time = new Float64Array(this.total);
    this.live = new Float64Array(this.total);
    this.familyCount = new Uint32Array(this.total * families);
    this.status = new Uint8Array(this.total);
    for (let i = 0; i < this.size; ++i) {
      this.count[i] = 1;
      this.flops[i] = c.flops[i];
      this.bytes[i] = c.bytes[i];
      this.familyCount[i * families + this.family[i]] = 1;
    }
    for (const [i, ps] of c.time_ps ?? []) this.time[i] = ps / 1e6;
    for (const [i, bytes] of c.live_bytes) this.live[i] = bytes;
    for (const [i, trips] of c.trip_count) this.trips.set(i, trips);
    for (const [i, ...called] of c.callees) this.callees.set(i, called);
    for (const [i, status] of c.status ?? []) this.status[i] = status;
    for (const [i, text] of c.differences ?? []) this.differenceOf.set(i, text);
    for (const [i, text] of c.remarks ?? []) this.remarkOf.set(i, text);
    this.compared = c.status !== undefined;
    this.counterpart = c.counterpart;
    this.hasTime = c.time_ps !== undefined;
    for (let k = this.total - 1; k > 0; --k) {
      const node = this.order[k], parent = this.parent[node];
      this.count[parent] += this.count[node];
      this.time[parent] += this.time[node];
      this.live[parent] += this.live[node];
      if (this.status[node] && parent >= this.size) this.status[parent] = 1;
      for (let f = 0; f < families; ++f) this.familyCount[parent * families + f] += this.familyCount[node * families + f];
      if (parent < this.size) continue;
      this.flops[parent] += this.flops[node];
      this.bytes[parent] += this.bytes[node];
    }

    this.connect();
  }

  // Sorts the edges by the innermost group that has both ends: the children of it they are in.
  private connect() {
    const edges = this.operands.length;
    const group = new Int32Array(edges), from = new Int32Array(edges), to = new Int32Array(edges);
    const counts = new Int32Array(this.total + 1);
    for (let e = 0; e < edges; ++e) {
      group[e] = -1;
      let a = this.originOf(e), b = this.edgeUser[e];
      if (this.isFolded(b)) continue;
      while (this.depth[a] > this.depth[b]) a = this.parent[a];
      while (this.depth[b] > this.depth[a]) b = this.parent[b];
      while (this.parent[a] !== this.parent[b]) { a = this.parent[a]; b = this.parent[b]; }
      group[e] = this.parent[a];
      from[e] = a;
      to[e] = b;
      ++counts[group[e] + 1];
    }
    for (let k = 0; k < this.total; ++k) counts[k + 1] += counts[k];
    this.edgeBegin = counts.slice();
    this.edgeFrom = new Int32Array(edges);
    this.edgeTo = new Int32Array(edges);
    this.edgeIndex = new Int32Array(edges);
    for (let e = 0; e < edges; ++e) {
      if (group[e] < 0) continue;
      const at = counts[group[e]]++;
      this.edgeFrom[at] = from[e];
      this.edgeTo[at] = to[e];
      this.edgeIndex[at] = e;
    }
  }

  // ---- tuple elements ----
  private known: Elements | undefined;
  private elements: Elements | null = null;  // null: each has a box
  private get foldable() { return this.known ??= elementsOf(this); }
  get elementCount() { return this.foldable.count; }
  // Makes tuple elements parts of lines, or boxes.
  fold(on: boolean) {
    if (on === (this.elements !== null)) return;
    this.elements = on ? this.foldable : null;
    this.bundleCache.clear();
    this.flow = undefined;
    this.connect();
  }
  isFolded(node: number) { return this.elements !== null && this.elements.folded[node] !== 0; }
  standInOf(node: number) { return this.elements && node >= 0 ? this.elements.standIn[node] : node; }
  // Where the line of an edge begins.
  originOf(e: number) { return this.standInOf(this.operands[e]); }
  // Does the line of an edge carry this element?
  carries(e: number, element: number) {
    for (let at = this.operands[e]; this.isFolded(at); at = this.operandsOf(at)[0]) if (at === element) return true;
    return false;
  }
  // What an instruction reads, and what reads it, with no folded elements in between.
  readsOf(i: number): number[] { return Array.from(this.operandsOf(i), (operand) => this.standInOf(operand)); }
  readersOf(i: number): number[] {
    const readers = new Set<number>(), pending = [i];
    for (let k = 0; k < pending.length; ++k) {
      for (const user of this.usersOf(pending[k])) {
        if (this.isFolded(user)) pending.push(user);
        else readers.add(user);
      }
    }
    return [...readers];
  }
  placeOf(element: number) { return placeOf(this, element); }
  // Returns which elements of one tuple a bundle carries, [] if it is anything else.
  placesIn(bundle: Bundle): string[] {
    const cached = this.placesCache.get(bundle);
    if (cached) return cached;
    const first = this.originOf(bundle.edges[0]);
    const alike = bundle.edges.every((e) => this.isFolded(this.operands[e]) && this.originOf(e) === first);
    const places = alike ? [...new Set(bundle.edges.map((e) => this.placeOf(this.operands[e])))] : [];
    this.placesCache.set(bundle, places);
    return places;
  }
  // Returns the bytes of what edges read, each once.
  bytesOf(edges: number[]): number {
    const seen = new Set<number | string>();
    let sum = 0;
    for (const e of edges) {
      const read = this.operands[e];
      const key = this.isFolded(read) ? `${this.originOf(e)} ${this.placeOf(read)}` : read;
      if (!seen.has(key)) { seen.add(key); sum += this.resultBytes[read]; }
    }
    return sum;
  }

  isGroup(node: number) { return node >= this.size; }
  hasChildren(node: number) { return this.childBegin[node + 1] > this.childBegin[node]; }
  childrenOf(node: number) { return this.children.subarray(this.childBegin[node], this.childBegin[node + 1]); }
  kindOf(node: number) { return node < this.size ? this.opcodeOf(node) : this.strings[this.groups.kind[node - this.size]]; }
  labelOf(node: number) { return node < this.size ? this.names[node] : this.strings[this.groups.label[node - this.size]]; }
  opcodeOf(i: number) { return this.strings[this.columns.opcode[i]]; }
  shapeOf(i: number) { return this.strings[this.columns.shape[i]]; }
  attributesOf(i: number) { return this.strings[this.columns.attributes[i]]; }
  shardingOf(i: number) { return this.strings[this.columns.sharding[i]]; }
  payloadOf(i: number) { return this.strings[this.columns.payload[i]]; }
  opNameOf(i: number) { return this.strings[this.columns.op_name[i]]; }
  sourceOf(i: number) { return this.strings[this.columns.source[i]]; }
  remarksOf(i: number) { return this.strings[this.remarkOf.get(i) ?? 0]; }
  differencesOf(i: number) { return this.strings[this.differenceOf.get(i) ?? 0]; }
  operandsOf(i: number) { return this.operands.subarray(this.operandBegin[i], this.operandBegin[i + 1]); }
  usersOf(i: number) { return this.users.subarray(this.userBegin[i], this.userBegin[i + 1]); }

  // Returns the nodes around a node, the module first.
  ancestorsOf(node: number): number[] {
    const list: number[] = [];
    for (let at = this.parent[node]; at >= 0; at = this.parent[at]) list.push(at);
    return list.reverse();
  }

  isIn(node: number, group: number) {
    while (node >= 0 && this.depth[node] > this.depth[group]) node = this.parent[node];
    return node === group;
  }

  // Returns the bundles between the children of a group; a bundle reads an instruction once.
  bundlesOf(group: number): Bundle[] {
    const cached = this.bundleCache.get(group);
    if (cached) return cached;
    const bundles = new Map<number, Bundle>();
    for (let k = this.edgeBegin[group]; k < this.edgeBegin[group + 1]; ++k) {
      const from = this.edgeFrom[k], to = this.edgeTo[k];
      const key = from * this.total + to;
      let bundle = bundles.get(key);
      if (!bundle) bundles.set(key, bundle = { from, to, count: 0, bytes: 0, edges: [] });
      ++bundle.count;
      bundle.edges.push(this.edgeIndex[k]);
    }
    const list = [...bundles.values()];
    for (const bundle of list) bundle.bytes = this.bytesOf(bundle.edges);
    this.bundleCache.set(group, list);
    return list;
  }

  // Returns what an instruction reads (or what reads it), through calls: a parameter of a computation with one caller
  // reads the caller's operand, and a caller reads the roots of what it calls.
  sourcesOf(i: number): number[] {
    const list = Array.from(this.operandsOf(i));
    for (const callee of this.callees.get(i) ?? []) if (this.callersOf(callee).length === 1 && this.computationRoot[callee] >= 0) list.push(this.computationRoot[callee]);
    if (this.families[this.family[i]] === "parameter") {
      const callers = this.callersOf(this.computationOf[i]);
      if (callers.length === 1) {
        const operands = this.operandsOf(callers[0]);
        const operand = operands[operands.length === 1 ? 0 : Number(this.payloadOf(i))];
        if (operand !== undefined) list.push(operand);
      }
    }
    return list;
  }

  private callers: number[][] | undefined;
  callersOf(computation: number): number[] {
    if (!this.callers) {
      this.callers = this.computationNames.map(() => []);
      for (const [i, called] of this.callees) for (const c of new Set(called)) this.callers[c].push(i);
    }
    return this.callers[computation];
  }

  // The same in both directions, for walks.
  private flow: { begin: Int32Array; next: Int32Array; backBegin: Int32Array; back: Int32Array } | undefined;
  private flowOf() {
    if (this.flow) return this.flow;
    const from: number[] = [], to: number[] = [];
    for (let i = 0; i < this.size; ++i) {
      for (const source of this.sourcesOf(i)) {
        // A folded element is no hop.
        for (const at of new Set([source, this.standInOf(source)])) { from.push(at); to.push(i); }
      }
    }
    const index = (keys: number[], values: number[]): [Int32Array, Int32Array] => {
      const begin = new Int32Array(this.size + 1);
      for (const key of keys) ++begin[key + 1];
      for (let k = 0; k < this.size; ++k) begin[k + 1] += begin[k];
      const next = begin.slice(), list = new Int32Array(keys.length);
      keys.forEach((key, k) => { list[next[key]++] = values[k]; });
      return [begin, list];
    };
    const [begin, next] = index(from, to);
    const [backBegin, back] = index(to, from);
    return this.flow = { begin, next, backBegin, back };
  }

  // Returns the instructions at most `hops` away from some: upstream, downstream or both.
  reach(starts: number[], hops: number, up: boolean, down: boolean): Set<number> {
    const flow = this.flowOf();
    const seen = new Set(starts);
    let front = starts;
    for (let hop = 0; hop < hops && front.length; ++hop) {
      const further: number[] = [];
      const visit = (begin: Int32Array, list: Int32Array, i: number) => {
        for (let k = begin[i]; k < begin[i + 1]; ++k) if (!seen.has(list[k])) { seen.add(list[k]); further.push(list[k]); }
      };
      for (const i of front) {
        if (up) visit(flow.backBegin, flow.back, i);
        if (down) visit(flow.begin, flow.next, i);
      }
      front = further;
    }
    return seen;
  }

  // Returns the instructions on any path of data from one to the other.
  paths(from: number, to: number): Set<number> {
    const after = this.reach([from], this.size, false, true);
    const before = this.reach([to], this.size, true, false);
    return new Set([...after].filter((i) => before.has(i)));
  }
}

// Inflates the base64 text of an element, and removes the element.
export async function inflated(id: string): Promise<Uint8Array<ArrayBuffer>> {
  const element = document.getElementById(id)!;
  const binary = atob(element.textContent!);
  element.remove();
  const bytes = new Uint8Array(binary.length);
  for (let k = 0; k < binary.length; ++k) bytes[k] = binary.charCodeAt(k);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function readGraphs(): Promise<Graph[]> {
  const documents = JSON.parse(new TextDecoder().decode(await inflated("graph-data"))) as Document[];
  return documents.map((d) => new Graph(d));
}

// SPDX-License-Identifier: Apache-2.0
// The state of the page and what the user can do to it. Everything goes through here: mouse, keyboard, address.
import { h } from "../dom";
import { count } from "../format";
import { flagBits, type Graph } from "./graph";
import { decode, encode, isOf, type Filter, type State } from "./location";
import { Painter } from "./paint";
import { details, spoken, type Actions } from "./panel";
import { Scene } from "./scene";
import { QueryError, search } from "./search";
import { Viewport } from "./viewport";

const boxesAtFirst = [40, 28, 20, 12];  // the first of them with which the whole graph can be read in the window
const maxOpened = 400;  // boxes that a filter opens by itself
const maxAhead = 60;    // groups that are laid out before they are opened
const idle = () => new Promise<void>((done) => { if ("requestIdleCallback" in window) requestIdleCallback(() => done()); else setTimeout(done, 20); });

export const marks: [string, string, (g: Graph, i: number) => boolean][] = [
  ["", "nothing", () => false],
  ["live", "live at the peak", (g, i) => (g.flags[i] & flagBits.live) !== 0],
  ["parameter", "parameters", (g, i) => g.families[g.family[i]] === "parameter"],
  ["donated", "donated parameters", (g, i) => (g.flags[i] & flagBits.donated) !== 0],
  ["collective", "collectives", (g, i) => g.families[g.family[i]] === "collective"],
  ["loop", "loops", (g, i) => g.opcodeOf(i) === "while"],
  ["effect", "side effects", (g, i) => (g.flags[i] & flagBits.effect) !== 0],
  ["dead", "dead instructions", (g, i) => (g.flags[i] & flagBits.dead) !== 0],
  ["recomputed", "recomputed instructions", (g, i) => (g.flags[i] & flagBits.recomputed) !== 0],
  ["changed", "differences", (g, i) => g.status[i] !== 0],
];

export class App implements Actions {
  graph: Graph;
  scene: Scene;
  painter: Painter;
  selected = -1;
  mark = "";
  query = "";
  filter: Filter | null = null;
  elements = false;                // tuple elements have boxes
  hits: number[] = [];
  hit = -1;
  viewport!: Viewport;
  changed: () => void = () => {};  // the controls follow
  moved: () => void = () => {};    // another selection, or other groups are open
  private start = -1;              // of paths
  private queue: Promise<void> = Promise.resolve();
  private panel!: HTMLElement;
  private crumbs!: HTMLElement;
  private status!: HTMLElement;
  private settle = 0;
  private ahead = 0;               // how often groups were laid out ahead

  // `prefix`: of the fragments with the state (location.ts).
  constructor(readonly graphs: Graph[], public current: number, private readonly prefix: string) {
    this.graph = graphs[current];
    for (const g of graphs) g.fold(true);
    this.painter = new Painter(this.graph);
    this.painter.set(this.graph.compared ? "status" : this.graph.hasTime ? "time" : "family");
    this.scene = new Scene(this.graph, (node) => this.painter.lines(node));
  }

  attach(viewport: Viewport, panel: HTMLElement, crumbs: HTMLElement, status: HTMLElement) {
    this.viewport = viewport;
    this.panel = panel;
    this.crumbs = crumbs;
    this.status = status;
    viewport.moved = () => { clearTimeout(this.settle); this.settle = window.setTimeout(() => { this.remember(false); if (this.ahead) void this.layOutAhead(); }, 300); };
    viewport.clicked = (node) => { void this.select(node, false); };
    // What the pointer is on may be opened next.
    viewport.hovered = (node) => { if (this.ahead && this.isClosed(node)) this.scene.prepare(node).catch(() => {}); };
    viewport.doubleClicked = (node) => { if (node !== this.graph.root) void this.toggle(node); };
    addEventListener("popstate", () => { if (isOf(location.hash, this.prefix)) void this.go(); });
  }

  say(text: string) { this.status.textContent = text; }

  // Changes run one after another: each lays out what it needs.
  private run(change: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(change).catch((error: unknown) => { this.say(`This cannot be drawn: ${String(error)}`); console.error(error); })
      .then(() => { if (this.ahead) void this.layOutAhead(); });
    return this.queue;
  }

  async begin() {
    const state = decode(location.hash, this.prefix);
    if (state && state.name === undefined) { await this.restore(state); return; }
    await this.run(async () => {
      this.say("Laying out the graph …");
      // The boxes are there before the lines.
      this.scene.sketch();
      this.viewport.sceneChanged(new Map(), -1);
      this.viewport.open();
      await this.openAtFirst([], new Map());
      this.show(this.graph.root);
      this.say("");
    });
    if (state) await this.showNamed(state.name!);
  }

  // Goes where the address says. Without a state, as that of a link to the graph, everything stays as it is.
  private async go() {
    const state = decode(location.hash, this.prefix);
    if (state?.name !== undefined) await this.showNamed(state.name);
    else if (state) await this.restore(state);
    else this.remember(false);
  }
  private async showNamed(name: string) {
    const node = this.graph.names.indexOf(name);
    this.remember(false);  // in place of the name: going back does not come here again
    if (node >= 0) await this.select(node, true);
    else this.say(`There is no instruction ${name} here.`);
  }

  // Opens as many groups as can be read, and shows all of it.
  private async openAtFirst(around: number[] = [], before = this.scene.boxes) {
    for (const limit of boxesAtFirst) {
      this.scene.open.clear();
      this.scene.open.add(this.graph.root);
      this.scene.openAtFirst(limit);
      for (const node of around) this.scene.open.add(node);
      await this.scene.update();
      if (this.viewport.wholeIsReadable()) break;
    }
    this.countHits();
    this.viewport.sceneChanged(before, -1);
    this.viewport.open();
  }

  private async layOut(anchor: number) {
    const before = this.scene.boxes;
    await this.scene.update();
    this.countHits();
    this.viewport.sceneChanged(before, anchor);
  }

  // Lays out closed groups before they are opened, one after another, while the page has nothing else to do: the selected one,
  // then those in view.
  async layOutAhead(): Promise<void> {
    const turn = ++this.ahead;
    const scene = this.scene;
    const waiting = this.viewport.closedGroups(maxAhead);
    if (this.isClosed(this.selected)) waiting.unshift(this.selected);
    for (const node of waiting) {
      await idle();
      if (turn !== this.ahead) return;
      await scene.prepare(node).catch(() => {});  // said when it is opened
    }
  }

  private async restore(s: Partial<State>) {
    await this.run(async () => {
      const g = this.graphs[Math.min(s.graph ?? 0, this.graphs.length - 1)];
      if (g !== this.graph) this.useGraph(g);
      const valid = (node: number | undefined) => node !== undefined && node >= 0 && node < this.graph.total;
      this.painter.set(s.mode ?? "family");
      this.mark = marks.some((m) => m[0] === s.mark) ? s.mark! : "";
      this.filter = s.filter && s.filter.a < this.graph.size && (s.filter.kind === "hops" || s.filter.b < this.graph.size) ? s.filter : null;
      this.elements = s.elements ?? false;
      for (const graph of this.graphs) graph.fold(!this.elements);
      this.scene.show(this.filtered());
      this.find(s.query ?? "");
      this.selected = valid(s.selected) ? s.selected! : -1;
      if (s.open) {
        this.scene.open.clear();
        for (const node of [this.graph.root, ...s.open]) if (valid(node)) this.scene.open.add(node);
        await this.layOut(-1);
      } else {
        await this.openAtFirst();
      }
      if (s.camera) {
        const [x, y, scale] = s.camera;
        this.viewport.go({ scale, x: x - this.viewport.width / 2 / scale, y: y - this.viewport.height / 2 / scale }, false);
      } else if (this.selected >= 0 && this.selected !== this.graph.root) {
        this.viewport.center(this.selected, false);
      } else {
        this.viewport.open();
      }
      this.show(this.selected >= 0 ? this.selected : this.graph.root);
      this.changed();
    });
  }

  state(): State {
    const { camera, width, height } = this.viewport;
    const open = [...this.scene.open].filter((node) => node !== this.graph.root).sort((a, b) => a - b);
    return { graph: this.current, open, selected: this.selected, mode: this.painter.mode, mark: this.mark, query: this.query, filter: this.filter, elements: this.elements,
      camera: [camera.x + width / 2 / camera.scale, camera.y + height / 2 / camera.scale, camera.scale] };
  }
  private remember(step: boolean) {
    if (!isOf(location.hash, this.prefix)) return;  // the page shows something else
    const url = encode(this.state(), this.prefix);
    if (step && url !== location.hash) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
  }

  private useGraph(g: Graph) {
    const mode = this.painter.mode;
    this.graph = g;
    this.current = this.graphs.indexOf(g);
    this.painter = new Painter(g);
    this.painter.set(mode);
    this.scene = new Scene(g, (node) => this.painter.lines(node));
    this.viewport.use(this.scene, this.painter);
    this.selected = this.start = -1;
    this.filter = null;
  }
  switchGraph(index: number) {
    return this.run(async () => {
      // Stays at the same instruction.
      const at = this.selected;
      const same = at >= 0 && at < this.graph.size ? (this.graph.counterpart?.[at] ?? -1) : -1;
      const query = this.query;
      this.useGraph(this.graphs[index]);
      this.find(query);
      this.selected = same;
      await this.openAtFirst(same >= 0 ? this.graph.ancestorsOf(this.graph.standInOf(same)) : []);
      if (same >= 0) this.viewport.center(same, false);
      if (at >= 0 && same < 0 && this.graph.compared) this.say("What was selected has no counterpart here.");
      this.show(same >= 0 ? same : this.graph.root);
      this.changed();
      this.remember(true);
    });
  }

  // Shows the details of a node.
  private show(node: number) {
    this.viewport.marks = { ...this.viewport.marks, selected: this.selected };
    this.panel.replaceChildren(...details(this.graph, node, this));
    const path = [...this.graph.ancestorsOf(node), node];
    this.crumbs.replaceChildren(...path.map((at, k) => h("li", {}, h("button", { type: "button", "aria-current": k + 1 === path.length ? "location" : undefined, onclick: () => { void this.select(at, true); } },
      this.graph.labelOf(at).length > 40 ? `${this.graph.labelOf(at).slice(0, 38)}…` : this.graph.labelOf(at)))));
    this.viewport.redraw();
    this.moved();
  }

  // ---- actions ----
  isOpen(node: number) { return this.scene.isOpen(node); }
  private isClosed(node: number) { return node >= 0 && this.graph.hasChildren(node) && !this.scene.isOpen(node); }
  pathStart() { return this.start; }

  // Selects a node; opens the groups around it.
  select(node: number, center = true): Promise<void> {
    return this.run(async () => {
      const drawn = this.graph.standInOf(node);
      if (this.scene.only && !this.scene.only[drawn]) {
        this.filter = null;
        this.scene.show(null);
        this.changed();
      }
      const hidden = this.graph.ancestorsOf(drawn).filter((at) => !this.scene.open.has(at));
      for (const at of hidden) this.scene.open.add(at);
      this.selected = node === this.graph.root ? -1 : node;
      // For what is around the page, as an editor: the links of the other direction are fragments with a name.
      if (this.selected >= 0 && this.selected < this.graph.size) dispatchEvent(new CustomEvent("hlo-select", { detail: this.graph.names[this.selected] }));
      if (hidden.length || !this.scene.boxes.has(drawn)) await this.layOut(hidden[0] ?? -1);
      if (node === this.graph.root) { if (center) this.viewport.fit(node); }
      else if (center && hidden.length) this.viewport.center(drawn);
      else if (center) this.viewport.ensureSeen(drawn);
      this.show(node);
      this.say(spoken(this.graph, node, this.isOpen(node)));
      this.remember(true);
    });
  }

  toggle(node: number): Promise<void> {
    return this.run(async () => {
      if (!this.graph.hasChildren(node) || node === this.graph.root || this.graph.isFolded(node)) return;
      if (this.scene.open.has(node)) this.scene.open.delete(node);
      else this.scene.open.add(node);
      this.selected = node;
      await this.layOut(node);
      this.show(node);
      this.say(spoken(this.graph, node, this.isOpen(node)));
      this.remember(true);
    });
  }

  closeAll() {
    return this.run(async () => {
      await this.openAtFirst();
      this.remember(true);
    });
  }

  // Tuple elements get boxes, or are parts of the lines.
  setElements(shown: boolean) {
    return this.run(async () => {
      this.elements = shown;
      for (const g of this.graphs) g.fold(!shown);
      this.scene.show(this.filtered());
      await this.layOut(this.graph.standInOf(this.selected));
      if (this.selected >= 0) this.viewport.ensureSeen(this.graph.standInOf(this.selected));
      else this.viewport.open();
      this.show(this.selected >= 0 ? this.selected : this.graph.root);
      this.changed();
      this.remember(true);
    });
  }

  setMode(mode: string) {
    return this.run(async () => {
      this.painter.set(mode);
      await this.layOut(this.selected);
      this.changed();
      this.moved();
      this.remember(true);
    });
  }
  setMark(mark: string) {
    this.mark = mark;
    this.find(this.query);
    this.countHits();
    this.viewport.repaint();
    this.remember(true);
    const test = marks.find((m) => m[0] === mark)!;
    if (mark) this.say(`${count(this.hits.length)} ${test[1]}`);
  }

  // The instructions of the filter; null: all.
  private filtered(): Set<number> | null {
    if (!this.filter) return null;
    const { kind, a, b } = this.filter;
    return kind === "hops" ? this.graph.reach([a], b, true, true) : this.graph.paths(a, b);
  }
  setFilter(filter: Filter | null): Promise<void> {
    return this.run(async () => {
      this.filter = filter;
      const shown = this.filtered();
      if (shown && filter!.kind === "paths" && !shown.size) {
        this.filter = null;
        this.say(`No path leads from ${this.graph.names[filter!.a]} to ${this.graph.names[filter!.b]}.`);
        return;
      }
      this.scene.show(shown);
      if (shown) {
        if (shown.size <= maxOpened) for (const i of shown) for (const node of this.graph.ancestorsOf(i)) this.scene.open.add(node);
        this.selected = filter!.kind === "hops" ? filter!.a : filter!.b;
        for (const node of this.graph.ancestorsOf(this.selected)) this.scene.open.add(node);
        this.say(`${count([...shown].filter((i) => !this.graph.isFolded(i)).length)} instructions shown`);
      }
      await this.layOut(-1);
      if (this.selected >= 0 && !shown) this.viewport.center(this.selected);
      else this.viewport.fit(this.graph.root);
      this.show(this.selected >= 0 ? this.selected : this.graph.root);
      this.changed();
      this.remember(true);
    });
  }
  neighborhood(node: number, hops: number) { void this.setFilter({ kind: "hops", a: node, b: hops }); }
  pathFrom(node: number) {
    this.start = node;
    this.say(`Paths from ${this.graph.names[node]}: now select where they end.`);
  }
  pathTo(node: number) {
    if (this.start >= 0) void this.setFilter({ kind: "paths", a: this.start, b: node });
  }

  // ---- search ----
  // Returns an error in the query, or "".
  setQuery(text: string): string {
    const error = this.find(text);
    this.countHits();
    this.viewport.repaint();
    this.remember(false);
    return error;
  }
  private find(text: string): string {
    this.query = text;
    this.hit = -1;
    this.hits = [];
    const mark = marks.find((m) => m[0] === this.mark)!;
    let error = "";
    try {
      if (text.trim()) this.hits = search(text, this.graph);
    } catch (problem) {
      if (!(problem instanceof QueryError)) throw problem;
      error = problem.message;
    }
    if (this.mark) {
      if (text.trim()) this.hits = this.hits.filter((i) => mark[2](this.graph, i));
      else for (let i = 0; i < this.graph.size; ++i) if (mark[2](this.graph, i)) this.hits.push(i);
    }
    return error;
  }
  private countHits() {
    const active = this.query.trim() !== "" || this.mark !== "";
    const boxes = new Map<number, number>();
    for (const i of this.hits) {
      const box = this.scene.shownAs(i);
      boxes.set(box, (boxes.get(box) ?? 0) + 1);
    }
    this.viewport.marks = { selected: this.selected, hits: active ? new Set(this.hits) : null, hitBoxes: boxes, current: this.hit >= 0 ? this.graph.standInOf(this.hits[this.hit]) : -1 };
  }
  async nextHit(step: number) {
    if (!this.hits.length) return;
    this.hit = (this.hit + step + this.hits.length + (this.hit < 0 && step < 0 ? 1 : 0)) % this.hits.length;
    await this.select(this.hits[this.hit], true);
    this.countHits();
    this.viewport.redraw();
    this.changed();
  }

  // Moves the selection: to an operand, a user, a neighbor in the group, the group, its first child.
  step(where: "operand" | "user" | "left" | "right" | "out" | "in") {
    const g = this.graph;
    const node = g.standInOf(this.selected);
    if (node < 0 || !this.scene.boxes.has(node)) {
      void this.select(this.scene.shownChildren(g.root)[0] ?? g.root, true);
      return;
    }
    const parent = g.parent[node];
    const box = this.scene.boxes.get(node)!;
    let next: number | undefined;
    if (where === "out") next = parent;
    else if (where === "in") next = this.scene.isOpen(node) ? this.scene.shownChildren(node)[0] : undefined;
    else if (where === "left" || where === "right") {
      // The nearest sibling in that direction, in the same layer rather than in another.
      const sign = where === "left" ? -1 : 1;
      let best = Infinity;
      for (const sibling of this.scene.shownChildren(parent)) {
        const other = this.scene.boxes.get(sibling)!;
        const dx = sign * (other.x - box.x), dy = Math.abs(other.y + other.height / 2 - box.y - box.height / 2);
        if (dx > 0 && dx + 4 * dy < best) { best = dx + 4 * dy; next = sibling; }
      }
    } else {
      // Of an instruction the largest operand or the first user, or the closed group that it is in.
      const at = this.selected < g.size ? this.selected : node;
      const list = at < g.size ? (where === "operand" ? g.readsOf(at) : g.readersOf(at)) : [];
      if (where === "operand") list.sort((a, b) => g.resultBytes[b] - g.resultBytes[a]);
      const bundles = this.scene.shownBundles(parent).filter((b) => (where === "operand" ? b.to : b.from) === node);
      bundles.sort((a, b) => b.bytes - a.bytes);
      if (list.length) next = this.scene.shownAs(list[0]) >= 0 ? this.scene.shownAs(list[0]) : list[0];
      else if (bundles.length) next = where === "operand" ? bundles[0].from : bundles[0].to;
    }
    if (next !== undefined && next >= 0) void this.select(next, true);
    else this.say(`Nothing ${where === "operand" ? "before" : where === "user" ? "after" : where === "in" ? "inside" : "beside"} ${g.labelOf(node)}.`);
  }
}

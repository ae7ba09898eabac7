// SPDX-License-Identifier: Apache-2.0
// The other module of a comparison, beside the one that is looked at: the same groups open, at the counterpart of what is
// selected.
import { h } from "../dom";
import type { App } from "./app";
import type { Graph } from "./graph";
import { Painter } from "./paint";
import { Scene } from "./scene";
import { Viewport } from "./viewport";

// Groups by the names of those around them.
function paths(g: Graph): Map<string, number> {
  const path = new Map<number, string>([[g.root, ""]]);
  const found = new Map<string, number>();
  for (const node of g.order) {
    if (node === g.root || !g.hasChildren(node)) continue;
    const text = `${path.get(g.parent[node])}\n${g.labelOf(node)}`;
    path.set(node, text);
    if (!found.has(text)) found.set(text, node);
  }
  return found;
}

export class Beside {
  readonly element: HTMLElement;
  viewport: Viewport | undefined;
  shown = false;
  private elements = false;
  private graph: Graph | undefined;
  private scene: Scene | undefined;
  private painter: Painter | undefined;
  private readonly known = new Map<Graph, Map<string, number>>();
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly minimap = h("canvas", { class: "minimap", "aria-hidden": "true" });
  private readonly title = h("p", { class: "which" });
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly app: App) {
    // What is here can be had with the keyboard by switching between the modules.
    this.element = h("div", { class: "stage beside", hidden: true }, this.canvas, this.minimap, this.title);
  }

  private pathsOf(g: Graph) {
    let found = this.known.get(g);
    if (!found) this.known.set(g, found = paths(g));
    return found;
  }

  show(shown: boolean) {
    this.shown = shown;
    this.element.hidden = !shown;
    if (shown) this.follow();
  }

  recolor() {
    this.painter?.refresh();
    this.viewport?.repaint();
  }

  // Shows the counterpart of what the page shows.
  follow() {
    if (!this.shown) return;
    this.running = this.running.then(() => this.update()).catch((error: unknown) => { console.error(error); });
  }

  private async update() {
    const { app } = this;
    const other = app.graphs[1 - app.current];
    if (other !== this.graph) {
      this.graph = other;
      const painter = this.painter = new Painter(other);
      const scene = this.scene = new Scene(other, (node) => painter.lines(node));
      if (this.viewport) this.viewport.use(scene, painter);
      else {
        this.viewport = new Viewport(this.canvas, this.minimap, scene, painter);
        this.viewport.clicked = (node) => { void this.choose(node); };
      }
      this.title.textContent = app.current ? "before" : "after";
    }
    const scene = this.scene!, viewport = this.viewport!;
    if (this.painter!.mode !== app.painter.mode) this.painter!.set(app.painter.mode);
    if (this.elements !== app.elements) scene.show(null);  // the lines of all groups are others
    this.elements = app.elements;
    const names = this.pathsOf(other);
    scene.open.clear();
    scene.open.add(other.root);
    for (const [path, node] of this.pathsOf(app.graph)) {
      const same = app.scene.open.has(node) ? names.get(path) : undefined;
      if (same !== undefined) scene.open.add(same);
    }
    const selected = app.selected;
    let at = -1;
    if (selected >= 0 && selected < app.graph.size) at = app.graph.counterpart?.[selected] ?? -1;
    else if (selected >= 0) for (const [path, node] of this.pathsOf(app.graph)) if (node === selected) at = names.get(path) ?? -1;
    if (at >= 0) for (const node of other.ancestorsOf(other.standInOf(at))) scene.open.add(node);
    const before = scene.boxes;
    await scene.update();
    viewport.marks = { selected: at, hits: null, hitBoxes: new Map(), current: -1 };
    viewport.sceneChanged(before, at);
    if (at >= 0) viewport.center(at, before.size > 0);
    else if (!before.size) viewport.open();
  }

  // A click here selects the counterpart there, or changes sides if it has none.
  private async choose(node: number) {
    const other = this.graph!;
    if (node === other.root) return;
    const counterpart = node < other.size ? (other.counterpart?.[node] ?? -1) : -1;
    if (counterpart >= 0) { await this.app.select(counterpart, true); return; }
    await this.app.switchGraph(1 - this.app.current);
    await this.app.select(node, true);
  }
}

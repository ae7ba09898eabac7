// SPDX-License-Identifier: Apache-2.0
// The graph with its controls, as an element of a page. It has its own tree of elements (a shadow root), so that the styles of
// the page and those of the graph do not meet.
import { h } from "../dom";
import { count } from "../format";
import { editorChoice, sourceRoots } from "../source";
import { App, marks } from "./app";
import { Beside } from "./beside";
import { readGraphs } from "./graph";
import { startLayout } from "./layout";
import { prefixOf } from "./location";
import { modes } from "./paint";
import { download, pngOf, svgOf } from "./picture";
import style from "./style.css";
import { Viewport } from "./viewport";

export interface ExplorerOptions {
  area: string;     // the state is in the part of the address after "#" and this word; "": in all of it
  titled: boolean;  // the document has the title of the module
}

const keys: [string, string][] = [
  ["↑ ↓", "to an operand, to a user"], ["← →", "to a neighbor in the group"], ["Enter", "open or close"], ["Backspace, ]", "to the group around, into the group"],
  ["/", "search"], ["n p", "next and previous hit"], ["+ − 0", "zoom in, out, all"], ["f", "center the selection"], ["w a s d", "move the view"],
  ["k", "neighborhood of two hops"], ["Escape", "show all, search nothing"], ["?", "this list"],
];

function build(page: HTMLElement, app: App, options: ExplorerOptions) {
  const g = app.graph;
  if (options.titled) document.title = `${g.module} – hlo-view`;
  const canvas = h("canvas", { "aria-hidden": "true" });
  const minimap = h("canvas", { class: "minimap", "aria-hidden": "true" });
  const stage = h("div", { id: "stage", class: "stage", tabindex: 0, role: "application", "aria-roledescription": "graph", "aria-label": `Graph of ${g.module}: arrow keys move, Enter opens, ? lists keys` }, canvas, minimap,
    h("p", { class: "waiting" }, `Laying out ${count(g.size)} instructions …`));
  const status = h("p", { id: "status", class: "status quiet", role: "status" });
  const panel = h("div", { class: "panel", role: "region", "aria-label": "Details", tabindex: 0 });
  const crumbs = h("ol", { class: "crumbs" });
  const viewport = (page.replaceChildren(h("div", { class: "body" }, stage)), new Viewport(canvas, minimap, app.scene, app.painter));
  app.attach(viewport, panel, crumbs, status);

  const search = h("input", { id: "search", type: "search", placeholder: "name, opcode:dot, /regex/, bytes>1M …", "aria-label": "Search", "aria-describedby": "found" });
  const found = h("span", { id: "found", class: "quiet", role: "status" });
  const select = (id: string, options: [string, string][], change: (value: string) => void) => {
    const element = h("select", { id, onchange: () => change(element.value) }, ...options.map(([value, name]) => h("option", { value }, name)));
    return element;
  };
  const legend = h("div", { class: "legend", "aria-label": "Legend", role: "group" });
  const mode = select("mode", modes.filter((m) => m.available(g)).map((m) => [m.key, m.name]), (value) => { void app.setMode(value); });
  const mark = select("mark", marks.filter((m) => m[0] !== "changed" || g.compared).map((m) => [m[0], m[1]]), (value) => { app.setMark(value); follow(); });
  const elements = h("input", { type: "checkbox", id: "elements", onchange: () => { void app.setElements(elements.checked); } });
  const filterNote = h("span", { class: "filter" });
  const button = (text: string, action: () => void, title = text) => h("button", { type: "button", class: "plain", title, onclick: action }, text);

  function follow() {
    mode.value = app.painter.mode;
    mark.value = app.mark;
    elements.checked = app.elements;
    if ((page.getRootNode() as ShadowRoot).activeElement !== search) search.value = app.query;
    showFound("");
    const { rows, gradient } = app.painter.legend();
    legend.replaceChildren(
      ...rows.map(([name, fill]) => h("span", { class: "entry" }, h("i", { class: "chip", style: `background:${fill}` }), name.length > 70 ? `${name.slice(0, 68)}…` : name)),
      ...(gradient ? [h("span", { class: "entry" }, gradient.from, h("i", { class: "gradient" }), gradient.to)] : []));
    const { filter } = app;
    filterNote.replaceChildren(...(filter ? [
      filter.kind === "hops" ? `Only ${app.graph.names[filter.a]} and ${filter.b} hop${filter.b === 1 ? "" : "s"} around it ` : `Only paths from ${app.graph.names[filter.a]} to ${app.graph.names[filter.b]} `,
      button("Show all", () => { void app.setFilter(null); })] : []));
  }
  function showFound(error: string) {
    const active = app.query.trim() || app.mark;
    found.textContent = error || (!active ? "" : app.hits.length ? `${app.hit >= 0 ? `${count(app.hit + 1)} of ` : ""}${count(app.hits.length)}` : "nothing found");
    found.classList.toggle("bad", error !== "");
  }
  app.changed = follow;
  search.addEventListener("input", () => showFound(app.setQuery(search.value)));
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); void app.nextHit(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { search.value = ""; showFound(app.setQuery("")); stage.focus(); }
  });

  const help = h("dialog", { "aria-label": "Keys" }, h("h2", {}, "Keys"), h("dl", {}, ...keys.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    h("p", { class: "quiet" }, "Search: words that all must hold. opcode:dot, name:, shape:, scope:, attribute:, sharding:, source:, computation:, value:, with /regular expressions/; bytes>1M, flops, time (µs), result, live, users, operands, trips; -word excludes."),
    editorChoice(), h("form", { method: "dialog" }, h("button", { class: "plain" }, "Close")));
  const name = () => app.graph.module.replace(/[^\w.-]+/g, "_") || "graph";
  const title = h("h1", { class: "mono", title: g.file }, g.module);
  const top = h("div", { class: "bar" }, title,
    app.graphs.length > 1 ? select("which", app.graphs.map((graph, k): [string, string] => [String(k), !graph.compared ? graph.module : k ? "after" : "before"]), (value) => { void app.switchGraph(Number(value)); }) : null,
    h("div", { class: "tools" }, search, button("‹", () => { void app.nextHit(-1); }, "Previous hit"), button("›", () => { void app.nextHit(1); }, "Next hit"), found),
    h("label", {}, "Color by ", mode), h("label", {}, "Highlight ", mark),
    app.graphs.some((graph) => graph.elementCount) ? h("label", { title: "Give each get-tuple-element a box; without it is a part of the lines to what reads it" }, elements, " tuple elements") : null,
    h("div", { class: "tools" }, button("−", () => viewport.zoom(1 / 1.4), "Zoom out"), button("+", () => viewport.zoom(1.4), "Zoom in"), button("All", () => viewport.fit(app.graph.root), "Show the whole graph"), button("Close groups", () => { void app.closeAll(); }),
      button("SVG", () => download(`${name()}.svg`, new Blob([svgOf(app.scene, app.painter)], { type: "image/svg+xml" })), "Save what is shown as SVG"),
      button("PNG", () => { void pngOf(app.scene, app.painter).then((blob) => (blob ? download(`${name()}.png`, blob) : app.say("The picture is too large."))); }, "Save what is shown as PNG"),
      button("?", () => help.showModal(), "Keys and help")));
  const beside = app.graphs.length > 1 && g.compared ? new Beside(app) : null;
  if (beside) {
    const both = h("input", { type: "checkbox", id: "both", onchange: () => { beside.show(both.checked); requestAnimationFrame(() => { if (app.selected >= 0) viewport.center(app.selected); }); } });
    top.querySelector("#which")!.after(h("label", {}, both, " side by side"));
    app.moved = () => beside.follow();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => beside.recolor());
  }
  const which = top.querySelector<HTMLSelectElement>("#which");
  if (which) {
    which.setAttribute("aria-label", "Module");
    const previous = app.changed;
    app.changed = () => {
      previous();
      which.value = String(app.current);
      title.textContent = app.graph.module;
    };
  }
  page.replaceChildren(h("button", { type: "button", class: "skip", onclick: () => stage.focus() }, "To the graph"), top, h("nav", { "aria-label": "Groups around the selection" }, crumbs),
    h("div", { class: "body" }, stage, beside?.element ?? null, panel), h("div", { class: "foot" }, legend, filterNote, status), help);

  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions: Record<string, () => void> = {
      ArrowUp: () => app.step("operand"), ArrowDown: () => app.step("user"), ArrowLeft: () => app.step("left"), ArrowRight: () => app.step("right"),
      Enter: () => { if (app.selected >= 0) void app.toggle(app.selected); }, Backspace: () => app.step("out"), "[": () => app.step("out"), "]": () => app.step("in"),
      "+": () => viewport.zoom(1.4), "=": () => viewport.zoom(1.4), "-": () => viewport.zoom(1 / 1.4), 0: () => viewport.fit(app.graph.root), f: () => viewport.center(app.selected),
      w: () => viewport.pan(0, -120), s: () => viewport.pan(0, 120), a: () => viewport.pan(-120, 0), d: () => viewport.pan(120, 0),
      n: () => { void app.nextHit(1); }, p: () => { void app.nextHit(-1); }, "/": () => search.focus(), "?": () => help.showModal(),
      k: () => { if (app.selected >= 0 && app.selected < app.graph.size) app.neighborhood(app.selected, 2); },
      Escape: () => { if (app.filter) void app.setFilter(null); else { search.value = ""; showFound(app.setQuery("")); } },
    };
    const action = actions[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { app.painter.refresh(); viewport.repaint(); });
}

// Shows the graphs of the page in `host`, which has a size. Returns when they are drawn.
export async function explore(host: HTMLElement, options: ExplorerOptions): Promise<void> {
  const root = host.attachShadow({ mode: "open" });
  const page = h("div", { class: "explorer" }, h("p", { class: "waiting" }, "Reading the graph …"));
  root.append(h("style", {}, style), page);
  sourceRoots.add(root);
  try {
    const missing = [["DecompressionStream", "DecompressionStream" in window], ["Worker", "Worker" in window], ["CanvasRenderingContext2D.roundRect", "roundRect" in CanvasRenderingContext2D.prototype]].filter(([, there]) => !there);
    if (missing.length) throw new Error(`this browser is too old: it has no ${missing.map(([name]) => name).join(", ")}; Chrome 103, Firefox 113 and Safari 16.4 are new enough`);
    const layout = startLayout();
    const graphs = await readGraphs();
    const app = new App(graphs, graphs[0].compared ? graphs.length - 1 : 0, prefixOf(options.area));
    build(page, app, options);
    Object.assign(window, { hloView: app });  // for tests and the console
    await layout;
    app.changed();  // what is around the graph has its size before the graph is fitted into the rest
    await app.begin();
    page.querySelector(".waiting")!.remove();
    app.changed();
    host.dataset.ready = "yes";
    await app.layOutAhead();
  } catch (error: unknown) {
    page.replaceChildren(h("p", { class: "failed", role: "alert" }, `The graph cannot be shown: ${(error as Error).message}`));
    console.error(error);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Creates elements in one expression. Text is never parsed as markup.
type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | EventListener | undefined>;

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
  return element;
}

export interface Column<Row> {
  head: string;
  cell: (row: Row) => Child;
  // Sort key; columns without one are not sortable.
  key?: (row: Row) => number | string;
  text?: boolean;  // left-aligned
  wide?: boolean;
}

// A table that is sortable by its headers, searchable and paged.
export function table<Row>(label: string, columns: Column<Row>[], rows: Row[], options: { find?: (row: Row) => string; page?: number; sort?: number } = {}): HTMLElement {
  const page = options.page ?? 25;
  let sorted = options.sort ?? -1;
  let down = true;
  let shown = page;
  let wanted = "";
  const body = h("tbody");
  const status = h("span", { class: "quiet", role: "status" });
  const more = h("button", { type: "button", class: "plain", onclick: () => { shown += 4 * page; draw(); } }, "Show more");
  const heads = columns.map((column, index) => {
    const head = h("th", { scope: "col", class: column.text ? "text" : "" });
    if (!column.key) {
      head.append(column.head);
      return head;
    }
    head.append(h("button", { type: "button", onclick: () => {
      down = sorted === index ? !down : !column.text;
      sorted = index;
      draw();
    } }, column.head));
    return head;
  });

  function draw() {
    let list = wanted && options.find ? rows.filter((row) => options.find!(row).toLowerCase().includes(wanted)) : rows;
    const key = sorted >= 0 ? columns[sorted].key : undefined;
    if (key) {
      const sign = down ? -1 : 1;
      list = [...list].sort((a, b) => {
        const x = key(a), y = key(b);
        return x < y ? -sign : x > y ? sign : 0;
      });
    }
    heads.forEach((head, index) => {
      if (index === sorted) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    body.replaceChildren(...list.slice(0, shown).map((row) => h("tr", {}, ...columns.map((column) =>
      h("td", { class: (column.text ? "text" : "number") + (column.wide ? " wide" : "") }, column.cell(row))))));
    status.textContent = list.length > shown ? `${shown} of ${list.length.toLocaleString("en-US")} rows` : `${list.length.toLocaleString("en-US")} row${list.length === 1 ? "" : "s"}`;
    more.hidden = list.length <= shown;
  }

  const tools = h("div", { class: "tools" });
  if (options.find) {
    tools.append(h("input", { type: "search", placeholder: "Find …", "aria-label": `Find in: ${label}`, oninput: (event) => {
      wanted = (event.target as HTMLInputElement).value.toLowerCase();
      shown = page;
      draw();
    } }));
  }
  draw();
  const foot = rows.length > page || options.find ? h("div", { class: "foot" }, status, more) : null;
  return h("div", { class: "tablebox" }, options.find ? tools : null,
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
      h("table", {}, h("caption", { class: "hidden" }, label), h("thead", {}, h("tr", {}, ...heads)), body)),
    foot);
}

// Tabs over panels that are created when first shown.
export function tabs(label: string, panels: [string, () => HTMLElement][]): HTMLElement {
  const panel = h("div", { role: "tabpanel" });
  const made = new Map<number, HTMLElement>();
  const buttons = panels.map(([name], index) => h("button", { type: "button", role: "tab", onclick: () => show(index), onkeydown: (event) => {
    const key = (event as KeyboardEvent).key;
    const step = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const next = (index + step + panels.length) % panels.length;
    show(next);
    buttons[next].focus();
  } }, name));
  function show(index: number) {
    buttons.forEach((button, at) => {
      button.setAttribute("aria-selected", String(at === index));
      button.tabIndex = at === index ? 0 : -1;
    });
    if (!made.has(index)) made.set(index, panels[index][1]());
    panel.replaceChildren(made.get(index)!);
    panel.setAttribute("aria-label", panels[index][0]);
    panel.dispatchEvent(new CustomEvent("shown", { bubbles: true }));
  }
  show(0);
  return h("div", { class: "tabs" }, h("div", { role: "tablist", "aria-label": label }, ...buttons), panel);
}

// SPDX-License-Identifier: Apache-2.0
// Links from a source line to an editor. The user sets the editor and the base of relative paths once.
import { h } from "./dom";

interface Editor {
  name: string;
  link: (path: string, line: string) => string;
}
const editors: Record<string, Editor> = {
  vscode: { name: "VS Code", link: (path, line) => `vscode://file/${encodeURI(path.replace(/^\//, ""))}:${line}` },
  cursor: { name: "Cursor", link: (path, line) => `cursor://file/${encodeURI(path.replace(/^\//, ""))}:${line}` },
  idea: { name: "IntelliJ, PyCharm", link: (path, line) => `idea://open?file=${encodeURIComponent(path)}&line=${line}` },
  zed: { name: "Zed", link: (path, line) => `zed://file${encodeURI(path)}:${line}` },
  sublime: { name: "Sublime Text", link: (path, line) => `subl://open?url=file://${encodeURI(path)}&line=${line}` },
  textmate: { name: "TextMate", link: (path, line) => `txmt://open?url=file://${encodeURI(path)}&line=${line}` },
};

// A page opened from a file may have no storage.
function remembered(key: string): string {
  try { return localStorage.getItem(`hlokit.${key}`) ?? ""; } catch { return ""; }
}
function remember(key: string, value: string) {
  try { localStorage.setItem(`hlokit.${key}`, value); } catch { /* for this page only */ }
}

let editor = editors[remembered("editor")] ? remembered("editor") : "vscode";
let root = remembered("root");

// The trees of elements with links: the document, and shadow roots in it.
export const sourceRoots = new Set<ParentNode>([document]);

function href(source: string): string {
  const [, path, line] = /^(.*?):(\d+)$/.exec(source) ?? [undefined, source, "1"];
  const full = path!.startsWith("/") || !root ? path! : `${root.replace(/\/$/, "")}/${path}`;
  return editors[editor].link(full, line!);
}

export function sourceLink(source: string): HTMLElement | string {
  if (!source) return "";
  // Shows the end of a long path.
  const short = source.length > 44 ? `…${source.slice(-43)}` : source;
  return h("a", { class: "source", href: href(source), "data-source": source, title: source }, short);
}

export function editorChoice(): HTMLElement {
  const relink = () => { for (const root of sourceRoots) root.querySelectorAll<HTMLAnchorElement>("a.source").forEach((a) => { a.href = href(a.dataset.source!); }); };
  const select = h("select", { id: "editor", onchange: () => { editor = select.value; remember("editor", editor); relink(); } });
  for (const [key, e] of Object.entries(editors)) select.append(h("option", { value: key, selected: key === editor }, e.name));
  const input = h("input", { id: "root", type: "text", placeholder: "/home/me/project", value: root, onchange: () => { root = input.value; remember("root", root); relink(); } });
  return h("div", { class: "tools" }, h("label", { for: "editor" }, "Source lines open in"), select, h("label", { for: "root" }, "relative paths begin at"), input);
}

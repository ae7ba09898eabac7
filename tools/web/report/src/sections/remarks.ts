// SPDX-License-Identifier: Apache-2.0
// Remarks of the passes: what they decided, by which rule, and what would change it.
import { h, table, tabs } from "../../../common/dom";
import { count } from "../../../common/format";
import { sourceLink } from "../../../common/source";
import { hasGraph, inGraph } from "../graph";
import type { Remark, Report } from "../types";

interface Group {
  name: string;
  kind: string;
  advice: string;
  remarks: number;
}

function groups(remarks: Remark[], key: (remark: Remark) => string): Group[] {
  const all = new Map<string, Group>();
  for (const remark of remarks) {
    const name = key(remark);
    const group = all.get(name);
    if (group) group.remarks += 1;
    else all.set(name, { name, kind: remark.kind, advice: remark.advice ?? "", remarks: 1 });
  }
  return [...all.values()].sort((a, b) => b.remarks - a.remarks);
}

export function remarks(r: Report): HTMLElement | null {
  const list = r.remarks ?? [];
  if (!list.length) return null;
  const name = (remark: Remark) => (hasGraph ? h("a", { class: "mono", href: inGraph(remark.instruction), title: "in the graph" }, remark.instruction) : h("span", { class: "mono" }, remark.instruction));
  const each = (some: Remark[]) => () => table<Remark>("Remarks", [
    { head: "instruction", text: true, cell: name, key: (m) => m.instruction },
    { head: "rule", text: true, cell: (m) => h("span", {}, m.rule, h("span", { class: "under quiet" }, `${m.category}, ${m.kind}`)), key: (m) => `${m.category} ${m.rule}` },
    { head: "remark", text: true, wide: true, cell: (m) => h("span", {}, m.message, m.advice ? h("span", { class: "under quiet" }, `To change it: ${m.advice}`) : "") },
    { head: "scope and source", text: true, wide: true, cell: (m) => h("span", {}, h("span", { class: "two", title: m.op_name ?? "" }, m.op_name ?? ""), m.source ? h("span", { class: "under" }, sourceLink(m.source)) : ""), key: (m) => `${m.op_name ?? ""} ${m.source ?? ""}` },
  ], some, { find: (m) => `${m.message} ${m.rule} ${m.category} ${m.op_name ?? ""} ${m.source ?? ""}` });
  const missed = list.filter((m) => m.kind === "missed");
  const byRule = () => table<Group>("By rule", [
    { head: "rule", text: true, cell: (g) => g.name, key: (g) => g.name },
    { head: "kind", text: true, cell: (g) => g.kind, key: (g) => g.kind },
    { head: "remarks", cell: (g) => count(g.remarks), key: (g) => g.remarks },
    { head: "to change it", text: true, wide: true, cell: (g) => g.advice },
  ], groups(list, (m) => `${m.category}: ${m.rule}`), { find: (g) => g.name });
  return h("section", { id: "remarks", "data-nav": "Why" }, h("h2", {}, "Why"),
    h("p", { class: "lead" }, `${count(list.length)} remarks of the passes on what they did and what not${r.remarks_left_out ? `; ${count(r.remarks_left_out)} more are left out` : ""}. Names are those that the pass saw.`),
    h("div", { class: "card" }, tabs("Remarks by", [["Rule", byRule], ["Missed", each(missed)], ["Each", each(list)]])));
}

// SPDX-License-Identifier: Apache-2.0
// Renders the report that the page contains as JSON.
import { watch } from "./charts";
import { compareButton, comparison } from "./comparison";
import { h, table } from "../../common/dom";
import { digits } from "../../common/format";
import { closeGraph, graphSection, openGraph } from "./graph";
import { devices } from "./sections/devices";
import { memory } from "./sections/memory";
import { checks, uncertainty } from "./sections/graphs";
import { operations, roofline } from "./sections/operations";
import { breakdown, figures, header, recommendations } from "./sections/overview";
import { remarks } from "./sections/remarks";
import { scopes } from "./sections/scopes";
import { device, host } from "./sections/timeline";
import type { Report } from "./types";

function unmodeled(r: Report): HTMLElement {
  const rows = table("Parameters of the target", [
    { head: "parameter", text: true, cell: (f) => h("span", { class: "mono" }, f.parameter), key: (f) => f.parameter },
    { head: "value", cell: (f) => (f.value >= 1e5 ? f.value.toExponential(4) : digits(f.value)), key: (f) => f.value },
    { head: "description", text: true, wide: true, cell: (f) => f.description },
    { head: "source", text: true, wide: true, cell: (f) => f.source },
  ], r.target, { page: 80 });
  return h("section", { id: "unmodeled", "data-nav": "Target" }, h("h2", {}, "Limits of the estimate"),
    h("p", { class: "lead" }, "What the simulation does not model of this program, the uncertainty of its time, sums of parts, and the parameters of the target."),
    h("div", { class: "card" },
      ...(r.note ? [h("p", { style: "margin-top:0" }, `This program was ${r.note}.`)] : []),
      r.unmodeled.length
        ? h("ul", {}, ...r.unmodeled.map((m) => h("li", {}, m.what, m.count > 1 ? ` (${m.count} times)` : "")))
        : h("p", { style: "margin:0" }, "Each operation, loop and collective of the program is modeled."),
      uncertainty(r), checks(r),
      h("details", {}, h("summary", {}, `Parameters of ${r.device}`), rows)));
}

function navigation(sections: HTMLElement[], graph?: HTMLElement): HTMLElement {
  const links = sections.map((s) => h("a", { href: `#${s.id}` }, s.dataset.nav!));
  const visible = new Set<string>();
  const current = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) visible.add(`#${entry.target.id}`);
      else visible.delete(`#${entry.target.id}`);
    }
    const first = links.find((link) => visible.has(link.getAttribute("href")!));
    for (const link of links) {
      if (link === first) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-70px 0px -70% 0px" });
  for (const s of sections) current.observe(s);
  return h("nav", { "aria-label": "Sections" }, h("ul", {}, ...links.map((link) => h("li", {}, link)), graph ? h("li", {}, h("a", { href: `#${graph.id}` }, graph.dataset.nav!)) : null));
}

interface Comparison {
  format: string;
  before: Report;
  after: Report;
}

const page = () => document.getElementById("page")!;

function showReport(r: Report) {
  document.title = `${r.title} on ${r.device} – hlokit report`;
  const sections = [breakdown(r), recommendations(r), host(r), device(r), roofline(r), operations(r), scopes(r), memory(r), devices(r), remarks(r), unmodeled(r)].filter((section) => section !== null);
  const top = header(r);
  top.append(compareButton(r, (compared) => {
    showComparison(r, compared, h("button", { type: "button", class: "plain", onclick: () => showReport(r) }, "Back to the report"));
  }));
  const graph = graphSection() ?? undefined;
  page().replaceChildren(
    h("a", { class: "skip", href: "#time" }, "To the report"), top, navigation(sections, graph),
    h("main", {}, figures(r), ...sections, graph),
    h("footer", {}, `Made by ${r.tool}. report.json next to this page has the same data. Charts: Apache ECharts.`));
  openGraph();
}

function showComparison(after: Report, sections: HTMLElement[], back: HTMLElement | null) {
  document.title = `${after.title}: comparison – hlokit report`;
  closeGraph();
  page().replaceChildren(
    h("a", { class: "skip", href: "#both" }, "To the comparison"),
    h("header", { class: "top" }, h("h1", {}, `${after.title}: before and after`), back),
    navigation(sections), h("main", {}, ...sections), h("footer", {}, "Two reports of hlokit."));
  scrollTo(0, 0);
}

function main() {
  const r = JSON.parse(document.getElementById("data")!.textContent!) as Report | Comparison;
  if ("before" in r) showComparison(r.after, comparison(r.before, r.after), null);
  else showReport(r);
  watch();
  addEventListener("hashchange", openGraph);
  document.body.dataset.ready = String(Math.round(performance.now()));
}

main();

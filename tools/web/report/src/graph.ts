// SPDX-License-Identifier: Apache-2.0
// The graph of the program, as in hlo-view, in place of the sections: where the address says #graph. Its data are read when it
// is first shown.
import { h } from "../../common/dom";
import { explore } from "../../common/graph/explorer";
import { isOf, prefixOf } from "../../common/graph/location";

const area = "graph";
export const hasGraph = document.getElementById("graph-data") !== null;
let section: HTMLElement | null = null;
let shownAt = 0;  // where the report was left

// The address that shows an instruction in the graph; undefined: the page has none.
export const inGraph = (name: string) => (hasGraph ? `${prefixOf(area)}n=${encodeURIComponent(name)}` : undefined);

// Returns the section, null if the page has no graph.
export function graphSection(): HTMLElement | null {
  if (hasGraph) section ??= h("section", { id: area, "data-nav": "Graph", "aria-label": "Graph" }, h("div", { class: "host" }));
  return section;
}

export function closeGraph() { document.body.classList.remove("graph"); }

// Shows the graph if the address says so, or the report.
export function openGraph() {
  const open = section !== null && section.isConnected && isOf(location.hash, prefixOf(area));
  const was = document.body.classList.contains("graph");
  if (open && !was) shownAt = scrollY;
  document.body.classList.toggle("graph", open);
  const link = document.querySelector(`nav a[href="#${area}"]`);
  if (open) link?.setAttribute("aria-current", "true");
  else link?.removeAttribute("aria-current");
  if (open) scrollTo(0, 0);
  else if (was && location.hash.length > 1) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  else if (was) scrollTo(0, shownAt);
  const host = section?.querySelector<HTMLElement>(".host");
  if (open && host && !host.shadowRoot) void explore(host, { area, titled: false });
}

// SPDX-License-Identifier: Apache-2.0
// Pages of hlo-view and hlo-run in a webview: what connects the selection in the graph with the one in the text. Nothing
// here needs an editor.

export interface Selected { selected: string }  // the page's message: the name of an instruction
export interface Select { select: string }      // the extension's

// Runs in the page, which dispatches "hlo-select" and goes where its fragment says: to "n", a name.
const bridge = `
(() => {
  const host = acquireVsCodeApi();
  addEventListener("hlo-select", (event) => host.postMessage({ selected: String(event.detail) }));
  addEventListener("message", (event) => {
    const name = event.data && event.data.select;
    // Of a report, the graph is shown only while somebody looks at it.
    if (typeof name !== "string" || (AREA && !location.hash.startsWith("#" + AREA))) return;
    location.hash = (AREA ? "#" + AREA + "&" : "#") + "n=" + encodeURIComponent(name);
  });
})();`;

// Returns the page with the script. In the report the graph is a part, named in the fragment.
export function withBridge(html: string, kind: "graph" | "report"): string {
  const script = `<script>${bridge.replaceAll("AREA", kind === "report" ? '"graph"' : '""')}</script>`;
  const at = html.indexOf("</head>");
  return at < 0 ? script + html : html.slice(0, at) + script + html.slice(at);
}

const definition = /^\s*(?:ROOT\s+)?%?([A-Za-z_][\w.-]*)\s*=\s/;

// Returns the name of the instruction that the line defines.
export function instructionOf(line: string): string | undefined {
  return definition.exec(line)?.[1];
}

// Returns the line, from 0, that defines the instruction.
export function lineOf(text: string, name: string): number | undefined {
  const lines = text.split(/\r\n|\r|\n/);
  const found = lines.findIndex((line) => instructionOf(line) === name);
  return found < 0 ? undefined : found;
}

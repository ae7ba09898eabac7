// SPDX-License-Identifier: Apache-2.0
// The state of the view in the fragment of the address, so that a link opens the same view and the back button works.
export interface Filter { kind: "hops" | "paths"; a: number; b: number }  // b: how many hops, or the end of the paths
export interface State {
  graph: number;
  open: number[];  // ascending
  selected: number;
  mode: string;
  mark: string;
  query: string;
  filter: Filter | null;
  elements: boolean;  // do tuple elements have boxes?
  camera: [number, number, number] | null;  // the center and the scale
}

// What the fragments of the view begin with: those of a page that shows more than the graph name it.
export const prefixOf = (area: string) => `#${area}${area ? "&" : ""}`;
// Is the fragment that of a view, with or without a state?
export const isOf = (fragment: string, prefix: string) => prefix === "#" || `${fragment}&`.startsWith(prefix);

export function encode(s: State, prefix: string): string {
  const parts: string[] = [];
  const add = (key: string, value: string) => { if (value) parts.push(`${key}=${encodeURIComponent(value)}`); };
  if (s.graph) add("g", String(s.graph));
  // Differences of sorted numbers are short.
  const { open } = s;
  add("o", open.map((node, k) => (node - (k ? open[k - 1] : 0)).toString(36)).join(".") || "-");
  if (s.selected >= 0) add("s", String(s.selected));
  if (s.mode !== "family") add("c", s.mode);
  add("m", s.mark);
  add("q", s.query);
  if (s.filter) add("f", `${s.filter.kind}.${s.filter.a}.${s.filter.b}`);
  if (s.elements) add("e", "1");
  if (s.camera) add("v", s.camera.map((x, k) => (k === 2 ? x.toPrecision(4) : x.toFixed(0))).join("_"));
  return prefix + parts.join("&");
}

// Returns what the fragment says, null if that is nothing; nodes outside the graph are left out. A fragment with a name, "n",
// is a link to that instruction in whatever state the view is.
export function decode(fragment: string, prefix: string): Partial<State> & { name?: string } | null {
  if (!fragment.startsWith(prefix) || fragment.length === prefix.length) return null;
  const s: Partial<State> & { name?: string } = {};
  const whole = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : -1);
  for (const part of fragment.slice(prefix.length).split("&")) {
    const at = part.indexOf("=");
    let value: string;
    try { value = decodeURIComponent(part.slice(at + 1)); } catch { continue; }
    switch (part.slice(0, at)) {
      case "g": s.graph = Math.max(0, whole(value)); break;
      case "o": {
        let sum = 0;
        s.open = value === "-" ? [] : value.split(".").map((digits) => (sum += parseInt(digits, 36) || 0));
        break;
      }
      case "n": s.name = value; break;
      case "s": s.selected = whole(value); break;
      case "c": s.mode = value; break;
      case "m": s.mark = value; break;
      case "q": s.query = value; break;
      case "f": {
        const [kind, a, b] = value.split(".");
        if ((kind === "hops" || kind === "paths") && whole(a) >= 0 && whole(b) >= 0) s.filter = { kind, a: whole(a), b: whole(b) };
        break;
      }
      case "e": s.elements = value === "1"; break;
      case "v": {
        const numbers = value.split("_").map(Number);
        if (numbers.length === 3 && numbers.every(Number.isFinite) && numbers[2] > 0) s.camera = [numbers[0], numbers[1], numbers[2]];
        break;
      }
    }
  }
  return s;
}

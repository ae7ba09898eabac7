// SPDX-License-Identifier: Apache-2.0
// Colors of categories, host phases and resources: one color for each name, the same in every chart and table. The
// style sheet defines them for both color schemes; tests/report checks that they can be told apart.
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const phases: Record<string, string> = {
  "input pipeline": "input", "transfer to device": "transfer", "IR generation": "trace", "step marker": "marker", compile: "compile",
  "execute call": "execute", fetch: "fetch", program: "other", step: "step",
};
export const phaseColor = (phase: string) => color(phases[phase] ?? "other");

// Categories of operations with a color of their own.
const categories: Record<string, string> = {
  matmul: "matmul", convolution: "convolution", elementwise: "elementwise", reduction: "reduction", "data movement": "movement",
  "in-place update": "update", copy: "copy", sort: "sort", "custom-call": "custom", scalar: "scalar", "control flow": "control",
  "async wait": "wait", "host transfer": "host", "all-reduce": "all-reduce", "all-gather": "all-gather",
  "reduce-scatter": "reduce-scatter", "all-to-all": "all-to-all", "collective-permute": "permute", links: "all-gather",
  "start of kernels": "overhead", "not attributed": "unknown", "waiting for slower devices": "straggler",
};
// Categories that are named after other opcodes share these, by their names.
const further = ["x1", "x2", "x3", "x4", "x5"];
function furtherOf(name: string): string {
  let sum = 0;
  for (const c of name) sum = (sum * 31 + c.charCodeAt(0)) % 9973;
  return further[sum % further.length];
}

// Waiting for an operation has its color, striped where it is drawn.
const waiting = "waiting for ";
export const isWait = (category: string) => category.startsWith(waiting) && !categories[category];
export const variableOf = (category: string): string => {
  if (isWait(category)) return variableOf(category.slice(waiting.length));
  if (category.startsWith("host: ")) return phases[category.slice(6)] ?? "other";
  const name = category.replace(/-(start|done)$/, "");
  return categories[name] ?? furtherOf(name);
};
export const categoryColor = (category: string) => color(variableOf(category));

// Returns the background of a bar or chip in HTML.
export function fillOf(category: string): string {
  const fill = `var(--${variableOf(category)})`;
  return isWait(category) ? `repeating-linear-gradient(135deg, ${fill} 0 3px, color-mix(in srgb, ${fill} 45%, var(--card)) 3px 6px)` : fill;
}

// Scopes have no fixed set of names.
const hues = ["matmul", "elementwise", "reduction", "custom", "all-gather", "convolution", "update", "movement", "copy", "x1", "x2", "x3"];
const given = new Map<string, string>();
export function scopeColor(scope: string): string {
  if (!given.has(scope)) given.set(scope, hues[given.size % hues.length]);
  return color(given.get(scope)!);
}

// Returns black or white, whichever is easier to read on this color.
export function inkOn(hex: string): string {
  const channel = (at: number) => { const c = parseInt(hex.slice(at, at + 2), 16) / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const light = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
  return light > 0.179 ? "#10151d" : "#ffffff";
}

// SPDX-License-Identifier: Apache-2.0
// Human-readable numbers: three or four digits and a unit.
export function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  if (size >= 1) return value.toFixed(2);
  return size < 1e-3 ? value.toExponential(1) : value.toPrecision(2);
}

function scaled(value: number, units: [number, string][]): string {
  if (value === 0) return `0 ${units[units.length - 1][1] === "ns" ? "µs" : units[units.length - 1][1]}`;
  for (const [size, unit] of units) {
    // 999.96 is printed as 1 of the next unit.
    if (Math.abs(value) >= size * 0.9995) return `${digits(value / size)} ${unit}`;
  }
  const [size, unit] = units[units.length - 1];
  return `${digits(value / size)} ${unit}`;
}

export const time = (us: number) => scaled(us, [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"]]);
// Formats a position on a zoomed axis with enough digits to distinguish neighbors.
export function instant(us: number): string {
  const [size, unit] = Math.abs(us) >= 1e6 ? [1e6, "s"] : Math.abs(us) >= 1e3 ? [1e3, "ms"] : [1, "µs"];
  return `${Number((us / (size as number)).toPrecision(7))} ${unit}`;
}
// Parses "1.5 ms"; a number without a unit is in microseconds.
export function parseTime(text: string): number | undefined {
  const found = /^\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*(ns|us|µs|ms|s)?\s*$/i.exec(text.replaceAll(",", ""));
  if (!found) return undefined;
  const unit: Record<string, number> = { ns: 1e-3, us: 1, "µs": 1, ms: 1e3, s: 1e6 };
  return Number(found[1]) * unit[(found[2] ?? "us").toLowerCase()];
}
// Formats a time of an axis: ticks need no more digits than they have.
export function tick(us: number): string {
  const [size, unit] = Math.abs(us) >= 1e6 ? [1e6, "s"] : Math.abs(us) >= 1e3 ? [1e3, "ms"] : Math.abs(us) >= 1 || us === 0 ? [1, "µs"] : [1e-3, "ns"];
  return `${Number((us / (size as number)).toPrecision(9)).toLocaleString("en-US", { maximumFractionDigits: 6 })} ${unit}`;
}
export const bytes = (n: number) =>
  scaled(n, [[2 ** 50, "PiB"], [2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
export const rate = (n: number) => scaled(n, [[1e15, "PB/s"], [1e12, "TB/s"], [1e9, "GB/s"], [1e6, "MB/s"], [1, "B/s"]]);
export const flops = (n: number) =>
  scaled(n, [[1e18, "EFLOP"], [1e15, "PFLOP"], [1e12, "TFLOP"], [1e9, "GFLOP"], [1e6, "MFLOP"], [1, "FLOP"]]);
export function percent(part: number): string {
  if (part === 0) return "0 %";
  if (Math.abs(part) < 0.0001) return "< 0.01 %";
  if (part < 0.1) return `${(100 * part).toPrecision(2)} %`;
  return `${(100 * part).toFixed(part >= 0.9995 ? 0 : 1)} %`;
}
export const share = (part: number, whole: number) => (whole > 0 ? part / whole : 0);
export const count = (n: number) => Math.round(n).toLocaleString("en-US");

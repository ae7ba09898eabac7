// SPDX-License-Identifier: Apache-2.0
// The threads of a recorded program and of the runtime, with their spans nested.
import { escape, roundedEnd } from "../charts";
import { color, phaseColor } from "../../../common/colors";
import { h } from "../../../common/dom";
import { count, time } from "../../../common/format";
import { timeline, type Rows, type Span } from "../spans";
import type { Report, Thread } from "../types";

const maxDepth = 6;
const maxThreads = 16;

const titleOf = (t: Thread) => `${t.thread}${t.straggler ? " (slow)" : ""}`;

// Adds the rows of a thread: the first has its name.
function addThread(t: Thread, rows: Rows, depths: number) {
  const first = rows.names.length;
  const open: number[] = [];
  let deepest = 0;
  for (const [name, start, us, step, isUser, source, phase] of t.spans) {
    while (open.length && start >= open[open.length - 1] - 1e-6) open.pop();
    const depth = Math.min(open.length, depths - 1);
    open.push(start + us);
    deepest = Math.max(deepest, depth);
    rows.spans.push({
      at: first + depth, start, us, name, find: `${name} ${t.thread}${step >= 0 ? ` step ${step}` : ""}`, pale: /^Wait/.test(name),
      fill: isUser ? color("user") : t.device !== undefined && t.thread.startsWith("TPU") ? color("step") : phaseColor(phase),
      note: `${escape(name)}<br>${time(us)}${step >= 0 ? `, step ${step}` : ""}, at ${time(start)}${source ? `<br>${escape(source)}` : ""}`,
    } satisfies Span);
  }
  for (let d = 0; d <= deepest; ++d) rows.names.push(d === 0 ? titleOf(t) : "");
}

export function threads(r: Report): HTMLElement {
  const all = r.host.threads ?? [];
  // The window of the steady state, where a compilation at the start would leave no space for the steps.
  const steady = r.host.step_numbers?.[r.host.steady_from];
  const of = (list: Thread[], depths: number): Rows => {
    const rows: Rows = { names: [], spans: [], end: 1 };
    for (const t of list) addThread(t, rows, depths);
    const end = Math.max(1e-3, ...rows.spans.map((s) => s.start + s.us));
    const begins = list.flatMap((t) => t.spans.filter((s) => steady !== undefined && s[3] === steady).map((s) => s[1]));
    const begin = begins.length ? Math.min(...begins) : 0;
    return { ...rows, end: roundedEnd(end), shown: begin > 0 && end - begin < 0.25 * end ? [begin, end] : undefined };
  };
  const shown = all.slice(0, maxThreads);
  const chart = timeline("Threads of the program and the runtime", of(shown.slice(0, 4), maxDepth), [choice()]);
  function choice(): HTMLElement {
    const select = h("select", { id: "choice-thread", onchange: () => chart.set(select.value === "all" ? of(shown, 2) : of(select.value === "" ? shown.slice(0, 4) : [all[Number(select.value)]], maxDepth)) });
    select.append(h("option", { value: "" }, shown.length > 4 ? "the first 4" : "all"));
    if (shown.length > 4) select.append(h("option", { value: "all" }, shown.length < all.length ? `the first ${shown.length}` : "all"));
    all.forEach((t, k) => select.append(h("option", { value: String(k) }, titleOf(t))));
    return h("span", { class: "choice" }, h("label", { for: "choice-thread" }, "Thread"), " ", select);
  }
  const omitted = all.reduce((sum, t) => sum + t.omitted, 0);
  const slow = all.filter((t) => t.straggler).map((t) => t.thread);
  return h("div", {},
    h("p", { class: "quiet" }, "Each thread as it ran, with the simulated device: the file of --profile has the same spans.",
      omitted ? ` The first ${count(omitted)} spans are omitted.` : "", slow.length ? h("b", { class: "bad" }, ` Slow: ${slow.join(", ")}.`) : ""),
    chart.element);
}

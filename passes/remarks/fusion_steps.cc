// SPDX-License-Identifier: Apache-2.0
#include "passes/remarks/fusion_steps.h"

#include <array>
#include <string>
#include <string_view>

#include "ir/core/json_writer.h"
#include "ir/core/printable_text.h"
#include "ir/core/str_cat.h"
#include "passes/remarks/remark_text.h"

namespace hlokit {
namespace {

std::string_view RoleName(RemarkGraph::Role role) {
  constexpr std::string_view kNames[] = {"producer", "consumer", "member", "neighbor"};
  return kNames[static_cast<size_t>(role)];
}

template <typename Visit>
void ForEachStep(absl::Span<const Remark> remarks, Visit visit) {
  int64_t step = 0;
  for (const Remark& remark : remarks) {
    if (remark.graph != nullptr) visit(++step, remark);
  }
}

std::string DotQuoted(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + "\"";
}

// A page: the list of steps, and the graph of the chosen one, laid out in rows by depth. @DATA@ is the steps.
constexpr std::string_view kPage = R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Steps of fusion</title>
<style>
:root { color-scheme: light dark; --line: #8886; --passed: #1a7f37; --missed: #b35900; --analysis: #0969da; }
* { box-sizing: border-box; }
body { margin: 0; font: 14px system-ui, sans-serif; display: grid; grid-template: auto 1fr / minmax(20rem, 34%) 1fr; height: 100vh; }
header { grid-column: 1 / 3; padding: .5rem .8rem; border-bottom: 1px solid var(--line); display: flex; gap: .8rem; align-items: center; flex-wrap: wrap; }
h1 { font-size: 1rem; margin: 0; } label { white-space: nowrap; }
#steps { overflow: auto; margin: 0; padding: 0; list-style: none; border-right: 1px solid var(--line); }
#steps button { all: unset; display: block; width: 100%; box-sizing: border-box; padding: .35rem .8rem; border-bottom: 1px solid var(--line); cursor: pointer; }
#steps button:hover, #steps button[aria-current=true] { background: #8882; }
#steps button:focus-visible { outline: 2px solid var(--analysis); outline-offset: -2px; }
.kind { font-weight: 600; } .passed { color: var(--passed); } .missed { color: var(--missed); } .analysis { color: var(--analysis); }
#detail { overflow: auto; padding: .8rem; } #detail p { margin: .2rem 0 .6rem; max-width: 60rem; }
svg text { fill: currentColor; font: 12px ui-monospace, monospace; } svg rect { fill: #8881; stroke: currentColor; stroke-opacity: .4; }
svg .producer rect { stroke: var(--missed); stroke-opacity: 1; stroke-width: 2; } svg .consumer rect { stroke: var(--analysis); stroke-opacity: 1; stroke-width: 2; }
svg .member rect { fill: #0969da33; } svg path { fill: none; stroke: currentColor; stroke-opacity: .5; }
@media (max-width: 700px) { body { grid-template: auto 40vh 1fr / 1fr; } header { grid-column: 1; } #steps { border-right: 0; border-bottom: 1px solid var(--line); } }
</style></head><body>
<header><h1>Steps of fusion</h1><span id="count" role="status"></span>
<label>Find <input id="find" type="search" placeholder="name, rule, line"></label>
<label><input type="checkbox" id="passed" checked> passed</label><label><input type="checkbox" id="missed" checked> missed</label></header>
<ol id="steps" aria-label="Steps"></ol><main id="detail" tabindex="0" aria-live="polite"></main>
<script type="application/json" id="data">@DATA@</script>
<script>
const steps = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id), svgNs = 'http://www.w3.org/2000/svg';
let shown = [], current = -1;
function element(name, text, cls) { const e = document.createElement(name); if (text) e.textContent = text; if (cls) e.className = cls; return e; }
function draw(graph) {
  const n = graph.nodes.length, depth = new Array(n).fill(0);
  for (let round = 0; round < n; ++round) {
    let moved = false;
    for (const [a, b] of graph.edges) if (depth[b] < depth[a] + 1 && depth[a] + 1 < n) { depth[b] = depth[a] + 1; moved = true; }
    if (!moved) break;
  }
  const rows = []; depth.forEach((d, i) => (rows[d] ??= []).push(i));
  const place = [], w = 210, h = 42, gx = 16, gy = 34; let width = 0, y = 4;
  for (const row of rows.filter(Boolean)) { row.forEach((i, k) => place[i] = { x: 4 + k * (w + gx), y }); width = Math.max(width, row.length * (w + gx)); y += h + gy; }
  const svg = document.createElementNS(svgNs, 'svg');
  svg.setAttribute('width', width + 8); svg.setAttribute('height', y); svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', 'Producer, consumer, the members of its fusion, and their neighbors');
  const make = (parent, name, attrs) => { const e = document.createElementNS(svgNs, name); for (const k in attrs) e.setAttribute(k, attrs[k]); parent.append(e); return e; };
  for (const [a, b] of graph.edges) { const p = place[a], q = place[b]; make(svg, 'path', { d: `M${p.x + w / 2},${p.y + h} C${p.x + w / 2},${p.y + h + gy} ${q.x + w / 2},${q.y - gy} ${q.x + w / 2},${q.y}` }); }
  graph.nodes.forEach((node, i) => {
    const g = make(svg, 'g', { class: node.role, transform: `translate(${place[i].x},${place[i].y})` });
    make(g, 'title', {}).textContent = `${node.name}: ${node.text} (${node.role})`;
    make(g, 'rect', { width: w, height: h, rx: 6 });
    const cut = (t) => t.length > 28 ? t.slice(0, 27) + '…' : t;
    make(g, 'text', { x: 8, y: 17 }).textContent = cut(node.name); make(g, 'text', { x: 8, y: 34, 'fill-opacity': .7 }).textContent = cut(node.text);
  });
  return svg;
}
function show(k) {
  current = k; const s = steps[k], d = byId('detail'); d.replaceChildren();
  d.append(element('h2', `Step ${s.step}: ${s.rule}`), element('p', s.message));
  const more = [s.computation, s.source, s.op_name].filter(Boolean).join(' · '); if (more) d.append(element('p', more));
  if (s.advice) d.append(element('p', 'To change it: ' + s.advice));
  if (s.left_out) d.append(element('p', `${s.left_out} more neighbors`));
  d.append(draw(s));
  for (const b of byId('steps').querySelectorAll('button')) b.setAttribute('aria-current', b.dataset.k == k);
}
function list() {
  const text = byId('find').value.toLowerCase();
  shown = steps.map((s, k) => k).filter((k) => (steps[k].kind == 'passed' ? byId('passed') : byId('missed')).checked && JSON.stringify([steps[k].message, steps[k].rule, steps[k].source, steps[k].op_name]).toLowerCase().includes(text));
  byId('steps').replaceChildren(...shown.slice(0, 2000).map((k) => {
    const s = steps[k], li = element('li'), b = element('button'); b.dataset.k = k; b.tabIndex = 0; b.setAttribute('role', 'button');
    b.append(`${s.step}. ${s.instruction} → ${s.related || ''} `, element('span', s.kind, 'kind ' + s.kind), ` ${s.rule}`); b.onclick = () => show(k);
    b.onkeydown = (e) => { const to = e.key == 'ArrowDown' ? li.nextSibling : e.key == 'ArrowUp' ? li.previousSibling : null; if (to) { to.firstChild.focus(); e.preventDefault(); } if (e.key == 'Enter' || e.key == ' ') { show(k); e.preventDefault(); } };
    li.append(b); return li; }));
  byId('count').textContent = shown.length > 2000 ? `2000 of ${shown.length} steps; find to narrow them` : `${shown.length} of ${steps.length} steps`;
  if (shown.length && !shown.includes(current)) show(shown[0]); else if (current >= 0 && shown.length) show(current);
}
for (const id of ['find', 'passed', 'missed']) byId(id).oninput = list;
list();
</script></body></html>
)page";

void WriteStepJson(int64_t step, const Remark& remark, JsonWriter* json) {
  const RemarkRuleInfo& info = InfoOf(remark.rule);
  json->BeginObject().Member("step", step).Member("kind", ToString(info.kind)).Member("rule", info.id);
  json->Member("computation", remark.function).Member("instruction", remark.instruction);
  json->Member("related", remark.related).Member("source", remark.source).Member("op_name", remark.op_name);
  json->Member("message", remark.Message()).Member("advice", info.advice).Member("left_out", remark.graph->left_out);
  json->Key("nodes").BeginArray();
  for (const RemarkGraph::Node& node : remark.graph->nodes) {
    json->BeginObject().Member("name", node.name).Member("text", node.text).Member("role", RoleName(node.role));
    json->EndObject();
  }
  json->EndArray().Key("edges").BeginArray();
  for (const auto& [from, to] : remark.graph->edges) json->BeginArray().Value(from).Value(to).EndArray();
  json->EndArray().EndObject();
}

}  // namespace

void WriteFusionStepsText(absl::Span<const Remark> remarks, TextWriter* out) {
  ForEachStep(remarks, [&](int64_t step, const Remark& remark) {
    const RemarkRuleInfo& info = InfoOf(remark.rule);
    *out << "step " << step << ": " << Printable(remark.instruction);
    if (!remark.related.empty()) *out << " -> " << Printable(remark.related);
    *out << "  " << ToString(info.kind) << ", " << info.id << "\n    " << RemarkLine(remark) << '\n';
    for (const RemarkGraph::Role role : {RemarkGraph::Role::kMember, RemarkGraph::Role::kNeighbor}) {
      bool any = false;
      for (const RemarkGraph::Node& node : remark.graph->nodes) {
        if (node.role != role) continue;
        *out << (any ? ", " : StrCat("    ", RoleName(role), "s: ")) << Printable(node.name);
        any = true;
      }
      if (any) *out << '\n';
    }
    if (remark.graph->left_out > 0) *out << "    and " << remark.graph->left_out << " more neighbors\n";
  });
}

void WriteFusionStepsDot(absl::Span<const Remark> remarks, TextWriter* out) {
  constexpr std::string_view kColors[] = {"orange", "lightblue", "lightcyan", "white"};
  ForEachStep(remarks, [&](int64_t step, const Remark& remark) {
    *out << "digraph step_" << step << " {\n  label=" << DotQuoted(RemarkLine(remark)) << ";\n  labelloc=t;\n";
    *out << "  node [shape=box, style=filled];\n";
    for (size_t k = 0; k < remark.graph->nodes.size(); ++k) {
      const RemarkGraph::Node& node = remark.graph->nodes[k];
      *out << "  n" << static_cast<int64_t>(k) << " [label=" << DotQuoted(StrCat(node.name, " ", node.text))
           << ", fillcolor=" << kColors[static_cast<size_t>(node.role)] << "];\n";
    }
    for (const auto& [from, to] : remark.graph->edges) {
      *out << "  n" << int64_t{from} << " -> n" << int64_t{to} << ";\n";
    }
    *out << "}\n";
  });
}

void WriteFusionStepsPage(absl::Span<const Remark> remarks, TextWriter* out) {
  std::string data;
  {
    TextWriter text(&data);
    JsonWriter json(&text, JsonLayout::kCompact);
    json.BeginArray();
    ForEachStep(remarks, [&](int64_t step, const Remark& remark) { WriteStepJson(step, remark, &json); });
    json.EndArray();
  }
  constexpr std::string_view kMark = "@DATA@";
  const size_t mark = kPage.find(kMark);
  *out << kPage.substr(0, mark);
  for (char c : data) {  // a script element ends at its closing tag, even in a string
    if (c == '<') {
      *out << "\\u003c";
    } else {
      *out << c;
    }
  }
  *out << kPage.substr(mark + kMark.size());
}

}  // namespace hlokit

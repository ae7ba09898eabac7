// SPDX-License-Identifier: Apache-2.0
// Divides captured blocks of scripts into parts between statements that need values, and finds what each part reads.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "tracer/script/script_program.h"

namespace hlokit::lazy::script {
namespace {

// Returns true if the code fetches a value, marks a step or waits for other devices.
bool RunsGraphs(const ScriptProgram& program, const Instruction& i) {
  switch (i.code) {
    case Code::kPrint:
    case Code::kPrintItem:
    case Code::kMarkStep:
    case Code::kWait:
      return true;
    case Code::kUnary:
      return static_cast<Operator>(i.a) == Operator::kItem;
    case Code::kCall: {
      const CallSite& call = program.calls[i.a];
      return (call.kind == CallSite::Kind::kNative && call.native->host) ||
             (call.kind == CallSite::Kind::kFunction && program.functions[call.function].runs_graphs);
    }
    default:
      return false;
  }
}

bool Differentiates(const ScriptProgram& program, const Instruction& i) {
  if (i.code == Code::kBackward) return true;
  if (i.code != Code::kCall) return false;
  const CallSite& call = program.calls[i.a];
  return call.kind == CallSite::Kind::kFunction && program.functions[call.function].differentiates;
}

// Sets what functions do, themselves or through others.
void ClassifyFunctions(ScriptProgram* program) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Function& f : program->functions) {
      const bool runs = f.runs_graphs || std::any_of(f.code.begin(), f.code.end(),
                                                     [&](const Instruction& i) { return RunsGraphs(*program, i); });
      const bool differentiates =
          f.differentiates ||
          std::any_of(f.code.begin(), f.code.end(), [&](const Instruction& i) { return Differentiates(*program, i); });
      changed = changed || runs != f.runs_graphs || differentiates != f.differentiates;
      f.runs_graphs = runs;
      f.differentiates = differentiates;
    }
  }
}

uint32_t RegionAt(const Function& f, uint32_t place) {
  const auto after = std::upper_bound(f.region_starts.begin(), f.region_starts.end(), place,
                                      [](uint32_t at, const auto& start) { return at < start.first; });
  return after == f.region_starts.begin() ? 0 : (after - 1)->second;
}

bool Contains(const Function& f, uint32_t outer, uint32_t region) {
  while (region != outer && region != 0) region = f.regions[region].parent;
  return region == outer;
}

// Finds the variables that a part reads and writes.
void FindVariables(const ScriptProgram& program, const Function& f, Capture::Part* part) {
  struct Write {
    uint32_t variable;
    uint32_t region;
  };
  std::vector<Write> writes;
  const uint32_t whole = RegionAt(f, part->begin);
  const auto has = [](const std::vector<uint32_t>& list, uint32_t v) {
    return std::find(list.begin(), list.end(), v) != list.end();
  };
  for (uint32_t at = part->begin; at < part->end; ++at) {
    const Instruction& i = f.code[at];
    const uint32_t region = RegionAt(f, at);
    if (i.code == Code::kStore) {
      for (uint32_t variable : program.targets[i.a]) writes.push_back({variable, region});
    }
    if (i.code != Code::kLoad || has(part->reads, i.a)) continue;
    const bool written = std::any_of(writes.begin(), writes.end(), [&](const Write& w) {
      return w.variable == i.a && Contains(f, w.region, region);
    });
    if (!written) part->reads.push_back(i.a);
  }
  for (const Write& w : writes) {
    if (w.region == whole && !has(part->reads, w.variable) && !has(part->renewed, w.variable)) {
      part->renewed.push_back(w.variable);
    }
  }
}

}  // namespace

void PlanCaptures(ScriptProgram* program) {
  ClassifyFunctions(program);
  for (Capture& capture : program->captures) {
    const Function& f = program->functions[capture.function];
    std::vector<std::pair<uint32_t, uint32_t>> breaks;
    const auto any = [&](uint32_t begin, uint32_t end, bool (*test)(const ScriptProgram&, const Instruction&)) {
      return std::any_of(f.code.begin() + begin, f.code.begin() + end,
                         [&](const Instruction& i) { return test(*program, i); });
    };
    for (const auto& [begin, end] : capture.statements) {
      // Results of parts have no history: what is differentiated stays in one part. A function that does both is in it.
      if (capture.full_graph || any(begin, end, Differentiates) || any(end, capture.end, Differentiates)) continue;
      if (any(begin, end, RunsGraphs)) breaks.emplace_back(begin, end);
    }
    uint32_t begin = capture.begin;
    for (size_t k = 0; k <= breaks.size(); ++k) {
      const uint32_t stop = k < breaks.size() ? breaks[k].first : capture.end;
      if (begin < stop) {
        Capture::Part part{begin, stop, true, any(begin, stop, RunsGraphs), capture.name};
        if (!breaks.empty()) part.name = StrCat(capture.name, ".", k + 1);
        FindVariables(*program, f, &part);
        capture.parts.push_back(std::move(part));
      }
      if (k == breaks.size()) break;
      capture.parts.push_back({breaks[k].first, breaks[k].second, false, true, ""});
      begin = breaks[k].second;
    }
  }
}

}  // namespace hlokit::lazy::script

// SPDX-License-Identifier: Apache-2.0
// Divides captured blocks of scripts into parts between statements that need values, and finds what each part reads.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
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
  std::vector<std::vector<size_t>> callers(program->functions.size());
  std::vector<size_t> changed;
  for (size_t k = 0; k < program->functions.size(); ++k) {
    Function& f = program->functions[k];
    for (const Instruction& i : f.code) {
      f.runs_graphs = f.runs_graphs || RunsGraphs(*program, i);
      f.differentiates = f.differentiates || Differentiates(*program, i);
      if (i.code != Code::kCall || program->calls[i.a].kind != CallSite::Kind::kFunction) continue;
      std::vector<size_t>& of_callee = callers[program->calls[i.a].function];
      if (of_callee.empty() || of_callee.back() != k) of_callee.push_back(k);
    }
    if (f.runs_graphs || f.differentiates) changed.push_back(k);
  }
  while (!changed.empty()) {
    const size_t callee = changed.back();
    const Function& called = program->functions[callee];
    changed.pop_back();
    for (size_t caller : callers[callee]) {
      Function& f = program->functions[caller];
      const bool runs = f.runs_graphs || called.runs_graphs;
      const bool differentiates = f.differentiates || called.differentiates;
      if (runs == f.runs_graphs && differentiates == f.differentiates) continue;
      f.runs_graphs = runs;
      f.differentiates = differentiates;
      changed.push_back(caller);
    }
  }
}

// Returns true if code that is in no capture differentiates, itself or through functions.
bool DifferentiatesOutside(const ScriptProgram& program) {
  for (size_t k = 0; k < program.functions.size(); ++k) {
    std::vector<std::pair<uint32_t, uint32_t>> captures;  // in order of the text
    for (const Capture& capture : program.captures) {
      if (capture.function == k) captures.emplace_back(capture.begin, capture.end);
    }
    const std::vector<Instruction>& code = program.functions[k].code;
    size_t next = 0;
    for (uint32_t at = 0; at < code.size(); ++at) {
      if (next < captures.size() && at == captures[next].first) {
        at = std::max(at, captures[next++].second);
        if (at >= code.size()) break;
      }
      if (Differentiates(program, code[at])) return true;
    }
  }
  return false;
}

uint32_t RegionAt(const Function& f, uint32_t place) {
  const auto after = std::upper_bound(f.region_starts.begin(), f.region_starts.end(), place,
                                      [](uint32_t at, const auto& start) { return at < start.first; });
  return after == f.region_starts.begin() ? 0 : (after - 1)->second;
}

// Finds the variables that a part reads and writes.
void FindVariables(const ScriptProgram& program, const Function& f, Capture::Part* part) {
  absl::flat_hash_map<uint32_t, absl::flat_hash_set<uint32_t>> written;  // regions, by variable
  std::vector<uint32_t> renewed;                                         // in the part's own region
  absl::flat_hash_set<uint32_t> reads;
  const uint32_t whole = RegionAt(f, part->begin);
  for (uint32_t at = part->begin; at < part->end; ++at) {
    const Instruction& i = f.code[at];
    const uint32_t region = RegionAt(f, at);
    if (i.code == Code::kStore) {
      for (uint32_t variable : program.targets[i.a]) {
        if (written[variable].insert(region).second && region == whole) renewed.push_back(variable);
      }
    }
    if (i.code != Code::kLoad || reads.contains(i.a)) continue;
    // Written for sure: in this region, or in one around it.
    const auto regions = written.find(i.a);
    bool sure = false;
    for (uint32_t outer = region; regions != written.end() && !sure; outer = f.regions[outer].parent) {
      sure = regions->second.contains(outer);
      if (outer == 0) break;
    }
    if (!sure && reads.insert(i.a).second) part->reads.push_back(i.a);
  }
  for (uint32_t variable : renewed) {
    if (!reads.contains(variable)) part->renewed.push_back(variable);
  }
}

}  // namespace

void PlanCaptures(ScriptProgram* program) {
  ClassifyFunctions(program);
  program->differentiates_outside = !program->captures.empty() && DifferentiatesOutside(*program);
  for (Capture& capture : program->captures) {
    const Function& f = program->functions[capture.function];
    std::vector<std::pair<uint32_t, uint32_t>> breaks;
    const auto any = [&](uint32_t begin, uint32_t end, bool (*test)(const ScriptProgram&, const Instruction&)) {
      return std::any_of(f.code.begin() + begin, f.code.begin() + end,
                         [&](const Instruction& i) { return test(*program, i); });
    };
    uint32_t last = capture.begin;  // after what is differentiated
    for (uint32_t at = capture.begin; at < capture.end; ++at) {
      if (Differentiates(*program, f.code[at])) last = at + 1;
    }
    for (const auto& [begin, end] : capture.statements) {
      // What is differentiated stays in one part, with its values. A function that does both is in it.
      if (capture.full_graph || begin < last) continue;
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

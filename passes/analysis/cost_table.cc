// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/graph/source_line.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/cost_key.h"
#include "passes/analysis/cost_rules.h"
#include "passes/analysis/run_counts.h"
#include "passes/analysis/trip_count.h"

namespace hlokit {
namespace {

constexpr std::string_view kNoName = "(none)";
constexpr std::string_view kTop = "(top)";

// Returns the scope path of an op_name, without the operation at its end.
std::string_view ScopeOf(Instruction i) {
  const StringId name = i.metadata().op_name;
  if (!name.valid()) return kNoName;
  const std::string_view path = i.module().context().str(name);
  if (path.empty()) return kNoName;
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? kTop : path.substr(0, slash);
}

std::string LineOrNone(Instruction i) {
  std::string line = SourceLineOf(i);
  return line.empty() ? std::string(kNoName) : line;
}

}  // namespace

std::string KeyOf(Instruction i, CostKey key) {
  switch (key) {
    case CostKey::kInstruction:
      return std::string(i.name());
    case CostKey::kOpcode:
      return std::string(i.opcode_text());
    case CostKey::kComputation:
      return std::string(i.parent().name());
    case CostKey::kSourceLine:
      return LineOrNone(i);
    case CostKey::kScope:
      return std::string(ScopeOf(i));
  }
  return "";
}

Instruction ProducerOf(Instruction i, int64_t leaf) {
  if (i.opcode() != Opcode::kFusion) return i;
  Instruction root = i;
  i.ForEachCallee([&](Computation fused) { root = fused.root(); });
  if (root.opcode() == Opcode::kTuple) {
    // Elements of a fusion's tuple are arrays.
    if (leaf < 0 || leaf >= root.operand_count() || root.shape().leaf_count() != root.operand_count()) return i;
    root = root.operand(leaf);
  } else if (leaf != 0) {
    return i;
  }
  return ScopeOf(root) == kNoName && SourceLineOf(root).empty() ? i : root;
}

std::vector<RunCounts> RunsOf(const Module& module, bool trip_counts) {
  const CallGraph calls(module);
  std::vector<RunCounts> runs(module.computation_id_bound());
  runs[module.entry().id().value].times = 1;
  const absl::Span<const ComputationId> order = calls.PostOrder();
  for (size_t k = order.size(); k-- > 0;) {
    const RunCounts here = runs[order[k].value];
    if (here.times == 0) continue;
    for (const CallSite& site : calls.callsites(module.computation(order[k]))) {
      if (site.context == CallContext::kEmbedded) continue;  // counted with the caller
      const Instruction caller = module.instruction(site.caller);
      int64_t times = here.times;
      if (trip_counts && caller.opcode() == Opcode::kWhile) {
        const int64_t trip_count = TripCount(caller).value_or(1);
        const bool is_test = caller.computation_attr(Attr::kCondition).id() == site.callee;
        times = SaturatingMultiply(times, is_test ? SaturatingAdd(trip_count, 1) : trip_count);
      }
      RunCounts& callee = runs[site.callee.value];
      callee.times = SaturatingAdd(callee.times, times);
      callee.fused |= here.fused || site.context == CallContext::kFused;
    }
  }
  return runs;
}

namespace {

int64_t NumberIn(const CostRow& row, CostColumn column) {
  switch (column) {
    case CostColumn::kBytes:
      return row.cost.bytes();
    case CostColumn::kBytesRead:
      return row.cost.bytes_read;
    case CostColumn::kBytesWritten:
      return row.cost.bytes_written;
    case CostColumn::kFlops:
      return row.cost.flops;
    case CostColumn::kTranscendentals:
      return row.cost.transcendentals;
    case CostColumn::kCount:
      return row.count;
    case CostColumn::kKey:
    case CostColumn::kOpcode:
    case CostColumn::kComputation:
      return 0;
  }
  return 0;
}

// Returns the text by which rows are sorted first; "" for columns of numbers.
std::string_view TextIn(const CostRow& row, CostColumn column) {
  if (!row.instruction.valid()) return "";
  if (column == CostColumn::kOpcode) return row.instruction.opcode_text();
  return column == CostColumn::kComputation ? row.instruction.parent().name() : "";
}

}  // namespace

std::vector<CostRow> CostTable(const Module& module, const CostAnalysis& costs, const CostTableOptions& options) {
  const std::vector<RunCounts> runs = RunsOf(module, options.trip_counts);
  absl::flat_hash_map<std::string, size_t> index;
  std::vector<CostRow> rows;
  for (Computation c : module.computations()) {
    const RunCounts& run = runs[c.id().value];
    if (run.times == 0) continue;
    for (Instruction i : c.instructions()) {
      Cost own = costs.Of(i);
      const CostRule rule = CostRuleOf(i.opcode());
      if (rule == CostRule::kCall || rule == CostRule::kWhile || rule == CostRule::kConditional) own = Cost();
      if (rule == CostRule::kFusion) own.flops = own.transcendentals = 0;
      if (run.fused) own.bytes_read = own.bytes_written = 0;
      size_t at = rows.size();
      if (options.key == CostKey::kInstruction) {  // names are unique
        rows.push_back({KeyOf(i, options.key), i, 0, Cost()});
      } else {
        const auto [known, inserted] = index.try_emplace(KeyOf(i, options.key), at);
        if (inserted) rows.push_back({known->first, Instruction(), 0, Cost()});
        at = known->second;
      }
      ++rows[at].count;
      rows[at].cost.Add(own, run.times);
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [&options](const CostRow& a, const CostRow& b) {
    const std::string_view s = TextIn(a, options.sort), t = TextIn(b, options.sort);
    if (s != t) return s < t;
    for (const CostColumn column : {options.sort, CostColumn::kBytes, CostColumn::kFlops}) {
      if (column == CostColumn::kKey) break;
      const int64_t x = NumberIn(a, column), y = NumberIn(b, column);
      if (x != y) return x > y;
    }
    return a.key < b.key;
  });
  return rows;
}

}  // namespace hlokit

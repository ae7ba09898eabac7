// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <map>

#include "passes/analysis/cost.h"
#include "passes/analysis/cost_key.h"
#include "passes/analysis/memory.h"
#include "passes/diff/diff_text.h"

namespace hlokit {
namespace {

using Rows = std::map<std::string, DiffSummary::Row>;

void CountInstructions(const ModuleDiff& diff, CostKey key, Rows* rows) {
  for (const Instruction i : diff.added) ++(*rows)[KeyOf(i, key)].added;
  for (const Instruction i : diff.removed) ++(*rows)[KeyOf(i, key)].removed;
  for (const ChangedInstruction& c : diff.changed) ++(*rows)[KeyOf(c.b, key)].changed;
}

std::vector<DiffSummary::Row> TableBy(CostKey key, const Module& a, const CostAnalysis& costs_a, const Module& b,
                                      const CostAnalysis& costs_b, const ModuleDiff& diff) {
  Rows rows;
  CountInstructions(diff, key, &rows);
  const CostTableOptions options{.key = key, .trip_counts = true};
  for (const CostRow& row : CostTable(a, costs_a, options)) {
    DiffSummary::Row& at = rows[row.key];
    at.flops_before += row.cost.flops;
    at.bytes_before += row.cost.bytes();
  }
  for (const CostRow& row : CostTable(b, costs_b, options)) {
    DiffSummary::Row& at = rows[row.key];
    at.flops_after += row.cost.flops;
    at.bytes_after += row.cost.bytes();
  }
  std::vector<DiffSummary::Row> changed;
  for (auto& [name, row] : rows) {
    if (row.added + row.removed + row.changed == 0 && row.flops_before == row.flops_after &&
        row.bytes_before == row.bytes_after) {
      continue;
    }
    changed.push_back(row);
    changed.back().key = name;
  }
  const auto weight = [](const DiffSummary::Row& row) {
    return std::abs(static_cast<double>(row.bytes_after) - static_cast<double>(row.bytes_before));
  };
  std::stable_sort(changed.begin(), changed.end(), [&](const DiffSummary::Row& x, const DiffSummary::Row& y) {
    if (weight(x) != weight(y)) return weight(x) > weight(y);
    return x.added + x.removed + x.changed > y.added + y.removed + y.changed;
  });
  return changed;
}

double PeakOf(const Module& module) {
  const absl::StatusOr<MemoryAnalysis> memory = MemoryAnalysis::Create(module);
  return memory.ok() ? static_cast<double>(memory->OfModule().peak_bytes) : 0;
}

}  // namespace

DiffSummary Summarize(const Module& a, const Module& b, const ModuleDiff& diff) {
  DiffSummary summary;
  const CostAnalysis costs_a(a), costs_b(b);
  const Cost total_a = costs_a.OfModule(), total_b = costs_b.OfModule();
  const auto add = [&](std::string name, double before, double after, bool is_bytes) {
    summary.totals.push_back({std::move(name), before, after, is_bytes});
  };
  add("instructions", static_cast<double>(a.instruction_count()), static_cast<double>(b.instruction_count()), false);
  add("flops", static_cast<double>(total_a.flops), static_cast<double>(total_b.flops), false);
  add("bytes read and written", static_cast<double>(total_a.bytes()), static_cast<double>(total_b.bytes()), true);
  add("peak of live buffers", PeakOf(a), PeakOf(b), true);
  summary.by_scope = TableBy(CostKey::kScope, a, costs_a, b, costs_b, diff);
  summary.by_opcode = TableBy(CostKey::kOpcode, a, costs_a, b, costs_b, diff);
  summary.causes = CausesOf(diff);
  return summary;
}

}  // namespace hlokit

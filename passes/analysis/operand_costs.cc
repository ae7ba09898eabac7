// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/operand_costs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ir/graph/potential_callers.h"
#include "ir/graph/traversal.h"
#include "passes/analysis/cost_rules.h"

namespace hlokit {
namespace {

using Totals = std::vector<OperandCost>;

OperandCost& At(Totals* totals, size_t k) {
  if (totals->size() <= k) totals->resize(k + 1);
  return (*totals)[k];
}

void AddAll(const Totals& from, Totals* to) {
  for (size_t k = 0; k < from.size(); ++k) {
    OperandCost& sum = At(to, k);
    sum.bytes += from[k].bytes;
    sum.utilization += from[k].utilization;
  }
}

// Returns the bytes that an instruction without callees reads of its operand `k`.
int64_t BytesRead(const CostAnalysis& costs, Instruction i, int64_t k) {
  const CostRule rule = CostRuleOf(i.opcode());
  if (rule == CostRule::kFusion) return costs.ParameterBytesRead(i.computation_attr(Attr::kCalls), k);
  if (rule == CostRule::kSlice || rule == CostRule::kDynamicSlice || rule == CostRule::kGather) {
    // The part that it takes; of indices the first operand, as XLA counts.
    if (k == 0) return BufferBytes(i.shape());
    return k == 1 ? BufferBytes(i.operand(1).shape()) : 0;
  }
  if (rule == CostRule::kDynamicUpdateSlice && k == 0) return 0;
  return BufferBytes(i.operand(k).shape());
}

class Counter {
 public:
  Counter(const CostAnalysis& costs, const Module& module) : costs_(costs), totals_(module.computation_id_bound()) {}

  // Requires: the callees have been counted.
  void Count(Computation computation) {
    Totals& totals = totals_[computation.id().value];
    for (const Instruction i : computation.instructions()) {
      const CostRule rule = CostRuleOf(i.opcode());
      if (rule == CostRule::kCall || rule == CostRule::kWhile || rule == CostRule::kConditional) {
        AddCallees(i, rule == CostRule::kConditional, &totals);
      } else if (costs_.Of(i).bytes_read > 0) {
        for (int64_t k = 0; k < i.operand_count(); ++k) Add(i, k, &totals);
      }
    }
  }
  const Totals& Of(Computation computation) const { return totals_[computation.id().value]; }

 private:
  void Add(Instruction i, int64_t k, Totals* totals) {
    const int64_t bytes = BytesRead(costs_, i, k), whole = BufferBytes(i.operand(k).shape());
    OperandCost& sum = At(totals, static_cast<size_t>(k));
    sum.bytes += static_cast<double>(bytes);
    if (whole > 0) sum.utilization += static_cast<double>(bytes) / static_cast<double>(whole);
  }

  void AddCallees(Instruction i, bool one_of_them, Totals* totals) {
    Totals largest;
    i.ForEachCallee([&](Computation callee) {
      const Totals& of_callee = Of(callee);
      if (!one_of_them) return AddAll(of_callee, totals);
      for (size_t k = 0; k < of_callee.size(); ++k) {
        OperandCost& maximum = At(&largest, k);
        maximum.bytes = std::max(maximum.bytes, of_callee[k].bytes);
        maximum.utilization = std::max(maximum.utilization, of_callee[k].utilization);
      }
    });
    AddAll(largest, totals);
  }

  const CostAnalysis& costs_;
  std::vector<Totals> totals_;  // by ComputationId
};

}  // namespace

std::vector<OperandCost> OperandCosts(const CostAnalysis& costs, const Module& module) {
  const PotentialCallers callers(module);
  Counter counter(costs, module);
  for (const ComputationId id : ComputationPostOrder(module, callers)) counter.Count(module.computation(id));
  return counter.Of(module.entry());
}

}  // namespace hlokit

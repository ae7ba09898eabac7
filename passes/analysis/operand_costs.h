// SPDX-License-Identifier: Apache-2.0
// What the instructions of a computation read of their operands, by the number of the operand: the sums that XLA calls
// `bytes accessed0{}` and `utilization0{}`.
#ifndef HLOKIT_PASSES_ANALYSIS_OPERAND_COSTS_H_
#define HLOKIT_PASSES_ANALYSIS_OPERAND_COSTS_H_

#include <vector>

#include "ir/graph/module.h"
#include "passes/analysis/cost.h"

namespace hlokit {

struct OperandCost {
  double bytes = 0;        // read
  double utilization = 0;  // parts of the operands that are read: 1 for each that is read whole
};

// Returns the costs of the operands 0, 1, ..., with those of computations that are called, loops for one iteration. Of
// the branches of a conditional counts, for each number, the one that reads most. Linear in the module.
std::vector<OperandCost> OperandCosts(const CostAnalysis& costs, const Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_OPERAND_COSTS_H_

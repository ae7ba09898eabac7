// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/cost_rules.h"

#include <cstddef>

#include "ir/ops/opcode_table.h"

namespace hlokit {
namespace {

constexpr OpcodeRow<CostRule> kRows[] = {
#define OPCODE_COST(name, rule) {Opcode::k##name, CostRule::k##rule},
#include "passes/analysis/opcode_costs.def"
};
constexpr auto kRules = MakeOpcodeTable<CostRule>(
    kRows, {.elementwise = CostRule::kArithmetic, .other = std::nullopt, .unknown = CostRule::kCustomCall});

}  // namespace

CostRule CostRuleOf(Opcode opcode) { return kRules[static_cast<size_t>(opcode)]; }

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/cost_rules.h"

#include <cstddef>

namespace hlokit {
namespace {

constexpr CostRule kRules[] = {
#define OPCODE(name, text, min, max, rule, traits, elements, cost, ...) CostRule::k##cost,
#include "ir/ops/opcodes.def"
    CostRule::kCustomCall,  // an opcode that is not known
};

}  // namespace

CostRule CostRuleOf(Opcode opcode) { return kRules[static_cast<size_t>(opcode)]; }

}  // namespace hlokit

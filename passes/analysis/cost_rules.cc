#include "passes/analysis/cost_rules.h"

#include <cstddef>
#include <iterator>

namespace hlokit {
namespace {

struct Row {
  Opcode opcode;
  CostRule rule;
};
constexpr Row kRows[] = {
#define COST(opcode, rule) {Opcode::k##opcode, CostRule::rule},
#include "passes/analysis/cost_rules.def"
};

constexpr bool RowsAreInOrder() {
  if (std::size(kRows) != kOpcodeCount) return false;
  for (size_t i = 0; i < kOpcodeCount; ++i) {
    if (kRows[i].opcode != static_cast<Opcode>(i)) return false;
  }
  return true;
}
static_assert(RowsAreInOrder(), "cost_rules.def has a row for each opcode, in the order of opcodes.def");

}  // namespace

CostRule CostRuleOf(Opcode opcode) {
  return opcode == Opcode::kUnknown ? CostRule::kCustomCall : kRows[static_cast<size_t>(opcode)].rule;
}

}  // namespace hlokit

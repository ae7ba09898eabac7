// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/reducer.h"

#include "ir/ops/opcode_table.h"

namespace hlokit {

Instruction CombinationOf(Computation computation) {
  if (!computation.valid() || computation.parameter_count() != 2) return {};
  const Instruction root = computation.root(), a = computation.parameter(0), b = computation.parameter(1);
  if (root.operand_count() != 2) return {};
  const bool in_order = root.operand(0) == a && root.operand(1) == b;
  const bool reversed = root.operand(0) == b && root.operand(1) == a;
  return in_order || reversed ? root : Instruction();
}

IdentityElement IdentityElementOf(Opcode opcode) {
  static constexpr OpcodeRow<IdentityElement> kRows[] = {
      {Opcode::kAdd, IdentityElement::kNegativeZero}, {Opcode::kMultiply, IdentityElement::kOne},
      {Opcode::kMaximum, IdentityElement::kLowest},   {Opcode::kMinimum, IdentityElement::kHighest},
      {Opcode::kAnd, IdentityElement::kAllOnes},      {Opcode::kOr, IdentityElement::kZero},
      {Opcode::kXor, IdentityElement::kZero},
  };
  static constexpr auto kTable = MakeOpcodeTable<IdentityElement>(
      kRows,
      {.elementwise = IdentityElement::kNone, .other = IdentityElement::kNone, .unknown = IdentityElement::kNone});
  return kTable[static_cast<size_t>(opcode)];
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/loop_state.h"

#include "passes/analysis/loop.h"
#include "passes/schedule/vector_memory.h"
#include "passes/target/aliases.h"

namespace hlokit {
namespace {

constexpr int kMaxAliasDepth = 16;  // of one array

Instruction FirstName(Instruction value) {
  for (int n = 0; n < kMaxAliasDepth && IsArrayAlias(value); ++n) value = value.operand(0);
  return value;
}

// Returns true if `value` is a chain of updates of element `index`.
bool IsUpdateOf(Instruction value, Computation body, int64_t index) {
  for (int n = 0; n < kMaxAliasDepth; ++n) {
    Instruction before;
    for (int64_t k = 0; k < value.operand_count(); ++k) {
      if (IsUpdatedInPlaceBy(value.operand(k), value, k)) before = FirstName(value.operand(k));
    }
    if (!before.valid()) return false;
    if (IsStateElement(before, body, index)) return true;
    value = before;
  }
  return false;
}

}  // namespace

std::vector<LoopVariantElement> LoopVariantElements(Computation body) {
  std::vector<LoopVariantElement> changing;
  if (body.parameter_count() != 1 || body.root().opcode() != Opcode::kTuple) return changing;
  for (int64_t k = 0; k < body.root().operand_count(); ++k) {
    const Instruction value = FirstName(body.root().operand(k));
    if (!value.shape().IsArray() || IsStateElement(value, body, k)) continue;
    changing.push_back({k, value, IsUpdateOf(value, body, k)});
  }
  return changing;
}

int64_t OperandWrittenOver(Instruction value, Computation body) {
  const bool by_element =
      HasTrait(value.opcode(), kElementwise) ||
      (value.opcode() == Opcode::kFusion && value.enum_attr(Attr::kFusionKind, FusionKind::kLoop) == FusionKind::kLoop);
  if (!by_element || !value.shape().IsArray()) return -1;
  for (int64_t k = 0; k < value.operand_count(); ++k) {
    const Instruction operand = value.operand(k);
    if (!IsStateElement(operand, body) || operand.shape().WithoutLayout() != value.shape().WithoutLayout()) continue;
    bool only = true;
    for (const auto use : operand.uses()) only = only && use.user == value;
    for (const auto use : body.parameter(0).uses()) {
      only = only && (use.user == operand || !IsStateElement(use.user, body, operand.int_attr(Attr::kIndex)));
    }
    if (only) return k;
  }
  return -1;
}

std::vector<int64_t> InvariantElements(Computation body) {
  std::vector<int64_t> invariant;
  if (body.parameter_count() != 1 || body.root().opcode() != Opcode::kTuple) return invariant;
  for (int64_t k = 0; k < body.root().operand_count(); ++k) {
    if (IsStateElement(tpu::ValueOf(body.root().operand(k)), body, k)) invariant.push_back(k);
  }
  return invariant;
}

}  // namespace hlokit

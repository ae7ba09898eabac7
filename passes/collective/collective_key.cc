// SPDX-License-Identifier: Apache-2.0
#include "passes/collective/collective_key.h"

#include "ir/core/str_cat.h"
#include "passes/rewrite/reducer.h"

namespace hlokit {

std::optional<Opcode> ReducerOpcode(Computation reducer) {
  const Instruction root = CombinationOf(reducer);
  if (!root.valid() || reducer.instruction_count() != 3 || !HasTrait(root.opcode(), kCommutative)) return std::nullopt;
  return root.opcode();
}

std::optional<std::string> CollectiveKey(Instruction i) {
  if (!HasTrait(i.opcode(), kCollective) || i.has_control_edges()) {
    return std::nullopt;
  }
  if (i.bool_attr(Attr::kConstrainLayout) || i.has(Attr::kSharding) || i.operand_count() == 0) return std::nullopt;
  std::string key = StrCat(static_cast<int>(i.opcode()), i.has(Attr::kChannelId) ? " channel" : "");
  for (const AttrValue& a : i.attrs()) {
    if (InfoOf(a.attr).category != AttrCategory::kSemantic || a.attr == Attr::kChannelId) continue;
    StrAppend(&key, " ", static_cast<int>(a.attr), "=");
    if (a.attr != Attr::kToApply) {
      StrAppend(&key, a.payload);
      continue;
    }
    const std::optional<Opcode> reducer = ReducerOpcode(i.computation_attr(Attr::kToApply));
    if (!reducer) return std::nullopt;
    const Instruction operand = i.operand(0);
    for (Instruction other : i.operands()) {
      if (other.shape().element_type() != operand.shape().element_type()) return std::nullopt;
    }
    StrAppend(&key, static_cast<int>(*reducer), " of ", static_cast<int>(operand.shape().element_type()));
  }
  return key;
}

}  // namespace hlokit

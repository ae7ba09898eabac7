// SPDX-License-Identifier: Apache-2.0
#include "passes/target/aliases.h"

#include "ir/graph/instruction_queries.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/annotation_custom_calls.h"
#include "passes/target/minor_to_major.h"
#include "passes/target/op_class.h"

namespace hlokit::tpu {
namespace {

bool IsOneElement(Shape shape) { return shape.IsArray() && shape.element_count() == 1; }

Instruction BelowAliases(Instruction i) {
  while (IsAlias(i)) i = i.operand(0);
  return i;
}

}  // namespace

bool IsAlias(Instruction i) {
  if (i.operand_count() == 0) return false;
  if (OpcodeSet{Opcode::kReshape, Opcode::kTranspose}.Contains(i.opcode())) {
    return IsLayoutBitcast(i) || IsOneElement(i.shape());
  }
  return ClassOf(i.opcode()) == OpClass::kAlias || IsAnnotationCustomCall(i);
}

Instruction ValueOf(Instruction i) {
  while (true) {
    i = BelowAliases(i);
    if (i.opcode() != Opcode::kGetTupleElement) return i;
    const Instruction tuple = BelowAliases(i.operand(0));
    if (tuple.opcode() != Opcode::kTuple || i.int_attr(Attr::kIndex) >= tuple.operand_count()) return i;
    i = tuple.operand(i.int_attr(Attr::kIndex));
  }
}

bool IsConcatBitcast(Instruction i) { return IsCustomCall(i, "ConcatBitcast"); }

bool GeneratesCode(Instruction i) {
  const OpClass op_class = ClassOf(i.opcode());
  return op_class != OpClass::kNoWork && op_class != OpClass::kTuple && op_class != OpClass::kGetTupleElement &&
         !IsAlias(i) && !IsConcatBitcast(i);
}

Instruction AsyncWrappedInstruction(Instruction i) {
  if (i.opcode() != Opcode::kAsyncStart) return i;
  const Computation callee = i.computation_attr(Attr::kCalls);
  return callee.valid() && HasTrait(callee.root().opcode(), kCollective) ? callee.root() : i;
}

}  // namespace hlokit::tpu

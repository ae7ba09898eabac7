// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/vector_memory.h"

#include "absl/algorithm/container.h"
#include "ir/builder/builder.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/annotation_custom_calls.h"
#include "passes/analysis/dataflow_analysis.h"
#include "passes/target/aliases.h"
#include "passes/target/minor_to_major.h"

namespace hlokit {
bool IsKernel(Instruction i) {
  const Opcode opcode = i.opcode();
  if (opcode == Opcode::kFusion) return true;
  return !HasTrait(opcode, kControlFlow) && !HasTrait(opcode, kCollective) && !HasTrait(opcode, kSideEffect) &&
         !HasTrait(opcode, kAsyncChain) && !HasTrait(opcode, kForwards) && !HasTrait(opcode, kLeaf) &&
         !OpcodeSet{Opcode::kCustomCall, Opcode::kUnknown}.Contains(opcode);
}

std::vector<int64_t> InPlaceOperands(Instruction i) {
  const Opcode opcode = i.opcode();
  if (opcode == Opcode::kDynamicUpdateSlice) return {0};
  std::vector<int64_t> updated;
  if (opcode == Opcode::kScatter) {
    for (int64_t k = 0; k < i.operand_count() / 2; ++k) updated.push_back(k);
  }
  if (opcode != Opcode::kFusion) return updated;
  // Consider only results that are updates themselves, not those that the fusion computes from an update.
  const auto below_names = [](Instruction value) {
    while (HasTrait(value.opcode(), kReinterprets)) {
      value = value.operand(0);
    }
    return value;
  };
  std::vector<Instruction> results;
  const Instruction root = i.computation_attr(Attr::kCalls).root();
  if (root.opcode() == Opcode::kTuple) {
    for (Instruction result : root.operands()) results.push_back(result);
  } else {
    results.push_back(root);
  }
  for (Instruction result : results) {
    Instruction from = below_names(result);
    if (!OpcodeSet{Opcode::kDynamicUpdateSlice, Opcode::kScatter}.Contains(from.opcode())) continue;
    while (OpcodeSet{Opcode::kDynamicUpdateSlice, Opcode::kScatter}.Contains(from.opcode())) {
      from = below_names(from.operand(0));
    }
    if (from.opcode() == Opcode::kParameter) updated.push_back(from.parameter_number());
  }
  return updated;
}

bool IsArrayAlias(Instruction i) {
  if (!i.shape().IsArray() || !tpu::IsAlias(i) || !i.operand(0).shape().IsArray()) return false;
  return IsLayoutBitcast(i) ||
         (IsAnnotationCustomCall(i) && i.shape().WithoutLayout() == i.operand(0).shape().WithoutLayout() &&
          !i.has(Attr::kOperandLayoutConstraints));
}

bool CanReadFromVmem(Instruction user, int64_t operand) {
  if (!IsKernel(user)) return false;
  const std::vector<int64_t> updated = InPlaceOperands(user);
  return !absl::c_linear_search(updated, operand);
}

bool IsUpdatedInPlaceBy(Instruction value, Instruction user, int64_t operand) {
  if (!IsKernel(user) || !user.shape().IsArray() || user.shape().WithoutLayout() != value.shape().WithoutLayout())
    return false;
  const std::vector<int64_t> updated = InPlaceOperands(user);
  return updated.size() == 1 && updated[0] == operand;
}

std::vector<InstructionId> NamesOf(Instruction value) {
  constexpr size_t kMaxNames = 64;
  std::vector<InstructionId> names = {value.id()};
  for (size_t k = 0; k < names.size(); ++k) {
    const Instruction name = value.module().instruction(names[k]);
    for (const auto use : name.uses()) {
      if (!IsArrayAlias(use.user) && !IsUpdatedInPlaceBy(name, use.user, use.operand_index)) continue;
      if (absl::c_linear_search(names, use.user.id())) continue;
      if (names.size() == kMaxNames) return {};
      names.push_back(use.user.id());
    }
  }
  return names;
}

Shape InVmem(ShapeTable& shapes, Shape array) {
  const LayoutRecord* layout = array.has_layout() ? array.layout() : shapes.DefaultLayout(array.rank());
  LayoutExtras extras;
  if (layout->extras != nullptr) extras = *layout->extras;
  extras.memory_space = tpu::kVectorMemorySpace;
  return shapes.WithLayout(array, shapes.Layout(layout->minor_to_major, extras));
}

absl::StatusOr<InstructionId> AddAsyncCopy(Module& module, InstructionId source, Shape result,
                                           InstructionId before_start, InstructionId before_done) {
  ShapeTable& shapes = module.context().shapes;
  Builder builder(&module, module.record(source).parent, before_start);
  const MetadataScope scope(&builder, module.record(source).metadata);
  const Shape parts[] = {result, module.instruction(source).shape(), shapes.Scalar(ElementType::kU32)};
  const Builder::Result start = builder.Add(Opcode::kCopyStart, {source}, {}, shapes.Tuple(parts));
  if (!start.ok()) return start.status();
  builder.SetInsertionPoint(before_done);
  return builder.Add(Opcode::kCopyDone, {*start}, {}, result);
}

bool UsesVmem(const Module& module) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      const int64_t space = tpu::MemorySpaceOf(i.shape());
      if (space == tpu::kVectorMemorySpace || space == tpu::kCommonMemorySpace) return true;
    }
  }
  return false;
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
#include "ir/inference/applied_types.h"

#include <cstddef>
#include <cstdint>

#include "ir/graph/module.h"
#include "ir/inference/shape_inference.h"
#include "ir/ops/opcode_set.h"

namespace hlokit {
namespace {

// Returns the wider of two floating-point types, else the first.
ElementType Wider(ElementType a, ElementType b) { return IsFloat(a) && IsFloat(b) ? HigherPrecision(a, b) : a; }

// Returns the types of the parameters; empty if there are not `count` arrays.
std::vector<ElementType> ParameterTypes(Computation computation, size_t count) {
  std::vector<ElementType> types;
  if (!computation.valid() || computation.parameter_count() != static_cast<int64_t>(count)) return types;
  for (size_t k = 0; k < count; ++k) {
    const Instruction parameter = computation.parameter(static_cast<int64_t>(k));
    if (!parameter.valid() || !parameter.shape().IsArray()) return {};
    types.push_back(parameter.shape().element_type());
  }
  return types;
}

}  // namespace

std::optional<AppliedTypes> AppliedTypesOf(Instruction instruction) {
  const Opcode opcode = instruction.opcode();
  const bool reduces = OpcodeSet{Opcode::kReduce, Opcode::kReduceWindow}.Contains(opcode);
  if (!reduces && !OpcodeSet{Opcode::kMap, Opcode::kScatter, Opcode::kSelectAndScatter}.Contains(opcode)) {
    return std::nullopt;
  }
  AppliedTypes types;
  for (Instruction operand : instruction.operands()) {
    if (!operand.shape().IsArray()) return std::nullopt;
    types.operands.push_back(operand.shape().element_type());
  }
  std::vector<ElementType>& of = types.operands;
  const size_t count = of.size() / 2;  // of arrays
  if (opcode == Opcode::kSelectAndScatter) {
    if (of.size() != 3) return std::nullopt;
    types.results = {Wider(Wider(of[0], of[1]), of[2])};
    of.assign(3, types.results[0]);
  } else if (opcode == Opcode::kScatter) {
    if (of.size() % 2 != 1) return std::nullopt;
    for (size_t k = 0; k < count; ++k) {
      types.results.push_back(Wider(of[k], of[count + 1 + k]));
      of[k] = of[count + 1 + k] = types.results[k];
    }
  } else {
    const Computation applied = instruction.computation_attr(Attr::kToApply);
    const std::vector<ElementType> parameters = ParameterTypes(applied, of.size());
    if (parameters.empty()) return std::nullopt;
    if (opcode == Opcode::kMap) {
      const Shape root = applied.root().shape();
      if (!root.IsArray()) return std::nullopt;
      of = parameters;
      types.results = {root.element_type()};
      return types;
    }
    if (of.size() % 2 != 0) return std::nullopt;
    for (size_t k = 0; k < count; ++k) {
      types.results.push_back(Wider(parameters[k], parameters[count + k]));
      of[k] = of[count + k] = types.results[k];
    }
  }
  return types;
}

bool HasOtherTypes(Instruction instruction, const AppliedTypes& types) {
  for (size_t k = 0; k < types.operands.size(); ++k) {
    if (instruction.operand(static_cast<int64_t>(k)).shape().element_type() != types.operands[k]) return true;
  }
  const std::vector<Shape> leaves = Leaves(instruction.shape());
  for (size_t k = 0; k < leaves.size() && k < types.results.size(); ++k) {
    if (leaves[k].element_type() != types.results[k]) return true;
  }
  return false;
}

}  // namespace hlokit

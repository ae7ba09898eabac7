// SPDX-License-Identifier: Apache-2.0
// Instructions whose operands and result have different float types where one type is expected: see "Mixed precision"
// in docs/interpreter.md.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interp/reference/ops.h"
#include "ir/core/str_cat.h"
#include "ir/inference/applied_types.h"
#include "ir/inference/shape_inference.h"

namespace hlokit::reference {
namespace {

bool IsFloatArray(const Leaf& leaf) { return leaf->shape().IsArray() && IsFloat(leaf->type()); }

// Returns true if all floating-point operands should have one type.
bool ShouldHaveOneType(Opcode opcode) { return HasTrait(opcode, kElementwise) || HasTrait(opcode, kUniformTypes); }

}  // namespace

bool FitOperands(Op* op) {
  const Opcode opcode = op->instruction.opcode();
  Run& run = op->run;
  ShapeTable& shapes = run.program.module->context().shapes;
  OperandValues& operands = op->operands;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].size() != 1) return true;  // forwarded unchanged
  }
  const std::optional<AppliedTypes> applied = AppliedTypesOf(op->instruction);
  const bool as_bytes = !applied && run.options.mixed_precision == interp::MixedPrecisionMode::kReinterpret &&
                        ShouldHaveOneType(opcode) && opcode != Opcode::kCopy && opcode != Opcode::kConvert &&
                        op->shape.IsArray();
  if (as_bytes) {
    const bool compares = opcode == Opcode::kCompare || opcode == Opcode::kIsFinite;
    const ElementType type = compares ? op->in(0).type() : op->shape.element_type();
    for (size_t k = 0; k < operands.size(); ++k) {
      const Leaf& operand = operands[k][0];
      if (!IsFloatArray(operand) || !IsFloat(type) || operand->type() == type) continue;
      const std::shared_ptr<Array> read = run.Allocate(shapes.Array(type, operand->dims()));
      if (read == nullptr) return false;
      read->CopyBytes(*operand);
      operands.Replace(k, {read});
    }
    return true;
  }
  // Converts operands to those types in which a computation is applied, or to the widest of their types.
  std::vector<ElementType> results;
  std::optional<ElementType> widest;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Leaf& operand = operands[k][0];
    if (IsFloatArray(operand)) widest = widest ? HigherPrecision(*widest, operand->type()) : operand->type();
  }
  for (size_t k = 0; k < operands.size(); ++k) {
    const Leaf& operand = operands[k][0];
    if (!IsFloatArray(operand) || (!applied && !ShouldHaveOneType(opcode))) continue;
    const ElementType type = applied ? applied->operands[k] : *widest;
    if (!IsFloat(type)) continue;
    Leaf converted = Converted(run, operand, type);
    if (converted == nullptr) return false;
    operands.Replace(k, {std::move(converted)});
  }
  // Result types of the instruction for these operands.
  if (applied) {
    results = applied->results;
  } else {
    std::vector<Shape> converted, scratch;
    for (size_t k = 0; k < operands.size(); ++k) converted.push_back(operands[k][0]->shape());
    InferenceRequest request = RequestFor(op->instruction, &scratch);
    request.operands = converted;
    const absl::StatusOr<Shape> inferred = InferShape(request);
    if (!inferred.ok()) {
      run.Fail(std::string(inferred.status().message()));
      return false;
    }
    for (Shape leaf : LeafShapes(*inferred)) results.push_back(leaf.element_type());
  }
  std::vector<Shape> declared = LeafShapes(op->shape);
  if (results.size() != declared.size()) return true;
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].IsArray()) declared[i] = shapes.Array(results[i], declared[i].dims());
  }
  op->shape = op->shape.IsTuple() ? shapes.Tuple(declared) : declared[0];
  return true;
}

bool FitResults(Run& run, Shape declared, SlotValue* value) {
  const std::vector<Shape> leaves = LeafShapes(declared);
  for (size_t i = 0; i < leaves.size() && i < value->size(); ++i) {
    if (!IsFloatArray((*value)[i]) || !leaves[i].IsArray()) continue;
    (*value)[i] = Converted(run, (*value)[i], leaves[i].element_type());
    if ((*value)[i] == nullptr) return false;
  }
  return true;
}

}  // namespace hlokit::reference

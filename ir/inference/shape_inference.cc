// SPDX-License-Identifier: Apache-2.0
#include "ir/inference/shape_inference.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "ir/inference/rules.h"

namespace hlokit {
namespace {

using inference::InferenceContext;
using inference::InferredShape;
using inference::TypeMatch;

// A row of opcodes.def.
struct RuleRow {
  ShapeRule rule;
  inference::InferenceRule infer;
  bool exact_types;
  bool mixed_operands;
};

constexpr RuleRow kRules[] = {
#define SHAPE_RULE(name, exact_types, mixed_operands, description) \
  {ShapeRule::k##name, inference::Infer##name, exact_types, mixed_operands},
#include "ir/ops/shape_rule_columns.inc"
};

const RuleRow& RowOf(Opcode opcode) { return kRules[static_cast<size_t>(InfoOf(opcode).shape_rule)]; }

// Checks the preconditions of all rules.
absl::Status CheckOperands(const InferenceRequest& request) {
  const OpcodeInfo& info = InfoOf(request.opcode);
  const auto count = static_cast<int64_t>(request.operands.size());
  if (count < info.min_operands || (info.max_operands != kVariadic && count > info.max_operands)) {
    if (info.min_operands == info.max_operands) {
      return inference::Error("expected ", Counted(info.min_operands, "operand"), ", found ", count);
    }
    return inference::Error("expected at least ", Counted(info.min_operands, "operand"), ", found ", count);
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!request.operands[i].valid()) return inference::Error("unknown shape of operand ", i);
  }
  return absl::OkStatus();
}

absl::Status RunRule(const RuleRow& row, const InferenceRequest& request, bool layouts, InferredShape* out) {
  if (absl::Status status = CheckOperands(request); !status.ok()) return status;
  return row.infer({request, AttrReader(*request.module, request.attrs), layouts}, out);
}

// Checks that all float arrays among the operands have one type. Tuples may share elements, so each shape is visited
// once.
absl::Status CheckOneFloatType(const InferenceRequest& request) {
  std::optional<ElementType> type;
  std::vector<Shape> stack;
  absl::flat_hash_set<const ShapeRecord*> seen;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    stack.push_back(request.operands[i]);
    while (!stack.empty()) {
      const Shape shape = stack.back();
      stack.pop_back();
      if (!IsFloat(shape.element_type())) {
        if (shape.tuple_size() == 0 || !seen.insert(shape.record()).second) continue;
        stack.insert(stack.end(), shape.elements().begin(), shape.elements().end());
      } else if (!type) {
        type = shape.element_type();
      } else if (*type != shape.element_type()) {
        return inference::Error("operands mix ", ToString(*type), " and ", ToString(shape.element_type()), " (operand ",
                                i, "), but mixed precision is not allowed");
      }
    }
  }
  return absl::OkStatus();
}

// Checks that the parameters of a computation applied to elements have exactly the operands' element types.
absl::Status CheckParameterTypes(const InferenceRequest& request) {
  const Computation to_apply = AttrReader(*request.module, request.attrs).live_computation(Attr::kToApply);
  if (!to_apply.valid()) return absl::OkStatus();
  const int64_t count = std::min<int64_t>(to_apply.parameter_count(), static_cast<int64_t>(request.operands.size()));
  for (int64_t i = 0; i < count; ++i) {
    const Shape parameter = to_apply.parameter(i).shape();
    if (parameter.element_type() == request.operands[i].element_type()) continue;
    return inference::Error("parameter ", i, " of ", to_apply.name(), " is ", inference::Text(parameter),
                            ", but operand ", i, " has elements of ", ToString(request.operands[i].element_type()));
  }
  return absl::OkStatus();
}

absl::Status CheckUniformPrecision(const RuleRow& row, const InferenceRequest& request) {
  if (!row.mixed_operands && request.opcode != Opcode::kDomain) {
    if (absl::Status status = CheckOneFloatType(request); !status.ok()) return status;
  }
  if (row.rule == ShapeRule::kReduce || row.rule == ShapeRule::kReduceWindow || row.rule == ShapeRule::kMap) {
    return CheckParameterTypes(request);
  }
  return absl::OkStatus();
}

// Returns an error that refers to the differing leaf of large tuples.
absl::Status Mismatch(Shape declared, Shape inferred, TypeMatch match) {
  constexpr int64_t kManyLeaves = 8;
  constexpr size_t kMaxPath = 16;
  std::vector<int64_t> path;
  while (path.size() < kMaxPath && declared.IsTuple() && inferred.IsTuple() &&
         declared.tuple_size() == inferred.tuple_size() &&
         std::max(declared.leaf_count(), inferred.leaf_count()) > kManyLeaves) {
    int64_t i = 0;
    while (i < declared.tuple_size() && inference::ShapesMatch(declared.element(i), inferred.element(i), match)) ++i;
    if (i == declared.tuple_size()) break;
    path.push_back(i);
    declared = declared.element(i);
    inferred = inferred.element(i);
  }
  return inference::Error(
      path.empty() ? "the instruction" : StrCat("element ", inference::Text(path), " of the result"),
      " is declared as ", inference::Text(declared), ", but the shape inferred from its operands and attributes is ",
      inference::Text(inferred));
}

}  // namespace

absl::StatusOr<Shape> InferShape(const InferenceRequest& request) {
  InferredShape inferred;
  if (absl::Status status = RunRule(RowOf(request.opcode), request, /*layouts=*/true, &inferred); !status.ok()) {
    return status;
  }
  const Shape result = inferred.Make(request.module->context().shapes);
  // Only tuples with shared elements can be this large.
  if (result.leaf_count() > kMaxLeaves) return inference::Error("the result has more than ", kMaxLeaves, " leaves");
  return result;
}

absl::Status CheckShape(const InferenceRequest& request, bool mixed_precision) {
  const RuleRow& row = RowOf(request.opcode);
  if (!request.declared.valid()) return inference::Error("the instruction has no shape");
  InferredShape inferred;
  if (absl::Status status = RunRule(row, request, /*layouts=*/false, &inferred); !status.ok()) return status;
  const TypeMatch match = mixed_precision && !row.exact_types ? TypeMatch::kIgnoreFpPrecision : TypeMatch::kExact;
  if (!inferred.Matches(request.declared, match)) {
    return Mismatch(request.declared, inferred.Make(request.module->context().shapes), match);
  }
  if (!mixed_precision) return CheckUniformPrecision(row, request);
  return absl::OkStatus();
}

InferenceRequest RequestFor(Instruction instruction, std::vector<Shape>* operands) {
  operands->clear();
  for (Instruction operand : instruction.operands()) operands->push_back(operand.shape());
  return {&instruction.module(), instruction.opcode(), *operands, instruction.attrs(), instruction.shape()};
}

bool CompatibleIgnoringDynamism(Shape a, Shape b) { return inference::ShapesMatch(a, b, TypeMatch::kExact); }
bool CompatibleIgnoringFpPrecision(Shape a, Shape b) {
  return inference::ShapesMatch(a, b, TypeMatch::kIgnoreFpPrecision);
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
// Rules of types: which agree, and which results follow from operands.
#include <algorithm>

#include "parser/mlir/bounds.h"
#include "parser/mlir/quantized.h"
#include "parser/stablehlo/verify/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

std::optional<mlir::QuantizedType> Rules::Quantized(NodeId type) const {
  if (!IsTensor(type) || n.kind(element(type)) != NodeKind::kDialectType) return std::nullopt;
  return mlir::ParseQuantized(n.text(element(type)));
}

NodeId Rules::TensorOf(absl::Span<const int64_t> dims, NodeId of, absl::Span<const int64_t> bounds) const {
  mlir::NodeTable& table = const_cast<mlir::NodeTable&>(n);
  const NodeId encoding = bounds.empty() ? NodeId() : mlir::MakeBounds(&table, bounds);
  if (!encoding.valid()) return table.Tensor(dims, of);
  const NodeId children[] = {of, encoding};
  return table.Make(NodeKind::kTensorType, "", dims, children);
}

NodeId Rules::RealElement(NodeId type) const {
  return n.kind(element(type)) == NodeKind::kComplexType ? n.child(element(type), 0) : element(type);
}

bool Rules::ElementsInfer(NodeId from, NodeId to) const {
  if (from == to) return true;
  const auto quantized = [&](NodeId e) {
    return n.kind(e) == NodeKind::kDialectType ? mlir::ParseQuantized(n.text(e)) : std::nullopt;
  };
  const std::optional<mlir::QuantizedType> a = quantized(from), b = quantized(to);
  if (!a && !b) return n.kind(from) == NodeKind::kDialectType || n.kind(to) == NodeKind::kDialectType;
  if (a && b) return a->is_signed == b->is_signed && a->expressed == b->expressed;
  return Text(a ? to : from) == (a ? a : b)->expressed;
}

bool Rules::TypesInfer(NodeId from, NodeId to) const {
  // Pairs of a type and one that is to agree with it.
  std::vector<std::pair<NodeId, NodeId>> pending = {{from, to}};
  while (!pending.empty()) {
    const auto [a, b] = pending.back();
    pending.pop_back();
    if (a == b) continue;
    if (n.kind(a) == NodeKind::kTupleType && n.kind(b) == NodeKind::kTupleType &&
        n.child_count(a) == n.child_count(b)) {
      for (size_t i = 0; i < n.child_count(a); ++i) pending.push_back({n.child(a, i), n.child(b, i)});
      continue;
    }
    if (!IsTensor(a) || !IsTensor(b) || !ElementsInfer(element(a), element(b)) || !ShapesAgree(sizes(a), sizes(b))) {
      return false;
    }
    const Ints a_bounds = mlir::BoundsOf(n, a), b_bounds = mlir::BoundsOf(n, b);
    for (size_t i = 0; i < sizes(a).size(); ++i) {
      const auto exceeds = [&](int64_t size, const Ints& bounds) {
        return size != mlir::kDynamicSize && !bounds.empty() && bounds[i] != mlir::kDynamicSize && size > bounds[i];
      };
      if (exceeds(sizes(a)[i], b_bounds) || exceeds(sizes(b)[i], a_bounds)) return false;
    }
  }
  return true;
}

bool Rules::CheckResults(const std::vector<NodeId>& inferred) {
  bool good = inferred.size() == op.result_count;
  for (size_t i = 0; good && i < inferred.size(); ++i) good = TypesInfer(inferred[i], result(i));
  return good || FailResults(inferred);
}

bool Rules::FailResults(const std::vector<NodeId>& inferred) {
  std::vector<NodeId> actual;
  for (size_t i = 0; i < op.result_count; ++i) actual.push_back(result(i));
  return FailInference(StrCat("'", n.str(op.name), "' op inferred type(s) ", TypesText(inferred),
                              " are incompatible with return type(s) of operation ", TypesText(actual)));
}

std::string Rules::TypesText(const std::vector<NodeId>& types) const {
  std::string text;
  for (NodeId type : types) StrAppend(&text, text.empty() ? "'" : ", '", Text(type), "'");
  return text;
}

std::vector<NodeId> Rules::ValueTypes() const {
  std::vector<NodeId> types;
  for (size_t i = 0; i < op.operand_count; ++i) types.push_back(operand(i));
  for (size_t i = 0; i < op.result_count; ++i) types.push_back(result(i));
  return types;
}

bool Rules::CheckSameShape() {
  const std::vector<NodeId> types = ValueTypes();
  for (NodeId type : types) {
    if (!IsTensor(type) || !IsTensor(types[0]) || ShapesAgree(sizes(type), sizes(types[0]))) continue;
    return Fail("requires the same shape for all operands and results");
  }
  return true;
}

bool Rules::CheckSameElement() {
  const bool chlo = op.definition->dialect == "chlo";
  const std::vector<NodeId> types = ValueTypes();
  for (NodeId type : types) {
    if (!IsTensor(type) || !IsTensor(types[0])) continue;
    const std::optional<mlir::QuantizedType> a = Quantized(types[0]), b = Quantized(type);
    if (chlo && a && b && (a->storage != b->storage || a->expressed != b->expressed)) {
      return Fail("requires compatible element types for all operands and results");
    }
    if (a || b || element(type) == element(types[0])) continue;
    return Fail(chlo ? "requires compatible element types for all operands and results"
                     : "requires the same element type for all operands and results");
  }
  return true;
}

bool Rules::CheckSameData() {
  if (ElementsInfer(element(operand(0)), element(result()))) return true;
  return Fail(StrCat("expects operand and result to have compatible element type. Got: '", Text(operand(0)), "' and '",
                     Text(result()), "'"));
}

bool Rules::CheckBaseShape() {
  NodeId first;
  for (NodeId type : ValueTypes()) {
    if (!IsTensor(type) || sizes(type).empty()) continue;
    if (!first.valid()) first = type;
    if (!ShapesAgree(sizes(type), sizes(first))) {
      return Fail("all non-scalar operands/results must have the same shape and base type");
    }
  }
  return true;
}

bool Rules::InferFirstOperand() {
  // Bounds and sizes of the operands hold for the result.
  for (size_t i = 1; i < op.operand_count; ++i) {
    if (!IsTensor(operand(0)) || !IsTensor(operand(i)) || rank(operand(i)) != rank(operand(0))) continue;
    for (const auto& [sized, bounded] : {std::pair(operand(0), operand(i)), std::pair(operand(i), operand(0))}) {
      const Ints bounds = mlir::BoundsOf(n, bounded);
      for (size_t d = 0; d < bounds.size(); ++d) {
        const int64_t size = sizes(sized)[d];
        if (size == mlir::kDynamicSize || bounds[d] == mlir::kDynamicSize || size <= bounds[d]) continue;
        return FailInference(StrCat("Mismatched dimension size ", size, " and bound ", bounds[d], " in dimension ", d));
      }
    }
  }
  return op.operand_count == 0 || CheckResults(std::vector<NodeId>(op.result_count, operand(0)));
}

bool Rules::InferEachOperand() {
  std::vector<NodeId> types;
  for (size_t i = 0; i < op.operand_count; ++i) types.push_back(operand(i));
  return CheckResults(types);
}

bool Rules::InferRealPart() {
  return CheckResults({TensorOf(sizes(operand(0)), RealElement(operand(0)), mlir::BoundsOf(n, operand(0)))});
}

bool Rules::InferPred() {
  const NodeId pred = const_cast<mlir::NodeTable&>(n).IntegerType(1);
  return CheckResults({TensorOf(sizes(operand(0)), pred, mlir::BoundsOf(n, operand(0)))});
}

bool Rules::InferComplex() {
  const NodeId part = element(operand(0));
  const NodeId complex = const_cast<mlir::NodeTable&>(n).Make(NodeKind::kComplexType, "", {}, {&part, 1});
  return CheckResults({TensorOf(sizes(operand(0)), complex, mlir::BoundsOf(n, operand(0)))});
}

bool Rules::CheckAccuracy() {
  const NodeId value = m.attribute(op, "result_accuracy");
  if (!value.valid() || n.kind(value) != NodeKind::kFields) return true;
  bool any = false;
  for (std::string_view name : {"atol", "rtol", "ulps"}) {
    const NodeId number = n.Entry(value, name);
    if (!number.valid()) continue;
    if (n.kind(number) != (name == "ulps" ? NodeKind::kInteger : NodeKind::kFloat)) {
      return Fail(
          StrCat("expects ", name, " of result_accuracy to be a ", name == "ulps" ? "64-bit integer" : "64-bit float"));
    }
    any = any || n.ints(number)[0] != 0;
  }
  const NodeId mode = n.Entry(value, "mode");
  if (!mode.valid() || n.kind(mode) != NodeKind::kEnum) return true;
  const std::string_view text = n.str(StringId(static_cast<uint32_t>(n.ints(mode)[0])));
  if (text != "TOLERANCE" && any) {
    return Fail(StrCat("Invalid tolerances for ResultAccuracyAttr with mode ", text, ", must be all zero."));
  }
  return true;
}

bool Rules::CheckConstant() {
  const NodeId value = m.attribute(op, "value");
  const bool typed = n.kind(value) == NodeKind::kDense || n.kind(value) == NodeKind::kDenseText ||
                     n.kind(value) == NodeKind::kDenseResource;
  if (!typed || !IsTensor(n.child(value, 0))) return true;
  const NodeId type = n.child(value, 0);
  const std::optional<mlir::QuantizedType> quantized = Quantized(result());
  if (quantized) {
    // The value is one of the storage type.
    const std::string storage = StrCat(quantized->is_signed ? "i" : "ui", quantized->width);
    if (Text(element(type)) == storage && ShapesAgree(sizes(type), sizes(result()))) return true;
  } else if (TypesInfer(type, result())) {
    return true;
  }
  return FailResults({type});
}

bool Rules::CheckConstantLike() {
  for (NodeId type : {operand(0), result()}) {
    if (IsTensor(type) || n.kind(type) == NodeKind::kUnrankedTensorType) continue;
    return Fail(StrCat("operand and result must be tensors, but got '", Text(type), "'"));
  }
  const NodeId value = m.attribute(op, "value");
  const bool number = n.kind(value) == NodeKind::kInteger || n.kind(value) == NodeKind::kFloat;
  if (!number || n.child(value, 0) == element(result())) return true;
  return Fail(StrCat("value's type doesn't match element return type: '", Text(n.child(value, 0)), "' vs '",
                     Text(element(result())), "'"));
}

bool Rules::CheckSelect() {
  const NodeId pred = operand(0), on_true = operand(1), on_false = operand(2);
  if (!TypesInfer(on_true, on_false)) {
    return FailInference("requires compatible types for non-predicate operands");
  }
  if (rank(pred) != 0 && !ShapesAgree(sizes(pred), sizes(on_true))) {
    return FailInference("requires the same shape for all operands");
  }
  return CheckResults({on_true});
}

bool Rules::CheckClamp() {
  for (size_t i : {size_t{0}, size_t{2}}) {
    if (rank(operand(i)) == 0 || ShapesAgree(sizes(operand(i)), sizes(operand(1)))) continue;
    return FailInference(StrCat(i == 0 ? "min" : "max", " shape [", ListText(sizes(operand(i))),
                                "] is not scalar and is not compatible to operand shape [", ListText(sizes(operand(1))),
                                "]"));
  }
  return CheckResults({operand(1)});
}

}  // namespace hlokit::stablehlo

// SPDX-License-Identifier: Apache-2.0
// What the rows of operations.def say of every operation; verify_*.cc has the rules of single ones.
#include "parser/stablehlo/verify/verify.h"

#include <algorithm>

#include "ir/core/str_cat.h"
#include "parser/mlir/quantized.h"
#include "parser/stablehlo/import/convert.h"
#include "parser/stablehlo/verify/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::AttributeKind;
using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;
using mlir::TypeConstraint;

namespace {

std::optional<mlir::QuantizedType> QuantizedOf(const mlir::NodeTable& n, NodeId element) {
  if (n.kind(element) != NodeKind::kDialectType) return std::nullopt;
  return mlir::ParseQuantized(n.text(element));
}

bool IsIntegerType(const mlir::NodeTable& n, NodeId element) {
  if (n.kind(element) != NodeKind::kIntegerType) return false;
  const int64_t width = n.ints(element)[0];
  const bool known = width == 2 || width == 4 || width == 8 || width == 16 || width == 32 || width == 64;
  return known && n.ints(element)[1] != static_cast<int64_t>(mlir::Signedness::kSigned);
}

bool IsPred(const mlir::NodeTable& n, NodeId element) {
  return n.kind(element) == NodeKind::kIntegerType && n.ints(element)[0] == 1 && n.ints(element)[1] == 0;
}

bool IsFloatType(const mlir::NodeTable& n, NodeId element) {
  return n.kind(element) == NodeKind::kFloatType && n.text(element) != "tf32" && n.text(element) != "f80" &&
         n.text(element) != "f128";
}

bool IsComplexType(const mlir::NodeTable& n, NodeId element) {
  if (n.kind(element) != NodeKind::kComplexType) return false;
  const NodeId part = n.child(element, 0);
  return n.kind(part) == NodeKind::kFloatType && (n.text(part) == "f32" || n.text(part) == "f64");
}

// Returns true if the attribute has a value of the kind.
bool HasKind(const mlir::NodeTable& n, AttributeKind kind, NodeId value) {
  const NodeKind node = n.kind(value);
  const auto integer = [&](int64_t width) {
    return node == NodeKind::kInteger && n.kind(n.child(value, 0)) == NodeKind::kIntegerType &&
           n.ints(n.child(value, 0))[0] == width;
  };
  switch (kind) {
    case AttributeKind::kString:
      return node == NodeKind::kString;
    case AttributeKind::kSymbol:
      return node == NodeKind::kSymbol;
    case AttributeKind::kI64:
      return integer(64);
    case AttributeKind::kI32:
      return integer(32);
    case AttributeKind::kDimension:
      return integer(64) && n.ints(value)[0] >= 0;
    case AttributeKind::kPositive:
      return integer(64) && n.ints(value)[0] > 0;
    case AttributeKind::kPositive32:
      return integer(32) && n.ints(value)[0] > 0;
    case AttributeKind::kIndex32:
      return integer(32) && n.ints(value)[0] >= 0;
    case AttributeKind::kF32:
      return node == NodeKind::kFloat && n.text(n.child(value, 0)) == "f32";
    case AttributeKind::kBool:
      return integer(1);
    case AttributeKind::kUnit:
      return node == NodeKind::kUnit;
    case AttributeKind::kDims:
      // Older text has elements in place of arrays.
      if (node == NodeKind::kDense && n.ints(n.child(value, 0)).size() == 1 && n.Integers(value)) return true;
      return node == NodeKind::kDenseArray && n.kind(n.child(value, 0)) == NodeKind::kIntegerType &&
             n.ints(n.child(value, 0))[0] == 64;
    case AttributeKind::kBools:
      if (node == NodeKind::kDense && n.ints(n.child(value, 0)).size() == 1 && n.Integers(value)) return true;
      return node == NodeKind::kDenseArray && n.kind(n.child(value, 0)) == NodeKind::kIntegerType &&
             n.ints(n.child(value, 0))[0] == 1;
    case AttributeKind::kArray:
      return node == NodeKind::kArray;
    case AttributeKind::kDictionary:
      return node == NodeKind::kDictionary;
    case AttributeKind::kElements:
      return node == NodeKind::kDense || node == NodeKind::kDenseResource;
    case AttributeKind::kEnum:
    case AttributeKind::kComparisonType:
    case AttributeKind::kTranspose:
      return node == NodeKind::kEnum;
    case AttributeKind::kPrecisions:
      if (node != NodeKind::kArray) return false;
      for (NodeId item : n.children(value)) {
        if (n.kind(item) != NodeKind::kEnum) return false;
        if (!mlir::IsPrecision(n.str(StringId(static_cast<uint32_t>(n.ints(item)[0]))))) return false;
      }
      return true;
    case AttributeKind::kType:
      return n.IsType(value);
    case AttributeKind::kAny:
    case AttributeKind::kAccuracy:
    case AttributeKind::kDot:
    case AttributeKind::kDotAlgorithm:
    case AttributeKind::kRaggedDot:
    case AttributeKind::kGather:
    case AttributeKind::kScatter:
    case AttributeKind::kConvolution:
    case AttributeKind::kChannel:
    case AttributeKind::kGroups:
    case AttributeKind::kAxes:
      break;
  }
  return true;
}

}  // namespace

bool Satisfies(const mlir::NodeTable& n, TypeConstraint constraint, NodeId type) {
  const NodeKind kind = n.kind(type);
  const auto dialect = [&](std::string_view text) { return kind == NodeKind::kDialectType && n.text(type) == text; };
  if (constraint == TypeConstraint::kAny) return true;
  if (constraint == TypeConstraint::kToken) return dialect("stablehlo.token");
  if (constraint == TypeConstraint::kTuple) return kind == NodeKind::kTupleType;
  if (constraint == TypeConstraint::kTensorOrToken && kind != NodeKind::kTensorType) return true;
  if (kind != NodeKind::kTensorType) return false;
  const NodeId e = n.child(type, 0);
  const absl::Span<const int64_t> sizes = n.ints(type);
  const bool pred = IsPred(n, e), integer = IsIntegerType(n, e), is_float = IsFloatType(n, e),
             complex = IsComplexType(n, e);
  const std::optional<mlir::QuantizedType> parameters = QuantizedOf(n, e);
  const bool any_quantized = parameters ? mlir::FitsTensor(*parameters, n.ints(type))
                                        : n.kind(e) == NodeKind::kDialectType && n.text(e).starts_with("quant.uniform");
  const bool quantized = any_quantized && !(parameters && parameters->axis);
  const bool index = n.kind(e) == NodeKind::kIndexType;
  const bool is_unsigned = integer && n.ints(e)[1] == static_cast<int64_t>(mlir::Signedness::kUnsigned);
  const auto dynamic = std::count(sizes.begin(), sizes.end(), mlir::kDynamicSize);
  switch (constraint) {
    case TypeConstraint::kTensorOrToken:
    case TypeConstraint::kTensor:
      return pred || integer || is_float || complex || quantized || index;
    case TypeConstraint::kTensorPerAxis:
      return pred || integer || is_float || complex || any_quantized || index;
    case TypeConstraint::kConstant:
      return (pred || integer || is_float || complex || any_quantized) && dynamic == 0;
    case TypeConstraint::kStaticDims:
      return sizes.size() == 1 && (integer || index) && dynamic == 0;
    case TypeConstraint::kStaticPerAxis:
      return (pred || integer || is_float || complex || any_quantized || index) &&
             (dynamic == 0 || (dynamic == 1 && n.child_count(type) > 1));
    case TypeConstraint::kStatic:
      return (pred || integer || is_float || complex || quantized || index) &&
             (dynamic == 0 || (dynamic == 1 && n.child_count(type) > 1));
    case TypeConstraint::kNumberTensor:
      return (integer || is_float || complex) && (dynamic == 0 || (dynamic == 1 && n.child_count(type) > 1));
    case TypeConstraint::kScalar:
      return sizes.empty() && (pred || integer || is_float || complex || quantized);
    case TypeConstraint::kScalarInteger:
      return sizes.empty() && integer;
    case TypeConstraint::kScalarI32:
      return sizes.empty() && integer && n.ints(e)[0] == 32 && !is_unsigned;
    case TypeConstraint::kScalarPred:
      return pred;
    case TypeConstraint::kNumber:
      return integer || is_float || complex || quantized;
    case TypeConstraint::kSigned:
      return (integer && !is_unsigned) || is_float || complex || quantized;
    case TypeConstraint::kFloat:
      return is_float;
    case TypeConstraint::kFloat1:
      return is_float && sizes.size() == 1;
    case TypeConstraint::kFloat1Q:
      return (is_float || quantized) && sizes.size() == 1;
    case TypeConstraint::kFloat32Or64:
      return is_float && (n.text(e) == "f32" || n.text(e) == "f64");
    case TypeConstraint::kFloatQ:
      return is_float || quantized;
    case TypeConstraint::kFloatPerAxis:
      return is_float || any_quantized;
    case TypeConstraint::kFloatComplex:
      return is_float || complex;
    case TypeConstraint::kFloatComplexQ:
      return is_float || complex || quantized;
    case TypeConstraint::kComplex:
      return complex;
    case TypeConstraint::kInteger:
      return integer;
    case TypeConstraint::kPred:
      return pred;
    case TypeConstraint::kPredInteger:
      return pred || integer;
    case TypeConstraint::kDims:
      return sizes.size() == 1 && (integer || index);
    case TypeConstraint::kQuantized:
      return any_quantized;
    case TypeConstraint::kUi32:
      return sizes.empty() && is_unsigned && n.ints(e)[0] == 32;
    case TypeConstraint::kAny:
    case TypeConstraint::kToken:
    case TypeConstraint::kTuple:
      break;
  }
  return true;
}

bool Rules::CheckValues(const std::vector<mlir::ValueDefinition>& definitions, absl::Span<const mlir::ValueId> values,
                        std::string_view what) {
  size_t variadic = 0;
  for (const mlir::ValueDefinition& d : definitions) variadic += d.variadic;
  if (variadic == 0 && values.size() != definitions.size()) {
    return Fail(StrCat("expected ", Counted(definitions.size(), what), ", but found ", values.size()));
  }
  if (values.size() + variadic < definitions.size()) {
    return Fail(StrCat("expected ", definitions.size() - variadic, " or more ", what, "s, but found ", values.size()));
  }
  bool good = true;
  for (size_t i = 0; i < values.size(); ++i) {
    // With several variadic ones (inputs, inits) all have one constraint but single ones between them.
    size_t at = 0;
    if (variadic == 0) {
      at = i;
    } else if (variadic == 1) {
      size_t before = 0;
      while (!definitions[before].variadic) ++before;
      const size_t after = definitions.size() - before - 1;
      at = i < before ? i : i >= values.size() - after ? definitions.size() - (values.size() - i) : before;
    } else {
      const size_t singles = definitions.size() - variadic;
      at = singles == 0 ? 0 : i == values.size() / 2 && values.size() % 2 == 1 ? definitions.size() / 2 : 0;
    }
    const mlir::ValueDefinition& d = definitions[at];
    if (!values[i].valid()) continue;
    const NodeId type = m.type(values[i]);
    if (Satisfies(n, d.constraint, type)) continue;
    good = Fail(StrCat(what, " #", i, " must be ", d.variadic ? "variadic of " : "", mlir::Describe(d.constraint),
                       ", but got '", mlir::ToText(n, m.type(values[i])), "'"));
  }
  return good;
}

bool Rules::CheckTable() {
  const mlir::OpDefinition& d = *op.definition;
  std::vector<mlir::ValueId> results;
  for (size_t i = 0; i < op.result_count; ++i) results.push_back(m.result(op, i));
  for (const mlir::AttributeDefinition& a : d.attributes) {
    const NodeId value = m.attribute(op, a.name);
    if (!value.valid()) {
      if (a.optional || a.has_default) continue;
      return Fail(StrCat("requires attribute '", a.name, "'"));
    }
    if (!HasKind(n, a.kind, value)) {
      return Fail(StrCat("attribute '", a.name, "' failed to satisfy constraint: ", mlir::Describe(a.kind)));
    }
  }
  if (!CheckValues(d.operands, m.operands_of(op), "operand") || !CheckValues(d.results, results, "result"))
    return false;
  if (!d.variadic_regions && op.region_count != d.regions.size()) {
    return Fail(d.regions.size() == 1 ? std::string("requires one region")
                                      : StrCat("requires ", d.regions.size(), " regions"));
  }
  return true;
}

void VerifyProgram(const mlir::Module& program, DiagnosticSink* sink) {
  Symbols symbols;
  for (const mlir::Operation& op : program.operations) {
    // Meshes of any dialect.
    if (op.kind() != OpKind::kFuncFunc && !program.nodes.str(op.name).ends_with(".mesh")) continue;
    const mlir::NodeId symbol = program.attribute(op, "sym_name");
    if (symbol.valid()) symbols.emplace(program.nodes.text(symbol), &op);
  }
  for (const mlir::Operation& op : program.operations) {
    if (op.definition == nullptr || sink->limit_reached()) continue;
    const std::string_view dialect = op.definition->dialect;
    const bool function = op.kind() == OpKind::kFuncFunc || op.kind() == OpKind::kFuncReturn;
    if (dialect != "stablehlo" && dialect != "chlo" && !function) continue;
    Rules rules(program, op, symbols, sink);
    if (rules.CheckTable()) rules.CheckOperation();
  }
  if (!sink->has_errors()) CheckByInference(program, sink);
}

}  // namespace hlokit::stablehlo

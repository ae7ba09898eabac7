// SPDX-License-Identifier: Apache-2.0
// Shape rules of elementwise operations.
#include <string>

#include "ir/inference/rules.h"

namespace hlokit::inference {
namespace {

// Sets of element classes that an operand may have.
using Classes = uint8_t;
constexpr Classes Bit(ElementClass c) { return static_cast<Classes>(1 << static_cast<int>(c)); }
constexpr Classes kPred = Bit(ElementClass::kPred);
constexpr Classes kSigned = Bit(ElementClass::kSigned);
constexpr Classes kInteger = kSigned | Bit(ElementClass::kUnsigned);
constexpr Classes kFloat = Bit(ElementClass::kFloat);
constexpr Classes kComplex = Bit(ElementClass::kComplex);
constexpr Classes kArithmetic = kInteger | kFloat | kComplex;
constexpr Classes kAll = kPred | kArithmetic;

Classes AllowedBy(OperandTypes types) {
  switch (types) {
    case OperandTypes::kAny:
      return kAll;
    case OperandTypes::kFloat:
      return kFloat;
    case OperandTypes::kFloatOrComplex:
      return kFloat | kComplex;
    case OperandTypes::kSignedOrComplex:
      return kSigned | kFloat | kComplex;
    case OperandTypes::kArithmetic:
      return kArithmetic;
    case OperandTypes::kInteger:
      return kInteger;
    case OperandTypes::kPredOrInteger:
      return kPred | kInteger;
  }
  return kAll;
}

std::string ClassesToString(Classes classes) {
  std::string text;
  const auto add = [&](Classes part, std::string_view name) {
    if ((classes & part) == part) StrAppend(&text, text.empty() ? "" : " or ", name);
  };
  add(kPred, "pred");
  add(kInteger, "integer");
  if ((classes & kInteger) == kSigned) add(kSigned, "signed integer");
  add(kFloat, "floating point");
  add(kComplex, "complex");
  return text;
}

absl::Status CheckClass(const InferenceContext& in, int64_t operand) {
  const ElementType type = in.operand(operand).element_type();
  const Classes allowed = AllowedBy(InfoOf(in.opcode()).operand_types);
  if ((allowed & Bit(ClassOf(type))) != 0) return absl::OkStatus();
  return Error("expected ", ClassesToString(allowed), " elements for ", ToString(in.opcode()), ", but operand ",
               operand, " is ", Text(in.operand(operand)));
}

// Infers the common shape of two operands of equal element type, as an array of `type`.
absl::Status InferPair(const InferenceContext& in, ElementType type, InferredShape* out) {
  const Shape a = in.operand(0);
  const Shape b = in.operand(1);
  if (a.WithoutLayout() == b.WithoutLayout() && !a.has_unbounded_dims()) {
    out->SetRetyped(a, type);
    return absl::OkStatus();
  }
  if (a.rank() != b.rank()) {
    return Error("operands have different ranks: ", Text(a), " and ", Text(b), " (HLO does not broadcast implicitly)");
  }
  out->SetArray(type);
  bool unbounded = false;
  for (int64_t i = 0; i < a.rank(); ++i) {
    if (a.dim(i) == b.dim(i)) {
      out->AddDim(a.dim(i), a.is_dynamic(i) || b.is_dynamic(i));
    } else if (a.is_unbounded(i) || b.is_unbounded(i)) {
      out->AddDimOf(a.is_unbounded(i) ? b : a, i);
    } else {
      return Error("operands have different sizes in dimension ", i, ": ", Text(a), " and ", Text(b));
    }
    unbounded |= a.is_unbounded(i) || b.is_unbounded(i);
  }
  if (!unbounded) out->SetLayout(a.layout());
  return absl::OkStatus();
}

// Checks common to all operations of two operands.
absl::Status CheckPair(const InferenceContext& in) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 1));
  HLOKIT_RETURN_IF_ERROR(ExpectSameElementTypeIgnoringFpPrecision(in, 0, 1));
  HLOKIT_RETURN_IF_ERROR(CheckClass(in, 0));
  return absl::OkStatus();
}

absl::Status CheckReducePrecision(const InferenceContext& in) {
  const int64_t exponent = in.attrs.int_attr(Attr::kExponentBits);
  const int64_t mantissa = in.attrs.int_attr(Attr::kMantissaBits);
  // Without exponent bits infinity and zero would be equal; mantissa bits may be zero.
  if (exponent < 1) return Error("`exponent_bits` must be at least 1, found ", exponent);
  if (mantissa < 0) return Error("`mantissa_bits` must not be negative, found ", mantissa);
  return absl::OkStatus();
}

// Reads the element type from the declared shape, which is its only source.
absl::Status DeclaredType(const InferenceContext& in, ElementType* type) {
  if (!in.declared().valid()) return Error("the element type of the result must be specified");
  HLOKIT_RETURN_IF_ERROR(ExpectArray(in.declared(), "the result"));
  *type = in.declared().element_type();
  return absl::OkStatus();
}

// Sets the shape of `a` with one more minor dimension, or without its last one: a reinterpretation of elements as
// narrower or wider ones. In the layout, a new dimension is the most minor.
void SetReinterpreted(const InferenceContext& in, Shape a, ElementType type, int64_t new_dim, InferredShape* out) {
  const int64_t rank = new_dim > 0 ? a.rank() + 1 : a.rank() - 1;
  out->SetArray(type);
  for (int64_t i = 0; i < rank && i < a.rank(); ++i) out->AddDimOf(a, i);
  if (new_dim > 0) out->AddDim(new_dim);
  if (!in.layouts || !a.has_layout() || a.layout()->is_default) return;
  std::vector<int64_t> minor_to_major;
  if (new_dim > 0) minor_to_major.push_back(rank - 1);
  for (int64_t d : a.layout()->minor_to_major) {
    if (d < rank) minor_to_major.push_back(d);
  }
  out->SetLayout(in.shapes().Layout(minor_to_major));
}

}  // namespace

absl::Status InferUnary(const InferenceContext& in, InferredShape* out) {
  const Shape a = in.operand(0);
  out->Set(a);
  if (HasTrait(in.opcode(), kIdentity)) return absl::OkStatus();  // of any shape
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  HLOKIT_RETURN_IF_ERROR(CheckClass(in, 0));
  if (in.opcode() == Opcode::kReducePrecision) return CheckReducePrecision(in);
  if (in.opcode() == Opcode::kAbs && IsComplex(a.element_type())) {
    out->SetRetyped(a, ComponentType(a.element_type()));
  }
  return absl::OkStatus();
}

absl::Status InferBinary(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(CheckPair(in));
  return InferPair(in, HigherPrecision(in.operand(0).element_type(), in.operand(1).element_type()), out);
}

absl::Status InferCompare(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(CheckPair(in));
  return InferPair(in, ElementType::kPred, out);
}

absl::Status InferComplex(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(CheckPair(in));
  const ElementType real = in.operand(0).element_type();
  const ElementType imag = in.operand(1).element_type();
  if (real != imag || (real != ElementType::kF32 && real != ElementType::kF64)) {
    return Error("expected two operands of f32 or two of f64, found ", ToString(real), " and ", ToString(imag));
  }
  return InferPair(in, real == ElementType::kF32 ? ElementType::kC64 : ElementType::kC128, out);
}

absl::Status InferRealImag(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  HLOKIT_RETURN_IF_ERROR(CheckClass(in, 0));
  out->SetRetyped(in.operand(0), ComponentType(in.operand(0).element_type()));
  return absl::OkStatus();
}

absl::Status InferIsFinite(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  HLOKIT_RETURN_IF_ERROR(CheckClass(in, 0));
  out->SetRetyped(in.operand(0), ElementType::kPred);
  return absl::OkStatus();
}

absl::Status InferConvert(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  ElementType type;
  HLOKIT_RETURN_IF_ERROR(DeclaredType(in, &type));
  out->SetRetyped(in.operand(0), type);
  return absl::OkStatus();
}

absl::Status InferBitcastConvert(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  ElementType to;
  HLOKIT_RETURN_IF_ERROR(DeclaredType(in, &to));
  const Shape a = in.operand(0);
  const ElementType from = a.element_type();
  if (IsComplex(from) != IsComplex(to)) {
    return Error("cannot bitcast ", ToString(from), " to ", ToString(to), ": only one of them is complex");
  }
  const int64_t from_bits = BitsOf(from);
  const int64_t to_bits = BitsOf(to);
  if (from_bits == to_bits) {
    out->SetRetyped(a, to);
    return absl::OkStatus();
  }
  // All widths are powers of two, so one divides the other.
  if (from_bits > to_bits) {
    SetReinterpreted(in, a, to, from_bits / to_bits, out);
    return absl::OkStatus();
  }
  const int64_t ratio = to_bits / from_bits;
  if (a.rank() == 0 || a.dim(a.rank() - 1) != ratio) {
    return Error("the last dimension of operand 0 (", Text(a), ") must be ", ratio, " to bitcast ", ToString(from),
                 " to ", ToString(to));
  }
  SetReinterpreted(in, a, to, 0, out);
  return absl::OkStatus();
}

absl::Status InferStochasticConvert(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 1));
  const Shape a = in.operand(0);
  const Shape random = in.operand(1);
  if (!IsFloat(a.element_type())) return Error("operand 0 must have floating point elements, found ", Text(a));
  if (!IsUnsigned(random.element_type())) {
    return Error("operand 1 (random numbers) must have unsigned elements, found ", Text(random));
  }
  if (BitsOf(a.element_type()) != BitsOf(random.element_type())) {
    return Error("operand 1 (random numbers) must have elements of ", BitsOf(a.element_type()),
                 " bits as operand 0, found ", Text(random));
  }
  if (!SameDims(a, random)) return Error("operands have different dimensions: ", Text(a), " and ", Text(random));
  ElementType type;
  HLOKIT_RETURN_IF_ERROR(DeclaredType(in, &type));
  out->SetRetyped(a, type);
  return absl::OkStatus();
}

absl::Status InferClamp(const InferenceContext& in, InferredShape* out) {
  for (int64_t i = 0; i < 3; ++i) HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, i));
  HLOKIT_RETURN_IF_ERROR(ExpectSameElementTypeIgnoringFpPrecision(in, 0, 1));
  HLOKIT_RETURN_IF_ERROR(ExpectSameElementTypeIgnoringFpPrecision(in, 2, 1));
  const Shape value = in.operand(1);
  for (int64_t i = 0; i < 3; i += 2) {
    const Shape bound = in.operand(i);
    if (bound.IsScalar() || SameDims(bound, value)) continue;
    return Error("operand ", i, " must be a scalar or have the dimensions of operand 1 (", Text(value), "), found ",
                 Text(bound));
  }
  out->Set(value);
  return absl::OkStatus();
}

absl::Status InferSelect(const InferenceContext& in, InferredShape* out) {
  for (int64_t i = 0; i < 3; ++i) HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, i));
  const Shape pred = in.operand(0);
  const Shape on_true = in.operand(1);
  const Shape on_false = in.operand(2);
  if (pred.element_type() != ElementType::kPred) return Error("operand 0 must have pred elements, found ", Text(pred));
  if (!ShapesMatch(on_true, on_false, TypeMatch::kIgnoreFpPrecision)) {
    return Error("operands 1 and 2 must have the same shape, found ", Text(on_true), " and ", Text(on_false));
  }
  if (!pred.IsScalar() && (!SameDims(pred, on_true) || !SameDims(pred, on_false))) {
    return Error("operand 0 must be a scalar or have the dimensions of operands 1 and 2 (", Text(on_true), "), found ",
                 Text(pred));
  }
  // The usual case, without merging.
  const bool takes_layout = pred.IsScalar() || !in.layouts || pred.layout() == on_true.layout();
  if (Compatible(on_true, on_false) && takes_layout && !on_true.has_dynamic_dims() && !pred.has_dynamic_dims()) {
    out->Set(on_true);
    return absl::OkStatus();
  }
  out->SetArray(HigherPrecision(on_true.element_type(), on_false.element_type()));
  for (int64_t i = 0; i < on_true.rank(); ++i) {
    if (on_true.is_unbounded(i) || on_false.is_unbounded(i)) {
      out->AddDim(on_true.is_unbounded(i) ? on_false.dim(i) : on_true.dim(i),
                  on_true.is_dynamic(i) && on_false.is_dynamic(i));
    } else {
      out->AddDim(on_true.dim(i), on_true.is_dynamic(i) || on_false.is_dynamic(i) ||
                                      (!pred.IsScalar() && pred.is_dynamic(i) && !pred.is_unbounded(i)));
    }
  }
  // XLA starts with the shape of operand 0 and keeps the element size of operand 1.
  const LayoutRecord* layout = pred.IsScalar() ? on_true.layout() : pred.layout();
  if (in.layouts && !pred.IsScalar() && layout != nullptr && on_true.layout() != nullptr) {
    const LayoutExtras* of_true = on_true.layout()->extras;
    LayoutExtras extras = layout->extras == nullptr ? LayoutExtras() : *layout->extras;
    extras.element_size_in_bits = of_true == nullptr ? 0 : of_true->element_size_in_bits;
    layout = in.shapes().Layout(layout->minor_to_major, extras);
  }
  out->SetLayout(layout);
  return absl::OkStatus();
}

}  // namespace hlokit::inference

// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/type_promotion.h"

#include <utility>

namespace hlokit::lazy {

int ScalarTypeCategory(ElementType t) {
  if (t == ElementType::kPred) return 0;
  if (IsInteger(t)) return 1;
  return IsComplex(t) ? 3 : 2;
}

ElementType TypeOf(Scalar s) {
  switch (s.kind()) {
    case Scalar::Kind::kBool:
      return ElementType::kPred;
    case Scalar::Kind::kInt:
      return ElementType::kS64;
    case Scalar::Kind::kFloat:
      return kDefaultFloat;
  }
  return kDefaultFloat;
}

ElementType Promote(ElementType a, ElementType b) {
  if (a == b) return a;
  const int ca = ScalarTypeCategory(a), cb = ScalarTypeCategory(b);
  if (ca != cb) {
    if (ca < 3 && cb < 3) return ca > cb ? a : b;
    const ElementType complex = ca == 3 ? a : b;
    return (ca == 3 ? b : a) == ElementType::kF64 ? ElementType::kC128 : complex;
  }
  if (ca == 2) {
    // Two types of equal width that do not contain each other: bf16 and f16.
    if (BitsOf(a) == BitsOf(b)) return ElementType::kF32;
    return BitsOf(a) > BitsOf(b) ? a : b;
  }
  if (IsSigned(a) == IsSigned(b)) return BitsOf(a) > BitsOf(b) ? a : b;
  const ElementType s = IsSigned(a) ? a : b;
  const ElementType u = IsSigned(a) ? b : a;
  if (BitsOf(s) > BitsOf(u)) return s;
  switch (BitsOf(u)) {
    case 8:
      return ElementType::kS16;
    case 16:
      return ElementType::kS32;
    default:
      return ElementType::kS64;
  }
}

namespace {

struct TorchType {
  ElementType type;
  std::string_view name;
  int number;
};
constexpr TorchType kTorchTypes[] = {{ElementType::kU8, "Byte", 0},
                                     {ElementType::kS8, "Char", 1},
                                     {ElementType::kS16, "Short", 2},
                                     {ElementType::kS32, "Int", 3},
                                     {ElementType::kS64, "Long", 4},
                                     {ElementType::kF16, "Half", 5},
                                     {ElementType::kF32, "Float", 6},
                                     {ElementType::kF64, "Double", 7},
                                     {ElementType::kC64, "ComplexFloat", 9},
                                     {ElementType::kC128, "ComplexDouble", 10},
                                     {ElementType::kPred, "Bool", 11},
                                     {ElementType::kBF16, "BFloat16", 15},
                                     {ElementType::kF8E5M2, "Float8_e5m2", 23},
                                     {ElementType::kF8E4M3FN, "Float8_e4m3fn", 24},
                                     {ElementType::kF8E5M2FNUZ, "Float8_e5m2fnuz", 25},
                                     {ElementType::kF8E4M3FNUZ, "Float8_e4m3fnuz", 26},
                                     {ElementType::kU16, "UInt16", 27},
                                     {ElementType::kU32, "UInt32", 28},
                                     {ElementType::kU64, "UInt64", 29}};

template <typename Matches>
const TorchType* FindTorchType(Matches matches) {
  for (const TorchType& known : kTorchTypes) {
    if (matches(known)) return &known;
  }
  return nullptr;
}

}  // namespace

std::string_view TorchTypeName(ElementType t) {
  const TorchType* const known = FindTorchType([&](const TorchType& k) { return k.type == t; });
  return known == nullptr ? ToString(t) : known->name;
}

std::optional<ElementType> TypeOfTorchName(std::string_view name) {
  const TorchType* const known = FindTorchType([&](const TorchType& k) { return k.name == name; });
  return known == nullptr ? std::nullopt : std::optional(known->type);
}

int TorchTypeNumber(ElementType t) {
  const TorchType* const known = FindTorchType([&](const TorchType& k) { return k.type == t; });
  return known == nullptr ? -1 : known->number;
}

std::optional<ElementType> TypeOfTorchNumber(int number) {
  const TorchType* const known = FindTorchType([&](const TorchType& k) { return k.number == number; });
  return known == nullptr ? std::nullopt : std::optional(known->type);
}

ElementType ResultTypeState::result() const {
  std::optional<ElementType> type = dims_;
  for (const std::optional<ElementType>& group : {rank0_, number_}) {
    if (!group) continue;
    if (!type) {
      type = group;
    } else if (ScalarTypeCategory(*group) > ScalarTypeCategory(*type)) {
      type = Promote(*type, *group);
    }
  }
  return type.value_or(kDefaultFloat);
}

}  // namespace hlokit::lazy

// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/kernels/arithmetic.h"
#include "interp/exact/kernels/fold.h"
#include "interp/exact/kernels/fold_loops.h"

namespace hlokit::interp {
namespace {

using Known = ScalarFunction::Known;

template <typename T>
FoldFns OfType(Known known) {
  switch (known) {
    case Known::kAdd:
      return MakeFoldFns<arithmetic::Add, T, double>();
    case Known::kMultiply:
      return MakeFoldFns<arithmetic::Multiply, T, double>();
    case Known::kMinimum:
      return MakeFoldFns<arithmetic::Minimum, T>();
    case Known::kMaximum:
      return MakeFoldFns<arithmetic::Maximum, T>();
    case Known::kAnd:
    case Known::kOr:
    case Known::kXor:
    case Known::kNone:
    case Known::kFirst:
    case Known::kSecond:
      break;
  }
  return {};
}

}  // namespace

FoldFns FloatFoldFns(Known known, ElementType type) {
  return type == ElementType::kF64 ? OfType<double>(known) : OfType<float>(known);
}

FoldFns FoldFnsOf(Known known, ElementType type) {
  if (IsFloat(type)) return FloatFoldFns(known, ComputeType(type));
  if (IsInteger(type)) return IntegerFoldFns(known, ComputeType(type));
  if (type != ElementType::kPred) return {};
  // pred: + is or, * is and; min and max are theirs anyway.
  if (known == Known::kAdd) known = Known::kOr;
  if (known == Known::kMultiply) known = Known::kAnd;
  return IntegerFoldFns(known, ElementType::kU8);
}

}  // namespace hlokit::interp

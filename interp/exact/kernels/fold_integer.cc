// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "interp/exact/kernels/arithmetic.h"
#include "interp/exact/kernels/fold.h"
#include "interp/exact/kernels/fold_loops.h"

namespace hlokit::interp {
namespace {

using Known = ScalarFunction::Known;

// What does not depend on the sign is instantiated for unsigned types only.
template <typename Unsigned>
FoldFns OfWidth(Known known, bool is_signed) {
  using Signed = std::make_signed_t<Unsigned>;
  switch (known) {
    case Known::kAdd:
      return MakeFoldFns<arithmetic::Add, Unsigned>();
    case Known::kMultiply:
      return MakeFoldFns<arithmetic::Multiply, Unsigned>();
    case Known::kMinimum:
      return is_signed ? MakeFoldFns<arithmetic::Minimum, Signed>() : MakeFoldFns<arithmetic::Minimum, Unsigned>();
    case Known::kMaximum:
      return is_signed ? MakeFoldFns<arithmetic::Maximum, Signed>() : MakeFoldFns<arithmetic::Maximum, Unsigned>();
    case Known::kAnd:
      return MakeFoldFns<arithmetic::And, Unsigned>();
    case Known::kOr:
      return MakeFoldFns<arithmetic::Or, Unsigned>();
    case Known::kXor:
      return MakeFoldFns<arithmetic::Xor, Unsigned>();
    case Known::kNone:
    case Known::kFirst:
    case Known::kSecond:
      break;
  }
  return {};
}

}  // namespace

FoldFns IntegerFoldFns(Known known, ElementType type) {
  switch (BytesOf(type)) {
    case 1:
      return OfWidth<uint8_t>(known, IsSigned(type));
    case 2:
      return OfWidth<uint16_t>(known, IsSigned(type));
    case 4:
      return OfWidth<uint32_t>(known, IsSigned(type));
    case 8:
      return OfWidth<uint64_t>(known, IsSigned(type));
    default:
      return {};
  }
}

}  // namespace hlokit::interp

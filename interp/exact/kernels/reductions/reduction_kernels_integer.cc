// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "interp/exact/kernels/arithmetic.h"
#include "interp/exact/kernels/reductions/reduction_kernels.h"
#include "interp/exact/kernels/reductions/reduction_kernels_loops.h"

namespace hlokit::interp {
namespace {

using Known = ScalarFunction::RecognizedOp;

// Functions that do not depend on the sign are instantiated for unsigned types only.
template <typename Unsigned>
ReductionKernels OfWidth(Known known, bool is_signed) {
  using Signed = std::make_signed_t<Unsigned>;
  switch (known) {
    case Known::kAdd:
      return MakeReductionKernels<arithmetic::Add, Unsigned>();
    case Known::kMultiply:
      return MakeReductionKernels<arithmetic::Multiply, Unsigned>();
    case Known::kMinimum:
      return is_signed ? MakeReductionKernels<arithmetic::Minimum, Signed>()
                       : MakeReductionKernels<arithmetic::Minimum, Unsigned>();
    case Known::kMaximum:
      return is_signed ? MakeReductionKernels<arithmetic::Maximum, Signed>()
                       : MakeReductionKernels<arithmetic::Maximum, Unsigned>();
    case Known::kAnd:
      return MakeReductionKernels<arithmetic::And, Unsigned>();
    case Known::kOr:
      return MakeReductionKernels<arithmetic::Or, Unsigned>();
    case Known::kXor:
      return MakeReductionKernels<arithmetic::Xor, Unsigned>();
    case Known::kNone:
    case Known::kFirst:
    case Known::kSecond:
      break;
  }
  return {};
}

}  // namespace

ReductionKernels IntegerReductionKernels(Known known, ElementType type) {
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

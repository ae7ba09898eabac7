// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/kernels/arithmetic.h"
#include "interp/exact/kernels/reductions/reduction_kernels.h"
#include "interp/exact/kernels/reductions/reduction_kernels_loops.h"

namespace hlokit::interp {
namespace {

using Known = ScalarFunction::RecognizedOp;

template <typename T>
ReductionKernels OfType(Known known) {
  switch (known) {
    case Known::kAdd:
      return MakeReductionKernels<arithmetic::Add, T, double>();
    case Known::kMultiply:
      return MakeReductionKernels<arithmetic::Multiply, T, double>();
    case Known::kMinimum:
      return MakeReductionKernels<arithmetic::Minimum, T>();
    case Known::kMaximum:
      return MakeReductionKernels<arithmetic::Maximum, T>();
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

ReductionKernels FloatReductionKernels(Known known, ElementType type) {
  return type == ElementType::kF64 ? OfType<double>(known) : OfType<float>(known);
}

ReductionKernels ReductionKernelsOf(Known known, ElementType type) {
  if (IsFloat(type)) return FloatReductionKernels(known, ComputeType(type));
  if (IsInteger(type)) return IntegerReductionKernels(known, ComputeType(type));
  if (type != ElementType::kPred) return {};
  // pred: + is or, * is and; min and max are those too.
  if (known == Known::kAdd) known = Known::kOr;
  if (known == Known::kMultiply) known = Known::kAnd;
  return IntegerReductionKernels(known, ElementType::kU8);
}

}  // namespace hlokit::interp

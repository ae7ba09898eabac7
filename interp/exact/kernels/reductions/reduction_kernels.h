// SPDX-License-Identifier: Apache-2.0
// Typed inner loops of reductions with a recognized function, shared by reduce, reduce-window and scan.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_REDUCTION_KERNELS_H_
#define HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_REDUCTION_KERNELS_H_

#include <cstdint>

#include "interp/exact/builder/scalar_function.h"
#include "ir/types/element_type.h"

namespace hlokit::interp {

// Distances in elements.
struct ScanStrides {
  int64_t line, element;
};
inline constexpr int64_t kScanLines = 8;

// Kernels for one function and compute type. Values have the compute type; accumulators may be wider: double for sums
// and products of floats.
struct ReductionKernels {
  int64_t value_bytes = 0;
  int64_t accumulator_bytes = 0;
  // acc[i] = *value
  void (*init)(void* acc, const void* value, int64_t n) = nullptr;
  // acc[i] = f(acc[i], x[i])
  void (*accumulate_row)(void* acc, const void* x, int64_t n) = nullptr;
  // *acc = f(f(*acc, x[0]), x[stride]) ..., reassociated as a function of n alone
  void (*accumulate_strided)(void* acc, const void* x, int64_t stride, int64_t n) = nullptr;
  // acc[i] = f(acc[i], other[i]), both accumulators
  void (*combine)(void* acc, const void* other, int64_t n) = nullptr;
  // to[i] = acc[i], rounded to the compute type
  void (*finalize)(void* to, const void* acc, int64_t n) = nullptr;
  // Of each of up to kScanLines lines: acc = f(acc, x[i]), to[i] = acc rounded, for i < n.
  void (*scan)(void* acc, const void* x, ScanStrides from, void* to, ScanStrides result, int64_t lines,
               int64_t n) = nullptr;
};

// Returns null functions if there are none for this pair.
ReductionKernels ReductionKernelsOf(ScalarFunction::RecognizedOp known, ElementType type);

// Returns the kernels for one kind of compute types.
ReductionKernels IntegerReductionKernels(ScalarFunction::RecognizedOp known, ElementType compute_type);
ReductionKernels FloatReductionKernels(ScalarFunction::RecognizedOp known, ElementType compute_type);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_REDUCTION_KERNELS_H_

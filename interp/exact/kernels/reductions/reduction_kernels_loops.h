// SPDX-License-Identifier: Apache-2.0
// Loops of ReductionKernels for one function, value type and accumulator type.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_REDUCTION_KERNELS_LOOPS_H_
#define HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_REDUCTION_KERNELS_LOOPS_H_

#include <algorithm>
#include <cstdint>

#include "interp/exact/kernels/element_loop.h"
#include "interp/exact/kernels/reductions/reduction_kernels.h"

namespace hlokit::interp {

template <typename T, typename A>
void FoldStart(void* acc, const void* value, int64_t n) {
  std::fill_n(static_cast<A*>(acc), n, static_cast<A>(*static_cast<const T*>(value)));
}

template <typename Op, typename T, typename A>
void FoldRow(void* acc, const void* x, int64_t n) {
  A* a = static_cast<A*>(acc);
  const T* v = static_cast<const T*>(x);
  ForEachElement(n, [=](int64_t i) { a[i] = Op::Apply(a[i], static_cast<A>(v[i])); });
}

// Uses eight accumulators to hide latency: value i goes to accumulator i mod 8, and they are combined in a fixed order.
template <typename Op, typename T, typename A>
void FoldLine(void* acc, const void* values, int64_t stride, int64_t n) {
  A& result = *static_cast<A*>(acc);
  const T* x = static_cast<const T*>(values);
  if (n < 16) {
    for (int64_t i = 0; i < n; ++i) result = Op::Apply(result, static_cast<A>(x[i * stride]));
    return;
  }
  A lanes[8];
  for (int k = 0; k < 8; ++k) lanes[k] = static_cast<A>(x[k * stride]);
  int64_t i = 8;
  if (stride == 1) {
    for (; i + 8 <= n; i += 8) {
      for (int k = 0; k < 8; ++k) lanes[k] = Op::Apply(lanes[k], static_cast<A>(x[i + k]));
    }
  } else {
    for (; i + 8 <= n; i += 8) {
      for (int k = 0; k < 8; ++k) lanes[k] = Op::Apply(lanes[k], static_cast<A>(x[(i + k) * stride]));
    }
  }
  for (; i < n; ++i) lanes[i % 8] = Op::Apply(lanes[i % 8], static_cast<A>(x[i * stride]));
  for (int k = 0; k < 8; ++k) result = Op::Apply(result, lanes[k]);
}

template <typename Op, typename A>
void FoldJoin(void* acc, const void* other, int64_t n) {
  A* a = static_cast<A*>(acc);
  const A* b = static_cast<const A*>(other);
  ForEachElement(n, [=](int64_t i) { a[i] = Op::Apply(a[i], b[i]); });
}

template <typename T, typename A>
void FoldFinish(void* to, const void* acc, int64_t n) {
  T* r = static_cast<T*>(to);
  const A* a = static_cast<const A*>(acc);
  for (int64_t i = 0; i < n; ++i) r[i] = static_cast<T>(a[i]);
}

// Several lines side by side hide the latency of an operation.
template <typename Op, typename T, typename A>
void ScanLines(void* acc, const void* values, ScanStrides from, void* results, ScanStrides to, int64_t lines,
               int64_t n) {
  A* a = static_cast<A*>(acc);
  const T* x = static_cast<const T*>(values);
  T* r = static_cast<T*>(results);
  if (lines == kScanLines) {
    A held[kScanLines];
    std::copy_n(a, kScanLines, held);
    for (int64_t i = 0; i < n; ++i, x += from.element, r += to.element) {
#pragma GCC unroll 8
      for (int64_t k = 0; k < kScanLines; ++k) {
        held[k] = Op::Apply(held[k], static_cast<A>(x[k * from.line]));
        r[k * to.line] = static_cast<T>(held[k]);
      }
    }
    std::copy_n(held, kScanLines, a);
    return;
  }
  for (int64_t k = 0; k < lines; ++k) {
    for (int64_t i = 0; i < n; ++i) {
      a[k] = Op::Apply(a[k], static_cast<A>(x[k * from.line + i * from.element]));
      r[k * to.line + i * to.element] = static_cast<T>(a[k]);
    }
  }
}

template <typename Op, typename T, typename A = T>
ReductionKernels MakeReductionKernels() {
  return {sizeof(T),          sizeof(A),       FoldStart<T, A>,  FoldRow<Op, T, A>,
          FoldLine<Op, T, A>, FoldJoin<Op, A>, FoldFinish<T, A>, ScanLines<Op, T, A>};
}

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_REDUCTION_KERNELS_LOOPS_H_

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

template <typename Op, typename T, typename A = T>
ReductionKernels MakeReductionKernels() {
  return {sizeof(T),          sizeof(A),       FoldStart<T, A>, FoldRow<Op, T, A>,
          FoldLine<Op, T, A>, FoldJoin<Op, A>, FoldFinish<T, A>};
}

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_REDUCTION_KERNELS_LOOPS_H_

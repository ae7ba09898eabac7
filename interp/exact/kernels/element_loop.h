// SPDX-License-Identifier: Apache-2.0
// Loops over contiguous elements that compilers vectorize at -O2: a constant inner trip count, and no dependence
// between elements (even if the result overwrites an operand).
#ifndef HLOKIT_INTERP_EXACT_KERNELS_ELEMENT_LOOP_H_
#define HLOKIT_INTERP_EXACT_KERNELS_ELEMENT_LOOP_H_

#include <cstdint>

#include "interp/exact/program/element_op.h"

#if defined(__clang__)
#define HLOKIT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define HLOKIT_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace hlokit::interp {

template <typename F>
inline void ForEachElement(int64_t n, F f) {
  constexpr int64_t kChunk = 64;
  int64_t i = 0;
  for (; i + kChunk <= n; i += kChunk) {
    HLOKIT_INDEPENDENT
    for (int64_t j = 0; j < kChunk; ++j) f(i + j);
  }
  for (; i < n; ++i) f(i);
}

// Applies Op::Apply(T) -> R.
template <typename Op, typename T, typename R = T>
void UnaryLoop(void* out, const void* a, const void*, const void*, int64_t n, int64_t) {
  R* r = static_cast<R*>(out);
  const T* x = static_cast<const T*>(a);
  ForEachElement(n, [=](int64_t i) { r[i] = Op::Apply(x[i]); });
}

// Applies Op::Apply(T, T) -> R.
template <typename Op, typename T, typename R = T>
void BinaryLoop(void* out, const void* a, const void* b, const void*, int64_t n, int64_t) {
  R* r = static_cast<R*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  ForEachElement(n, [=](int64_t i) { r[i] = Op::Apply(x[i], y[i]); });
}

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_ELEMENT_LOOP_H_

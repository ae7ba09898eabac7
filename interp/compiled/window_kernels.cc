// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/window_kernels.h"

namespace hlokit::interp::compiled {
namespace {

namespace sse4 {
#define HLOKIT_TARGET
#define HLOKIT_EVEN (Ints{0, 2, 4, 6})
constexpr int kLanes = 4;
#include "interp/compiled/window_kernels_isa.h"
#undef HLOKIT_TARGET
#undef HLOKIT_EVEN
}  // namespace sse4

#if defined(__x86_64__)
namespace avx2 {
#define HLOKIT_TARGET __attribute__((target("avx2")))
#define HLOKIT_EVEN (Ints{0, 2, 4, 6, 8, 10, 12, 14})
constexpr int kLanes = 8;
#include "interp/compiled/window_kernels_isa.h"
#undef HLOKIT_TARGET
#undef HLOKIT_EVEN
}  // namespace avx2

namespace avx512 {
#define HLOKIT_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")))
#define HLOKIT_EVEN (Ints{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30})
constexpr int kLanes = 16;
#include "interp/compiled/window_kernels_isa.h"
#undef HLOKIT_TARGET
#undef HLOKIT_EVEN
}  // namespace avx512
#endif

}  // namespace

const WindowKernels& WindowKernelsOf(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return avx512::kKernels;
  if (set == InstructionSet::kAvx2) return avx2::kKernels;
#else
  (void)set;
#endif
  return sse4::kKernels;
}

}  // namespace hlokit::interp::compiled

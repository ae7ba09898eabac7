// SPDX-License-Identifier: Apache-2.0
#include "bench/engine/machine.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <sys/mman.h>
#include <time.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace hlokit::bench {
namespace {

constexpr size_t kLargePage = size_t{2} << 20;

// As the engine's large blocks: in pages of 2 MiB, each of which is there.
std::unique_ptr<float, void (*)(void*)> Floats(size_t count) {
  const size_t bytes = (count * sizeof(float) + kLargePage - 1) / kLargePage * kLargePage;
  auto* const data = static_cast<float*>(std::aligned_alloc(kLargePage, bytes));
  if (data == nullptr) std::abort();
  madvise(data, bytes, MADV_HUGEPAGE);
  for (size_t i = 0; i < count; ++i) data[i] = 1;
  return {data, std::free};
}

constexpr int kSums = 12;  // hide the latency of an instruction
constexpr int kRounds = 200'000;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void Copy512(const float* from, float* to, size_t count) {
  for (size_t i = 0; i < count; i += 16) _mm512_store_ps(to + i, _mm512_load_ps(from + i));
}

__attribute__((target("avx"))) void Copy256(const float* from, float* to, size_t count) {
  for (size_t i = 0; i < count; i += 8) _mm256_store_ps(to + i, _mm256_load_ps(from + i));
}

__attribute__((target("avx512f"))) float MultiplyAdd512() {
  __m512 sums[kSums];
  for (__m512& sum : sums) sum = _mm512_set1_ps(1);
  const __m512 factor = _mm512_set1_ps(0.5f), offset = _mm512_set1_ps(0.25f);
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, offset);
  }
  for (const __m512& sum : sums) sums[0] = _mm512_add_ps(sums[0], sum);
  return sums[0][0];
}

__attribute__((target("avx2,fma"))) float MultiplyAdd256() {
  __m256 sums[kSums];
  for (__m256& sum : sums) sum = _mm256_set1_ps(1);
  const __m256 factor = _mm256_set1_ps(0.5f), offset = _mm256_set1_ps(0.25f);
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, offset);
  }
  for (const __m256& sum : sums) sums[0] = _mm256_add_ps(sums[0], sum);
  return sums[0][0];
}

const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0;
constexpr int kLanes256 = 8;
#else
constexpr bool has_avx512 = false;
constexpr int kLanes256 = 1;

void Copy256(const float* from, float* to, size_t count) { std::memcpy(to, from, count * sizeof(float)); }
void Copy512(const float* from, float* to, size_t count) { Copy256(from, to, count); }

float MultiplyAdd256() {
  float sums[kSums] = {};
  for (int i = 0; i < kRounds; ++i) {
    for (float& sum : sums) sum = sum * 0.5f + 0.25f;
  }
  return sums[0];
}
float MultiplyAdd512() { return MultiplyAdd256(); }
#endif

}  // namespace

double Milliseconds(int threads) {
  timespec t;
  clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

void InThreads(int threads, const std::function<void(int)>& work) {
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& other : others) other.join();
}

Copy::Copy(int64_t bytes)
    : floats_((static_cast<size_t>(bytes) / (2 * sizeof(float)) + 15) / 16 * 16),
      from_(Floats(floats_)),
      to_(Floats(floats_)) {}

void Copy::Run(int threads) {
  InThreads(threads, [&](int i) {
    const size_t parts = static_cast<size_t>(threads), vectors = floats_ / 16;
    const size_t begin = vectors * static_cast<size_t>(i) / parts * 16;
    const size_t end = vectors * static_cast<size_t>(i + 1) / parts * 16;
    (has_avx512 ? Copy512 : Copy256)(from_.get() + begin, to_.get() + begin, end - begin);
  });
}

double MultiplyAdd(int threads) {
  InThreads(threads, [](int) {
    volatile float used = has_avx512 ? MultiplyAdd512() : MultiplyAdd256();
    static_cast<void>(used);
  });
  return 2.0 * kSums * kRounds * (has_avx512 ? 16 : kLanes256);
}

}  // namespace hlokit::bench

// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/kernels/contractions/matrix_product.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

#include "interp/exact/program/element_width.h"
#include "interp/processor/instruction_set.h"
#include "ir/graph/module.h"

#if defined(__clang__)
#define HLOKIT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HLOKIT_UNROLL _Pragma("GCC unroll 16")
#endif

namespace hlokit::interp {
namespace {

// ---- micro-kernels: a kRows x kColumns tile of C in registers ----

// Adds the sum of `k` packed products to the tile `c` (row stride `ldc`).
using MicroFn = void (*)(int64_t k, const std::byte* a, const std::byte* b, std::byte* c, int64_t ldc);

struct MicroKernel {
  int64_t rows;
  int64_t columns;
  MicroFn fn;
};

// Computes a tile; shared by all instruction sets. kLanes is the number of elements of a vector register.
template <typename T, int kRows, int kVectors, int kLanes>
[[gnu::always_inline]] inline void TileBody(int64_t k, const std::byte* a_bytes, const std::byte* b_bytes,
                                            std::byte* c_bytes, int64_t ldc) {
  typedef T Vector __attribute__((vector_size(kLanes * sizeof(T)), aligned(sizeof(T)), may_alias));
  const T* a = reinterpret_cast<const T*>(a_bytes);
  const T* b = reinterpret_cast<const T*>(b_bytes);
  T* c = reinterpret_cast<T*>(c_bytes);
  Vector sums[kRows][kVectors];
  HLOKIT_UNROLL
  for (int i = 0; i < kRows; ++i) {
    HLOKIT_UNROLL
    for (int j = 0; j < kVectors; ++j) sums[i][j] = Vector{};
  }
  for (int64_t p = 0; p < k; ++p) {
    Vector columns[kVectors];
    HLOKIT_UNROLL
    for (int j = 0; j < kVectors; ++j) columns[j] = *reinterpret_cast<const Vector*>(b + j * kLanes);
    HLOKIT_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const T row = a[i];
      HLOKIT_UNROLL
      for (int j = 0; j < kVectors; ++j) sums[i][j] += columns[j] * row;
    }
    a += kRows;
    b += kVectors * kLanes;
  }
  HLOKIT_UNROLL
  for (int i = 0; i < kRows; ++i) {
    HLOKIT_UNROLL
    for (int j = 0; j < kVectors; ++j) *reinterpret_cast<Vector*>(c + i * ldc + j * kLanes) += sums[i][j];
  }
}

template <typename T, int kRows, int kVectors>
void BaselineTile(int64_t k, const std::byte* a, const std::byte* b, std::byte* c, int64_t ldc) {
  TileBody<T, kRows, kVectors, 16 / sizeof(T)>(k, a, b, c, ldc);
}
#if defined(__x86_64__)
// Computes a tile with wider vectors and the same operations: a fused multiply-add would round once, not twice.
template <typename T, int kRows, int kVectors>
__attribute__((target("avx2"))) void Avx2Tile(int64_t k, const std::byte* a, const std::byte* b, std::byte* c,
                                              int64_t ldc) {
  TileBody<T, kRows, kVectors, 32 / sizeof(T)>(k, a, b, c, ldc);
}
template <typename T, int kRows, int kVectors>
__attribute__((target("avx512f"))) void Avx512Tile(int64_t k, const std::byte* a, const std::byte* b, std::byte* c,
                                                   int64_t ldc) {
  TileBody<T, kRows, kVectors, 64 / sizeof(T)>(k, a, b, c, ldc);
}
#endif

template <typename C>
void ComplexTile(int64_t k, const std::byte* a_bytes, const std::byte* b_bytes, std::byte* c_bytes, int64_t ldc) {
  const C* a = reinterpret_cast<const C*>(a_bytes);
  const C* b = reinterpret_cast<const C*>(b_bytes);
  C* c = reinterpret_cast<C*>(c_bytes);
  C sums[4][4] = {};
  for (int64_t p = 0; p < k; ++p, a += 4, b += 4) {
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) sums[i][j] += a[i] * b[j];
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) c[i * ldc + j] += sums[i][j];
  }
}

template <typename T>
MicroKernel RealKernel() {
#if defined(__x86_64__)
  if constexpr (std::is_floating_point_v<T>) {
    if (HostInstructionSet() == InstructionSet::kAvx512) return {12, 2 * 64 / sizeof(T), Avx512Tile<T, 12, 2>};
  }
  if (HostInstructionSet() >= InstructionSet::kAvx2) return {6, 2 * 32 / sizeof(T), Avx2Tile<T, 6, 2>};
#endif
  return {4, 2 * 16 / sizeof(T), BaselineTile<T, 4, 2>};
}

MicroKernel KernelFor(ElementType accumulator) {
  if (accumulator == ElementType::kF32) return RealKernel<float>();
  if (accumulator == ElementType::kF64) return RealKernel<double>();
  if (accumulator == ElementType::kU64) return RealKernel<uint64_t>();
  if (accumulator == ElementType::kC64) return {4, 4, ComplexTile<std::complex<float>>};
  if (accumulator == ElementType::kC128) return {4, 4, ComplexTile<std::complex<double>>};
  return RealKernel<uint32_t>();
}

// The largest blocks of a thread: a block of B stays in the second-level cache while rows of A stream by.
constexpr int64_t kBlockM = 384;
constexpr int64_t kBlockN = 512;
constexpr int64_t kBlockK = 256;
// Products summed in one run. The error of a sum grows with the length of a run and with the number of runs; both stay
// small at the cost of one more addition in 64. Short sums are one run.
constexpr int64_t kWholeK = 128;
constexpr int64_t kRunK = 64;
static_assert(kBlockK % kRunK == 0 && kWholeK <= kBlockK);

int64_t RoundUp(int64_t v, int64_t to) { return (v + to - 1) / to * to; }

// C in blocks of m x n, as even as tiles allow, and enough of them for all threads if the work is worth the dispatch.
// The block boundaries do not change the order of an element's sum, so they may depend on the number of threads.
struct BlockSizes {
  int64_t m;
  int64_t n;
};
BlockSizes PartitionIntoBlocks(const ProductShape& shape, const MicroKernel& kernel, int threads) {
  constexpr double kWorthwhile = 3e6;  // in products
  const double products = static_cast<double>(shape.batch) * static_cast<double>(shape.m) *
                          static_cast<double>(shape.n) * static_cast<double>(shape.k);
  const int64_t wanted = threads == 1 ? 1 : static_cast<int64_t>(std::min(2.0 * threads, products / kWorthwhile));
  int64_t rows = (shape.m + kBlockM - 1) / kBlockM;
  int64_t columns = (shape.n + kBlockN - 1) / kBlockN;
  while (shape.batch * rows * columns < wanted) {
    const bool cut_rows = shape.m / rows >= shape.n / columns;
    int64_t& cut = cut_rows ? rows : columns;
    if ((cut_rows ? shape.m / kernel.rows : shape.n / kernel.columns) < 2 * cut) break;
    ++cut;
  }
  return {RoundUp((shape.m + rows - 1) / rows, kernel.rows),
          RoundUp((shape.n + columns - 1) / columns, kernel.columns)};
}

}  // namespace

ElementType AccumulatorType(ElementType result) {
  if (IsComplex(result)) return result;
  if (IsFloat(result)) return result == ElementType::kF64 ? result : ElementType::kF32;
  return BitsOf(result) == 64 ? ElementType::kU64 : ElementType::kU32;
}

void MultiplyMatrices(const ProductShape& shape, const PanelSource& a, const PanelSource& b, ElementType result_type,
                      std::byte* out, RunContext& context) {
  const ElementType accumulator = AccumulatorType(result_type);
  const int64_t bytes = BytesOf(accumulator);
  const int64_t out_bytes = BytesOf(result_type);
  const MicroKernel kernel = KernelFor(accumulator);
  if (shape.batch == 0 || shape.m == 0 || shape.n == 0) return;
  const BlockSizes block = PartitionIntoBlocks(shape, kernel, context.threads());
  const int64_t blocks_m = (shape.m + block.m - 1) / block.m;
  const int64_t blocks_n = (shape.n + block.n - 1) / block.n;
  const int64_t max_k = std::min(shape.k, kBlockK);
  const int64_t run_k = shape.k <= kWholeK ? kWholeK : kRunK;
  std::string error;
  ElementOp convert;
  const bool converts = accumulator != result_type;
  if (converts) {
    // Conversions do not use module attributes.
    static const Module* const no_module = new Module();
    const std::optional<ElementOp> made =
        ElementOp::Create(Opcode::kConvert, AttrReader(*no_module, {}), {&accumulator, 1}, result_type, &error);
    if (!made) return context.Fail(std::move(error));
    convert = *made;
  }

  const double block_cost =
      static_cast<double>(block.m) * static_cast<double>(block.n) * static_cast<double>(shape.k) * 0.06;
  context.ParallelFor(shape.batch * blocks_m * blocks_n, block_cost + 1000, [&](int64_t begin, int64_t end) {
    const size_t a_bytes = static_cast<size_t>(RoundUp(block.m * max_k * bytes, 64));
    const size_t b_bytes = static_cast<size_t>(RoundUp(block.n * max_k * bytes, 64));
    const size_t c_bytes = static_cast<size_t>(block.m * block.n * bytes);
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(a_bytes + b_bytes + c_bytes);
    std::byte* packed_a = memory.get();
    std::byte* packed_b = packed_a + a_bytes;
    std::byte* c = packed_b + b_bytes;
    int64_t b_key = -1;  // contents of packed_b, if one block of k covers all of k
    for (int64_t item = begin; item < end; ++item) {
      // Rows vary fastest, so that consecutive blocks share their block of B.
      const int64_t m_begin = item % blocks_m * block.m;
      const int64_t n_begin = item / blocks_m % blocks_n * block.n;
      const int64_t batch = item / (blocks_m * blocks_n);
      const int64_t m = std::min(block.m, shape.m - m_begin);
      const int64_t n = std::min(block.n, shape.n - n_begin);
      const int64_t ldc = RoundUp(n, kernel.columns);
      std::memset(c, 0, static_cast<size_t>(RoundUp(m, kernel.rows) * ldc * bytes));
      for (int64_t k_begin = 0; k_begin < shape.k; k_begin += kBlockK) {
        if ((k_begin != 0 || item != begin) && context.ShouldStop()) return;
        const int64_t k = std::min(kBlockK, shape.k - k_begin);
        a.Pack(batch, m_begin, m, k_begin, k, kernel.rows, packed_a);
        const int64_t key = item / blocks_m;
        if (shape.k > kBlockK || b_key != key) {
          b.Pack(batch, n_begin, n, k_begin, k, kernel.columns, packed_b);
          b_key = key;
        }
        for (int64_t j = 0; j < n; j += kernel.columns) {
          for (int64_t i = 0; i < m; i += kernel.rows) {
            for (int64_t run = 0; run < k; run += run_k) {
              kernel.fn(std::min(run_k, k - run), packed_a + (i * k + run * kernel.rows) * bytes,
                        packed_b + (j * k + run * kernel.columns) * bytes, c + (i * ldc + j) * bytes, ldc);
            }
          }
        }
      }
      constexpr int64_t kOnes[ElementOp::kMaxOperands] = {1, 1, 1};
      for (int64_t i = 0; i < m; ++i) {
        std::byte* to = out + ((batch * shape.m + m_begin + i) * shape.n + n_begin) * out_bytes;
        const std::byte* from[ElementOp::kMaxOperands] = {c + i * ldc * bytes};
        if (converts) {
          convert.Run(to, from, kOnes, n);
        } else {
          std::memcpy(to, from[0], static_cast<size_t>(n * bytes));
        }
      }
    }
  });
}

bool OperandConversion::Init(ElementType operand, ElementType result) {
  from_bytes_ = BytesOf(operand);
  const ElementType accumulator = AccumulatorType(result);
  to_bytes_ = BytesOf(accumulator);
  static const Module* const no_module = new Module();
  std::string error;
  count_ = 0;
  ElementType at = operand;
  for (ElementType next : {result, accumulator}) {
    // Integers of one width have the same bytes.
    const bool same_bytes = at == next || (IsInteger(at) && IsInteger(next) && BitsOf(at) == BitsOf(next));
    if (!same_bytes) {
      const std::optional<ElementOp> op =
          ElementOp::Create(Opcode::kConvert, AttrReader(*no_module, {}), {&at, 1}, next, &error);
      if (!op) return false;
      ops_[count_++] = *op;
    }
    at = next;
  }
  return true;
}

void OperandConversion::Run(std::byte* to, const std::byte* from, int64_t n) const {
  constexpr int64_t kOnes[ElementOp::kMaxOperands] = {1, 1, 1};
  if (count_ == 0) {
    std::memcpy(to, from, static_cast<size_t>(n * to_bytes_));
    return;
  }
  const std::byte* in[ElementOp::kMaxOperands] = {from};
  if (count_ == 1) {
    ops_[0].Run(to, in, kOnes, n);
    return;
  }
  alignas(16) std::byte middle[ElementOp::kBlock * 16];
  ops_[0].Run(middle, in, kOnes, n);
  in[0] = middle;
  ops_[1].Run(to, in, kOnes, n);
}

void GatherConvert(const OperandConversion& conversion, const std::byte* base, const int64_t* offsets, int64_t n,
                   std::byte* to) {
  alignas(16) std::byte raw[ElementOp::kBlock * 16];
  for (int64_t begin = 0; begin < n; begin += ElementOp::kBlock) {
    const int64_t count = std::min(ElementOp::kBlock, n - begin);
    const int64_t* at = offsets + begin;
    std::byte* target = to + begin * conversion.to_bytes();
    bool contiguous = true;
    for (int64_t i = 1; i < count && contiguous; ++i) contiguous = at[i] == at[i - 1] + 1;
    if (contiguous) {
      conversion.Run(target, base + at[0] * conversion.from_bytes(), count);
      continue;
    }
    std::byte* gathered = conversion.identity() ? target : raw;
    VisitWidth(conversion.from_bytes(), [&]<typename T>(T) {
      const T* from = reinterpret_cast<const T*>(base);
      T* r = reinterpret_cast<T*>(gathered);
      for (int64_t i = 0; i < count; ++i) r[i] = from[at[i]];
    });
    if (!conversion.identity()) conversion.Run(target, raw, count);
  }
}

}  // namespace hlokit::interp

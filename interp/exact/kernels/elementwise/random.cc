// SPDX-License-Identifier: Apache-2.0
// Random numbers.
//
// rng-bit-generator produces the same bits and final state as XLA's expansion: ThreeFry-2x32 with 20 rounds and
// Philox-4x32 with 10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). rng_default is Philox.
//
// rng has no defined values. Here the i-th element of the k-th rng that a run executes uses the Philox block with key =
// seed of the run and counter = (i, k): uniform floats are a + u (b - a) with u of 24 (f64: 53) random bits, uniform
// integers a + bits mod (b - a), normal ones the cosine branch of the Box-Muller transform.
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "interp/custom_calls/real_values.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/kernels/index_operand.h"
#include "interp/exact/machine/run_context.h"
#include "ir/core/str_cat.h"
#include "ir/ops/attribute.h"

namespace hlokit::interp {
namespace {

using Block2 = std::array<uint32_t, 2>;
using Block4 = std::array<uint32_t, 4>;

Block2 Words(uint64_t v) { return {static_cast<uint32_t>(v), static_cast<uint32_t>(v >> 32)}; }
uint64_t Join(uint32_t low, uint32_t high) { return low | uint64_t{high} << 32; }

Block2 ThreeFry(Block2 x, Block2 key) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t keys[3] = {key[0], key[1], 0x1bd11bda ^ key[0] ^ key[1]};
  x[0] += keys[0];
  x[1] += keys[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : kRotations[group % 2]) {
      x[0] += x[1];
      x[1] = (x[1] << rotation | x[1] >> (32 - rotation)) ^ x[0];
    }
    x[0] += keys[(group + 1) % 3];
    x[1] += keys[(group + 2) % 3] + group + 1;
  }
  return x;
}

Block4 Philox(Block4 x, Block2 key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{x[0]} * 0xd2511f53;
    const uint64_t b = uint64_t{x[2]} * 0xcd9e8d57;
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
  }
  return x;
}

struct BitGeneratorParams : ThunkParams {
  bool three_fry = false;
  int64_t state_words = 2;  // of 64 bits
  int64_t count = 0;
  int64_t bytes = 4;
  // ThreeFry produces pairs of 32-bit numbers. They are neighbors in dimension `split`, which counts as rounded up to
  // an even size.
  int64_t before = 1, split = 1, after = 1;
};

void Store(std::byte* out, int64_t i, int64_t bytes, uint64_t bits) {
  std::memcpy(out + i * bytes, &bits, static_cast<size_t>(bytes));  // little endian: the low bytes
}

void RunBitGenerator(const BitGeneratorParams& p, const std::byte* const* in, std::byte* const* out,
                     RunContext& context) {
  uint64_t state[3] = {};
  std::memcpy(state, in[0], static_cast<size_t>(p.state_words * 8));
  const Block2 key = Words(state[0]);
  if (p.three_fry) {
    int64_t blocks;
    if (p.bytes == 8) {
      blocks = p.count;
      context.ForEach(p.count, 10, [&](int64_t i) {
        const Block2 r = ThreeFry(Words(state[1] + static_cast<uint64_t>(i)), key);
        Store(out[1], i, 8, Join(r[0], r[1]));
      });
    } else {
      const int64_t half = (p.split + 1) / 2;
      blocks = p.before * half * p.after;
      context.ForEach(blocks, 10, [&](int64_t i) {
        const Block2 r = ThreeFry(Words(state[1] + static_cast<uint64_t>(i)), key);
        const int64_t after = i % p.after;
        const int64_t place = i / p.after % half;
        const int64_t before = i / (p.after * half);
        for (int64_t j = 0; j < 2 && 2 * place + j < p.split; ++j) {
          Store(out[1], (before * p.split + 2 * place + j) * p.after + after, p.bytes, r[j]);
        }
      });
    }
    state[1] += static_cast<uint64_t>(blocks);
  } else {
    // The counter has 128 bits. A state of two words contains the key, which is also the high half, and the low half.
    uint64_t low = state[1];
    uint64_t high = p.state_words >= 3 ? state[2] : state[0];
    const int64_t per_block = p.bytes == 8 ? 2 : 4;
    const int64_t blocks = (p.count + per_block - 1) / per_block;
    context.ForEach(blocks, 20, [&](int64_t i) {
      const uint64_t l = low + static_cast<uint64_t>(i);
      const uint64_t h = high + (l < low ? 1 : 0);
      const Block2 low_words = Words(l);
      const Block2 high_words = Words(h);
      const Block4 r = Philox({low_words[0], low_words[1], high_words[0], high_words[1]}, key);
      for (int64_t j = 0; j < per_block && i * per_block + j < p.count; ++j) {
        Store(out[1], i * per_block + j, p.bytes, p.bytes == 8 ? Join(r[2 * j], r[2 * j + 1]) : r[j]);
      }
    });
    const uint64_t next = low + static_cast<uint64_t>(blocks);
    if (next < low) ++high;
    state[1] = next;
    if (p.state_words >= 3) state[2] = high;
  }
  std::memcpy(out[0], state, static_cast<size_t>(p.state_words * 8));
}

struct RngParams : ThunkParams {
  bool normal = false;
  ElementType type = ElementType::kF32;
  int64_t count = 0;
};

void RunRng(const RngParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const Block2 draw = Words(context.rng_counter++);
  const Block2 key = Words(context.rng_seed);
  const int64_t bytes = BytesOf(p.type);
  const bool is_float = IsFloat(p.type);
  double a = 0, b = 0;
  uint64_t low = 0, range = 0;
  if (is_float) {
    ReadReals(p.type, in[0], 1, 1, &a);
    ReadReals(p.type, in[1], 1, 1, &b);
  } else if (p.type != ElementType::kPred) {
    low = static_cast<uint64_t>(LoadIndex(p.type, in[0]));
    range = static_cast<uint64_t>(LoadIndex(p.type, in[1])) - low;
  }
  context.ParallelFor(p.count, 40, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Block2 at = Words(static_cast<uint64_t>(i));
      const Block4 r = Philox({at[0], at[1], draw[0], draw[1]}, key);
      const uint64_t bits = Join(r[0], r[1]);
      if (!is_float) {
        // An empty range gives its start.
        const uint64_t v = p.type == ElementType::kPred ? bits & 1 : low + (range == 0 ? 0 : bits % range);
        Store(out[0], i, bytes, v);
        continue;
      }
      const bool is_double = p.type == ElementType::kF64;
      const auto unit = [&](uint64_t word) {
        return is_double ? static_cast<double>(word >> 11) * 0x1p-53 : static_cast<double>(word >> 40) * 0x1p-24;
      };
      double v;
      if (p.normal) {
        const double u = 1 - unit(bits);  // not 0
        v = a + b * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * unit(Join(r[2], r[3])));
      } else {
        v = a + (b - a) * unit(bits);
      }
      WriteReals(p.type, &v, 1, out[0] + i * bytes, 1);
    }
  });
}

struct StateParams : ThunkParams {
  uint64_t delta = 0;
};

// Returns the run's 128-bit state, low half first, then adds delta.
void RunGetAndUpdateState(const ThunkParams* params, const std::byte* const*, std::byte* const* out,
                          RunContext& context) {
  auto& [low, high] = context.rng_state;
  const uint64_t state[2] = {low, high};
  std::memcpy(out[0], state, sizeof(state));
  const uint64_t next = low + static_cast<const StateParams*>(params)->delta;
  if (next < low) ++high;
  low = next;
}

}  // namespace

void PrepareRngBitGenerator(CompiledComputationBuilder& b) {
  const View state = b.MakeDense(b.operand(0));
  std::vector<Shape> results;
  AppendLeaves(b.shape(), &results);
  auto params = std::make_unique<BitGeneratorParams>();
  const auto algorithm = b.instruction().enum_attr(Attr::kRngAlgorithm, RngAlgorithm::kDefault);
  params->three_fry = algorithm == RngAlgorithm::kThreeFry;
  const int64_t state_bytes = state.count() * BytesOf(state.type());
  const bool is_integer_state = state.type() == ElementType::kU64 || state.type() == ElementType::kU32;
  if (results.size() != 2 || !is_integer_state || (state_bytes != 16 && state_bytes != 24) ||
      (params->three_fry && state_bytes != 16) || results[0].element_type() != state.type() ||
      results[0].element_count() != state.count()) {
    b.Fail("the state must be u64[2], or u64[3] for Philox");
    return;
  }
  const Shape values = results[1];
  const ElementType type = values.element_type();
  if (BitsOf(type) < 8 || BitsOf(type) > 64 || IsComplex(type) || type == ElementType::kPred) {
    b.Fail(StrCat("no random bits of type ", ToString(type)));
    return;
  }
  params->state_words = state_bytes / 8;
  params->count = values.element_count();
  params->bytes = BytesOf(type);
  // The dimension along which pairs of 32-bit numbers are neighbors: the first of even size, else the first of the
  // largest ones.
  int64_t split = -1;
  for (int64_t d = 0; d < values.rank() && split < 0; ++d) {
    if (values.dim(d) % 2 == 0) split = d;
  }
  if (split < 0) {
    for (int64_t d = 0; d < values.rank(); ++d) {
      if (split < 0 || values.dim(d) > values.dim(split)) split = d;
    }
  }
  for (int64_t d = 0; d < values.rank(); ++d) {
    (d < split ? params->before : d == split ? params->split : params->after) *= values.dim(d);
  }
  b.Emit(kKernel<RunBitGenerator>, std::move(params), {&state, 1});
}

void PrepareRng(CompiledComputationBuilder& b) {
  auto params = std::make_unique<RngParams>();
  params->normal =
      b.instruction().enum_attr(Attr::kDistribution, RngDistribution::kUniform) == RngDistribution::kNormal;
  params->type = b.shape().element_type();
  params->count = b.shape().element_count();
  const bool has_type =
      IsFloat(params->type) || (!params->normal && (params->type == ElementType::kPred || IsIndexType(params->type)));
  if (b.instruction().operand_count() != 2 || !has_type || b.operand(0).shape.rank() != 0 ||
      b.operand(1).shape.rank() != 0 || b.operand(0).type() != params->type || b.operand(1).type() != params->type) {
    b.Fail("unsupported element type of random numbers");
    return;
  }
  const View views[] = {b.operand(0), b.operand(1)};
  b.Emit(kKernel<RunRng>, std::move(params), views);
}

void PrepareRngGetAndUpdateState(CompiledComputationBuilder& b) {
  auto params = std::make_unique<StateParams>();
  params->delta = static_cast<uint64_t>(b.instruction().int_attr(Attr::kDelta));
  if (b.shape().element_type() != ElementType::kU64 || b.shape().element_count() != 2) {
    b.Fail("the state must be u64[2]");
    return;
  }
  b.Emit(RunGetAndUpdateState, std::move(params), {});
}

}  // namespace hlokit::interp

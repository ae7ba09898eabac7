// SPDX-License-Identifier: Apache-2.0
// Random numbers by counter-based generators: ThreeFry-2x32 with 20 rounds and Philox-4x32 with 10 (Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "interp/reference/ops.h"

namespace hlokit::reference {
namespace {

using Words2 = std::array<uint32_t, 2>;
using Words4 = std::array<uint32_t, 4>;

Words2 Split(uint64_t v) { return {static_cast<uint32_t>(v), static_cast<uint32_t>(v >> 32)}; }
uint64_t Joined(uint32_t low, uint32_t high) { return low | uint64_t{high} << 32; }

Words2 ThreeFry(uint64_t counter, uint64_t seed) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Words2 key = Split(seed);
  const uint32_t keys[3] = {key[0], key[1], 0x1bd11bda ^ key[0] ^ key[1]};
  Words2 x = Split(counter);
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

Words4 Philox(uint64_t low, uint64_t high, uint64_t seed) {
  const Words2 l = Split(low), h = Split(high);
  Words4 x = {l[0], l[1], h[0], h[1]};
  Words2 key = Split(seed);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{x[0]} * 0xd2511f53, b = uint64_t{x[2]} * 0xcd9e8d57;
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
  }
  return x;
}

// Sets element i, of any type, to the low bytes of `bits`.
void SetBits(Array* array, int64_t i, uint64_t bits) {
  for (int64_t b = 0; b < array->width() && b < 8; ++b) {
    array->mutable_data()[i * array->width() + b] = static_cast<std::byte>(bits >> (8 * b));
  }
}

uint64_t WordAt(const Array& state, int64_t i) {
  uint64_t word = 0;
  for (int64_t b = 0; b < 8 && 8 * i + b < state.bytes(); ++b) {
    word |= static_cast<uint64_t>(state.data()[8 * i + b]) << (8 * b);
  }
  return word;
}

}  // namespace

namespace fill_ops {

// `rng-bit-generator`: the same bits as XLA's expansion. Word 0 of the state is the key, word 1 the counter, word 2 its
// upper half; for Philox with two words the upper half is the key. Each block of 32-bit numbers fills as many elements
// as it has, and the counter advances by the blocks used. The two numbers of a ThreeFry block are neighbors in the
// first dimension of even size, else in the largest.
void RngBitGenerator(Op& op) {
  const Array& state = op.in(0);
  const auto algorithm = op.instruction.enum_attr(Attr::kRngAlgorithm, RngAlgorithm::kDefault);
  const bool three_fry = algorithm == RngAlgorithm::kThreeFry;
  const bool has_state = state.type() == ElementType::kU64 || state.type() == ElementType::kU32;
  if (op.results.size() != 2 || !has_state || op.out(0).bytes() != state.bytes() ||
      (state.bytes() != 16 && (three_fry || state.bytes() != 24))) {
    return op.Fail("the state must be u64[2], or u64[3] for Philox");
  }
  Array& out = op.out(1);
  const ElementType type = out.type();
  if (!op.Require(BitsOf(type) >= 8 && BitsOf(type) <= 64 && !IsComplex(type) && type != ElementType::kPred,
                  "there are no random bits of this type")) {
    return;
  }
  const bool wide = out.width() == 8;
  const uint64_t key = WordAt(state, 0), low = WordAt(state, 1);
  uint64_t high = state.bytes() == 24 ? WordAt(state, 2) : key;
  uint64_t blocks = 0;
  if (three_fry && wide) {
    op.ForEach(out.count(), [&](int64_t i) {
      const Words2 r = ThreeFry(low + blocks++, key);
      SetBits(&out, i, Joined(r[0], r[1]));
    });
  } else if (three_fry) {
    int64_t dim = -1;
    for (int64_t d = 0; d < out.rank() && dim < 0; ++d) dim = out.dim(d) % 2 == 0 ? d : -1;
    for (int64_t d = 0; d < out.rank() && (dim < 0 || out.dim(dim) % 2 != 0); ++d) {
      if (dim < 0 || out.dim(d) > out.dim(dim)) dim = d;
    }
    const int64_t size = dim < 0 ? 1 : out.dim(dim), half = (size + 1) / 2;
    const int64_t after = dim < 0 ? 1 : ElementCount(out.dims().subspan(static_cast<size_t>(dim) + 1));
    const int64_t before = dim < 0 ? 1 : ElementCount(out.dims().first(static_cast<size_t>(dim)));
    op.ForEach(before * half * after, [&](int64_t i) {
      const Words2 r = ThreeFry(low + blocks++, key);
      const int64_t pair = i / after % half;
      for (int64_t j = 0; j < 2 && 2 * pair + j < size; ++j) {
        SetBits(&out, (i / (after * half) * size + 2 * pair + j) * after + i % after, r[static_cast<size_t>(j)]);
      }
    });
  } else {
    const int64_t per_block = wide ? 2 : 4;
    op.ForEach((out.count() + per_block - 1) / per_block, [&](int64_t i) {
      const uint64_t at = low + blocks++;
      const Words4 r = Philox(at, high + (at < low ? 1 : 0), key);
      for (int64_t j = 0; j < per_block && i * per_block + j < out.count(); ++j) {
        const size_t word = static_cast<size_t>(j);
        SetBits(&out, i * per_block + j, wide ? Joined(r[2 * word], r[2 * word + 1]) : r[word]);
      }
    });
    if (low + blocks < low) ++high;
  }
  const uint64_t next[3] = {key, low + blocks, high};
  for (int64_t b = 0; b < state.bytes(); ++b) {
    op.out(0).mutable_data()[b] = static_cast<std::byte>(next[b / 8] >> (8 * (b % 8)));
  }
}

// `rng`: element i of the k-th draw of a device uses the Philox block with counter (i, k) and the seed of the run as
// key: a + u (b - a) with 24 bits of u (f64: 53), or the Box-Muller transform.
void Rng(Op& op) {
  const bool normal =
      op.instruction.enum_attr(Attr::kDistribution, RngDistribution::kUniform) == RngDistribution::kNormal;
  const ElementType type = op.out().type();
  const bool is_float = IsFloat(type);
  if (!op.Require(op.operands.size() == 2 && op.in(0).type() == type && op.in(1).type() == type &&
                      (is_float || (!normal && (type == ElementType::kPred || IsIndexType(type)))),
                  "there are no random numbers of this type")) {
    return;
  }
  const uint64_t draw = op.run.device->rng_draws++;
  const double a = op.in(0).Real(0), b = op.in(1).Real(0);
  const uint64_t least = static_cast<uint64_t>(IndexAt(op.in(0), 0));
  const uint64_t range = static_cast<uint64_t>(IndexAt(op.in(1), 0)) - least;
  const auto unit = [&](uint64_t word) {
    return type == ElementType::kF64 ? static_cast<double>(word >> 11) * 0x1p-53
                                     : static_cast<double>(word >> 40) * 0x1p-24;
  };
  op.ForEach(op.out().count(), [&](int64_t i) {
    const Words4 r = Philox(static_cast<uint64_t>(i), draw, op.run.options.seed);
    const uint64_t bits = Joined(r[0], r[1]);
    if (type == ElementType::kPred) {
      op.out().SetInteger(i, static_cast<int64_t>(bits & 1));
    } else if (!is_float) {
      // An empty range gives its start.
      op.out().SetInteger(i, static_cast<int64_t>(least + (range == 0 ? 0 : bits % range)));
    } else if (normal) {
      const double radius = std::sqrt(-2 * std::log(1 - unit(bits)));
      op.out().SetReal(i, a + b * radius * std::cos(2 * std::numbers::pi * unit(Joined(r[2], r[3]))));
    } else {
      op.out().SetReal(i, a + (b - a) * unit(bits));
    }
  });
}

// `rng-get-and-update-state`: returns the 128 bits of each device, low half first, then adds delta.
void RngGetAndUpdateState(Op& op) {
  auto& [low, high] = op.run.device->rng_state;
  if (!op.Require(op.out().type() == ElementType::kU64 && op.out().count() == 2, "the state is u64[2]")) return;
  op.out().SetInteger(0, static_cast<int64_t>(low));
  op.out().SetInteger(1, static_cast<int64_t>(high));
  const uint64_t next = low + static_cast<uint64_t>(op.instruction.int_attr(Attr::kDelta));
  if (next < low) ++high;
  low = next;
}

}  // namespace fill_ops
}  // namespace hlokit::reference

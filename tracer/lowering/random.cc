// SPDX-License-Identifier: Apache-2.0
// Random numbers from a seed operand: bits by rng-bit-generator, then arithmetic on them.
#include <cmath>
#include <limits>
#include <numbers>

#include "ir/core/saturating.h"
#include "tracer/lowering/arithmetic.h"
#include "tracer/lowering/loop.h"

namespace hlokit::lazy::lower {
namespace {

// Returns random words of 32 or 64 bits.
XlaOp Bits(LoweringContext& n, XlaOp seed, ElementType type, Dims dims) {
  XlaEmitter& e = n.emitter();
  const XlaOp word = Reshape(lazy::Cast(seed, ElementType::kU64), {1});
  const XlaOp state = Concatenate({word, Full(e, ElementType::kU64, {1}, 0)}, 0);
  if (!state.ok()) return state;
  const Shape shapes[] = {e.ArrayShape(ElementType::kU64, {2}), e.ArrayShape(type, dims)};
  const XlaOp both = e.Take(e.builder().Add(Opcode::kRngBitGenerator, {state.id()},
                                            {Builder::Enum(Attr::kRngAlgorithm, RngAlgorithm::kDefault)},
                                            e.builder().shapes().Tuple(shapes)));
  return Element(both, 1);
}

// Returns uniform samples in [0, 1), f32: the upper bits of each word as a fraction.
XlaOp UnitUniform(LoweringContext& n, XlaOp seed, Dims dims) {
  const XlaOp bits = Bits(n, seed, ElementType::kU32, dims);
  const XlaOp fraction = Binary(Opcode::kShiftRightLogical, bits, Number(bits, 9));
  return lazy::Cast(fraction, ElementType::kF32) * std::ldexp(1.0, -23);
}

}  // namespace

void Uniform(LoweringContext& n) {
  const XlaOp from = n.in(0), to = n.in(1);
  const XlaOp u = UnitUniform(n, n.in(2), n.ints(3));
  const ElementType type = from.type();
  const XlaOp low = lazy::Cast(from, ElementType::kF32), high = lazy::Cast(to, ElementType::kF32);
  n.Return(lazy::Cast(u * (high - low) + low, type));
}
void Normal(LoweringContext& n) {
  // Box-Muller transform: two uniform samples give two normal ones.
  const Dims dims = n.ints(3);
  int64_t count = 1;
  for (int64_t size : dims) count = SaturatingMultiply(count, size);
  if (count == std::numeric_limits<int64_t>::max()) {
    n.emitter().Fail("Storage size calculation overflowed");
    return;
  }
  const int64_t half = (count + 1) / 2;
  const XlaOp u = UnitUniform(n, n.in(2), {2, half});
  const XlaOp a = SliceDim(u, 0, 0, 1), b = SliceDim(u, 0, 1, 2) * (2 * std::numbers::pi);
  const XlaOp radius = Sqrt(Log(1.0 - a) * -2.0);
  const XlaOp both =
      Reshape(Concatenate({radius * Unary(Opcode::kCos, b), radius * Unary(Opcode::kSin, b)}, 0), {2 * half});
  const XlaOp x = Reshape(SliceDim(both, 0, 0, count), dims);
  const XlaOp mean = lazy::Cast(n.in(0), ElementType::kF32), deviation = lazy::Cast(n.in(1), ElementType::kF32);
  n.Return(lazy::Cast(x * deviation + mean, n.in(0).type()));
}
void Bernoulli(LoweringContext& n) {
  const XlaOp probability = n.in(0);
  const XlaOp u = UnitUniform(n, n.in(1), n.ints(2));
  n.Return(lazy::Cast(Lt(u, lazy::Cast(probability, ElementType::kF32)), probability.type()));
}

void Exponential(LoweringContext& n) {
  const XlaOp lambd = n.in(0);
  const XlaOp u = UnitUniform(n, n.in(1), n.ints(2));
  // Uses the middle of each step of u, so that the result is neither 0 nor infinity.
  const XlaOp middle = u + std::ldexp(1.0, -24);
  n.Return(lazy::Cast(-Log(middle) / lazy::Cast(lambd, ElementType::kF32), lambd.type()));
}
// Lowers (seed, sizes, from, to, dtype): integers in [from, to), as remainders of 64-bit words.
void Random(LoweringContext& n) {
  const XlaOp bits = Bits(n, n.in(0), ElementType::kU64, n.ints(1));
  const uint64_t range = static_cast<uint64_t>(n.int_arg(3)) - static_cast<uint64_t>(n.int_arg(2));
  const XlaOp rest = Binary(Opcode::kRemainder, bits, Number(bits, static_cast<int64_t>(range)));
  const XlaOp value = lazy::Cast(rest, ElementType::kS64);
  n.Return(lazy::Cast(value + Number(value, n.int_arg(2)), n.dtype(4, ElementType::kS64)));
}
// Returns the permutation that sorts random words.
void Randperm(LoweringContext& n) {
  const int64_t size = n.int_arg(1);
  const XlaOp keys = Bits(n, n.in(0), ElementType::kU32, {size});
  const XlaOp places = IotaOf(n.emitter(), ElementType::kS64, {size}, 0);
  const std::vector<XlaOp> sorted = Sort({keys, places}, 0, ComparisonDirection::kLt);
  if (sorted.size() == 2) n.Return(lazy::Cast(sorted[1], n.dtype(2, ElementType::kS64)));
}

// rate, uniform sample: the smallest k at which the distribution function exceeds the sample.
void PoissonOf(LoweringContext& n) {
  const XlaOp rate = Wide(n.in(0)), u = Wide(n.in(1));
  const XlaOp log_rate = Log(rate), count = FullLike(rate, 0);
  // Rounding may leave the sum below the sample; so far above the rate no count is likely.
  const XlaOp limit = rate + 20.0 * Sqrt(rate) + 40.0;
  // count, logarithm of its probability, sum of probabilities up to it
  const std::vector<XlaOp> end = Loop(
      n.emitter(), {count, -rate, Exp(-rate), u, log_rate, limit},
      [](absl::Span<const XlaOp> s) { return Reduce(Opcode::kOr, Le(s[2], s[3]) & Lt(s[0], s[5]), AllDims(s[0])); },
      [](absl::Span<const XlaOp> s) {
        const XlaOp active = Le(s[2], s[3]) & Lt(s[0], s[5]);
        const XlaOp next = s[0] + 1.0, log_p = s[1] + s[4] - Log(next);
        return std::vector<XlaOp>{Select(active, next, s[0]),
                                  Select(active, log_p, s[1]),
                                  Select(active, s[2] + Exp(log_p), s[2]),
                                  s[3],
                                  s[4],
                                  s[5]};
      });
  n.Return(lazy::Cast(end[0], n.in(0).type()));
}

}  // namespace hlokit::lazy::lower

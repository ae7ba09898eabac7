// Random numbers from a seed that is an operand: bits by rng-bit-generator, then arithmetic on them.
#include <cmath>
#include <numbers>

#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

// Uniform in [0, 1), f32: the upper bits of each word as a fraction.
Hlo UnitUniform(NodeLowering& n, Hlo seed, Dims dims) {
  Emitter& e = n.emitter();
  const Hlo word = Reshape(lazy::Cast(seed, ElementType::kU64), {1});
  const Hlo state = Concatenate({word, Full(e, ElementType::kU64, {1}, 0)}, 0);
  if (!state.ok()) return state;
  const Shape shapes[] = {e.ArrayShape(ElementType::kU64, {2}), e.ArrayShape(ElementType::kU32, dims)};
  const Hlo both = e.Take(e.builder().Add(Opcode::kRngBitGenerator, {state.id()},
                                          {Builder::Enum(Attr::kRngAlgorithm, RngAlgorithm::kDefault)},
                                          e.builder().shapes().Tuple(shapes)));
  const Hlo bits = Element(both, 1);
  const Hlo fraction = Binary(Opcode::kShiftRightLogical, bits, Number(bits, 9));
  return lazy::Cast(fraction, ElementType::kF32) * std::ldexp(1.0, -23);
}

}  // namespace

void Uniform(NodeLowering& n) {
  const Hlo from = n.in(0), to = n.in(1);
  const Hlo u = UnitUniform(n, n.in(2), n.ints(3));
  const ElementType type = from.type();
  const Hlo low = lazy::Cast(from, ElementType::kF32), high = lazy::Cast(to, ElementType::kF32);
  n.Return(lazy::Cast(u * (high - low) + low, type));
}
void Normal(NodeLowering& n) {
  // Box and Muller: two uniforms make one normal number.
  const Dims dims = n.ints(3);
  DimVector doubled = {2};
  doubled.insert(doubled.end(), dims.begin(), dims.end());
  const Hlo u = UnitUniform(n, n.in(2), doubled);
  const Hlo a = Reshape(SliceDim(u, 0, 0, 1), dims), b = Reshape(SliceDim(u, 0, 1, 2), dims);
  const Hlo radius = Sqrt(Log(1.0 - a) * -2.0);
  const Hlo x = radius * Unary(Opcode::kCos, b * (2 * std::numbers::pi));
  const Hlo mean = lazy::Cast(n.in(0), ElementType::kF32), deviation = lazy::Cast(n.in(1), ElementType::kF32);
  n.Return(lazy::Cast(x * deviation + mean, n.in(0).type()));
}
void Bernoulli(NodeLowering& n) {
  const Hlo probability = n.in(0);
  const Hlo u = UnitUniform(n, n.in(1), n.ints(2));
  n.Return(lazy::Cast(Lt(u, lazy::Cast(probability, ElementType::kF32)), probability.type()));
}

}  // namespace hlokit::lazy::lower

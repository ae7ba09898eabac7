// SPDX-License-Identifier: Apache-2.0
// Random ops: nodes with a seed as an operand, which each call chains to that of the call before.
#include <cmath>
#include <cstdint>
#include <limits>

#include "tracer/autograd/function.h"
#include "tracer/dispatch/call.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/promotion.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::kernel {
namespace {

Tensor Seed(Call& c) { return c.device()->NewTensor(c.device()->NextSeed()); }

bool Negative(Call& c, Dims sizes) {
  for (int64_t size : sizes) {
    if (size < 0) c.Fail("negative size");
    if (size < 0) return true;
  }
  return false;
}

// A node of numbers drawn with two parameters.
Tensor Draw(Call& c, Op op, Dims sizes, double a, double b, ElementType type) {
  if (!IsFloat(type)) c.Fail("expected a floating-point type");
  if (c.failed() || Negative(c, sizes)) return Tensor();
  const NoGradGuard no_grad;
  return lazy::Record(c.device(), op, {lazy::Full({}, a, type), lazy::Full({}, b, type), Seed(c), Value(sizes)})[0];
}

Tensor Flips(Call& c, const Tensor& probability, Dims sizes) {
  const NoGradGuard no_grad;
  return lazy::Record(c.device(), Op::bernoulli_node, {probability, Seed(c), Value(sizes)})[0];
}

// Zeros and ones of `like`'s type and sizes, ones with probability p.
Tensor FlipsLike(Call& c, const Tensor& like, double p) {
  if (!(p >= 0 && p <= 1)) {
    c.Fail("bernoulli_ expects p to be in [0, 1]");
    return Tensor();
  }
  if (IsFloat(like.dtype())) return Flips(c, lazy::Full({}, p, like.dtype()), Sizes(like));
  return lazy::To(Flips(c, lazy::Full({}, p, kDefaultFloat), Sizes(like)), like.dtype());
}

Tensor Whole(Call& c, Dims sizes, int64_t from, int64_t to, ElementType type) {
  if (from >= to) c.Fail("random_ expects 'from' to be less than 'to'");
  if (c.failed() || Negative(c, sizes)) return Tensor();
  return lazy::Record(c.device(), Op::random_node, {Seed(c), Value(sizes), Value(from), Value(to), Value(type)})[0];
}

// One more than the largest number that `random_` draws: all that the type holds without a gap.
int64_t EndOf(ElementType type) {
  if (type == ElementType::kPred) return 2;
  if (type == ElementType::kBF16) return (int64_t{1} << 8) + 1;
  if (type == ElementType::kF16) return (int64_t{1} << 11) + 1;
  if (type == ElementType::kF32) return (int64_t{1} << 24) + 1;
  if (type == ElementType::kF64) return (int64_t{1} << 53) + 1;
  const int bits = static_cast<int>(BitsOf(type)) - (IsSigned(type) ? 1 : 0);
  return bits >= 63 ? std::numeric_limits<int64_t>::max() : int64_t{1} << bits;
}

void Write(Call& c, Tensor value) {
  if (c.failed()) return;
  WriteInPlace(c.t(0), std::move(value));
  c.Return(c.t(0));
}

}  // namespace

void Rand(Call& c) { c.Return(Draw(c, Op::uniform_node, c.ints(0), 0, 1, c.dtype(1, kDefaultFloat))); }
void Randn(Call& c) { c.Return(Draw(c, Op::normal_node, c.ints(0), 0, 1, c.dtype(1, kDefaultFloat))); }
void RandLike(Call& c) { c.Return(Draw(c, Op::uniform_node, c.t(0).sizes(), 0, 1, c.dtype(1, c.t(0).dtype()))); }
void RandnLike(Call& c) { c.Return(Draw(c, Op::normal_node, c.t(0).sizes(), 0, 1, c.dtype(1, c.t(0).dtype()))); }
void Randint(Call& c) { c.Return(Whole(c, c.ints(1), 0, c.i(0), c.dtype(2, ElementType::kS64))); }
void RandintLow(Call& c) { c.Return(Whole(c, c.ints(2), c.i(0), c.i(1), c.dtype(3, ElementType::kS64))); }
void Randperm(Call& c) {
  if (c.i(0) < 0) return c.Fail("n must be non-negative");
  c.Return(
      lazy::Record(c.device(), Op::randperm_node, {Seed(c), c.args()[0], Value(c.dtype(1, ElementType::kS64))})[0]);
}

void BernoulliTensor(Call& c) {
  if (!IsFloat(c.t(0).dtype())) return c.Fail("expected a floating-point type");
  c.Return(Flips(c, c.t(0), Sizes(c.t(0))));
}
void BernoulliP(Call& c) { c.Return(FlipsLike(c, c.t(0), c.d(1))); }
void BernoulliInPlace(Call& c) { Write(c, FlipsLike(c, c.t(0), c.d(1))); }
void UniformInPlace(Call& c) {
  if (!(c.d(1) <= c.d(2))) return c.Fail("uniform_ expects to return a [from, to) range, but found from > to");
  Write(c, Draw(c, Op::uniform_node, c.t(0).sizes(), c.d(1), c.d(2), c.t(0).dtype()));
}
void NormalInPlace(Call& c) {
  if (!(c.d(2) >= 0)) return c.Fail("normal expects std >= 0.0");
  Write(c, Draw(c, Op::normal_node, c.t(0).sizes(), c.d(1), c.d(2), c.t(0).dtype()));
}
void ExponentialInPlace(Call& c) {
  if (!(c.d(1) > 0)) return c.Fail("exponential_ expects lambda > 0.0");
  const Tensor& self = c.t(0);
  if (!IsFloat(self.dtype())) return c.Fail("expected a floating-point type");
  const Tensor lambd = lazy::Full({}, c.d(1), self.dtype());
  Write(c, lazy::Record(c.device(), Op::exponential_node, {lambd, Seed(c), Value(Sizes(self))})[0]);
}
void RandomInPlace(Call& c) { Write(c, Whole(c, c.t(0).sizes(), 0, EndOf(c.t(0).dtype()), c.t(0).dtype())); }
void RandomToInPlace(Call& c) { Write(c, Whole(c, c.t(0).sizes(), 0, c.i(1), c.t(0).dtype())); }
void RandomFromInPlace(Call& c) {
  const int64_t to = c.has(2) ? c.i(2) : EndOf(c.t(0).dtype());
  Write(c, Whole(c, c.t(0).sizes(), c.i(1), to, c.t(0).dtype()));
}

// Draws without replacement: the largest of weight / (exponential number), as torch does it; with replacement, one such
// draw for each sample.
void Multinomial(Call& c) {
  const Tensor& weights = c.t(0);
  const int64_t samples = c.i(1), rank = weights.dim(), classes = weights.size(-1);
  if (rank != 1 && rank != 2) return c.Fail("prob_dist must be 1 or 2 dim");
  if (!IsFloat(weights.dtype())) return c.Fail("expected a floating-point type");
  if (samples <= 0) return c.Fail("cannot sample n_sample <= 0 samples");
  if (!c.b(2) && samples > classes) {
    return c.Fail("cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  }
  const Tensor one = lazy::Full({}, 1, weights.dtype());
  const auto scores = [&](const Tensor& w) {
    return w / lazy::Record(c.device(), Op::exponential_node, {one, Seed(c), Value(Sizes(w))})[0];
  };
  if (!c.b(2)) return c.Return(RunAll(Op::topk, scores(weights), samples, -1, true, true)[1]);
  IntList wide = Sizes(weights);
  wide.insert(wide.end() - 1, samples);
  c.Return(Run(Op::argmax, scores(lazy::Expand(lazy::Unsqueeze(weights, -2), wide)), -1, false));
}

void Dropout(Call& c) {
  const Tensor& x = c.t(0);
  const double p = c.d(1);
  if (!(p >= 0 && p <= 1)) return c.Fail("dropout probability has to be between 0 and 1");
  if (!c.b(2) || p == 0) return c.Return(x);
  if (p == 1) return c.Return(lazy::Mul(x, 0));
  Tensor mask;
  {
    const NoGradGuard no_grad;
    mask = Flips(c, lazy::Full({}, 1 - p, x.dtype()), Sizes(x));
    if (mask.defined()) mask = lazy::Div(mask, 1 - p);
  }
  c.Return(mask.defined() ? x * mask : mask);
}
// input, p, train? -> output, mask
void NativeDropout(Call& c) {
  const Tensor& x = c.t(0);
  const double p = c.d(1);
  if (c.has(2) && !c.b(2)) return c.Return(lazy::Run(Op::clone, x), lazy::Full(x.sizes(), true, ElementType::kPred));
  const Tensor mask = lazy::To(Flips(c, lazy::Full({}, 1 - p, x.dtype()), Sizes(x)), ElementType::kPred);
  if (mask.defined()) c.Return(lazy::Mul(x * lazy::To(mask, x.dtype()), p == 1 ? 0.0 : 1 / (1 - p)), mask);
}

}  // namespace hlokit::lazy::kernel

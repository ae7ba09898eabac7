// SPDX-License-Identifier: Apache-2.0
// Random ops: nodes with a seed operand derived from that of the previous call.
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::kernel {
namespace {

Tensor Seed(OpKernelContext& c) { return c.device()->NewTensor(c.device()->NextSeed()); }

bool Negative(OpKernelContext& c, Dims sizes) {
  for (int64_t size : sizes) {
    if (size < 0) c.Fail("negative size");
    if (size < 0) return true;
  }
  return false;
}

// Records a node of random samples with two parameters.
Tensor Draw(OpKernelContext& c, Op op, Dims sizes, double a, double b, ElementType type) {
  if (!IsFloat(type)) c.Fail("expected a floating-point type");
  if (c.failed() || Negative(c, sizes)) return Tensor();
  const NoGradGuard no_grad;
  return lazy::Record(c.device(), op, {lazy::Full({}, a, type), lazy::Full({}, b, type), Seed(c), IValue(sizes)})[0];
}

Tensor Flips(OpKernelContext& c, const Tensor& probability, Dims sizes) {
  const NoGradGuard no_grad;
  return lazy::Record(c.device(), Op::bernoulli_node, {probability, Seed(c), IValue(sizes)})[0];
}

// Returns zeros and ones of `like`'s type and sizes, ones with probability p.
Tensor FlipsLike(OpKernelContext& c, const Tensor& like, double p) {
  if (!(p >= 0 && p <= 1)) {
    c.Fail("bernoulli_ expects p to be in [0, 1]");
    return Tensor();
  }
  if (IsFloat(like.dtype())) return Flips(c, lazy::Full({}, p, like.dtype()), Sizes(like));
  return lazy::To(Flips(c, lazy::Full({}, p, kDefaultFloat), Sizes(like)), like.dtype());
}

Tensor Whole(OpKernelContext& c, Dims sizes, int64_t from, int64_t to, ElementType type) {
  if (from >= to) c.Fail("random_ expects 'from' to be less than 'to'");
  if (c.failed() || Negative(c, sizes)) return Tensor();
  return lazy::Record(c.device(), Op::random_node, {Seed(c), IValue(sizes), IValue(from), IValue(to), IValue(type)})[0];
}

// Returns one more than the largest sample of `random_`: the end of the type's contiguous integers.
int64_t EndOf(ElementType type) {
  if (type == ElementType::kPred) return 2;
  if (type == ElementType::kBF16) return (int64_t{1} << 8) + 1;
  if (type == ElementType::kF16) return (int64_t{1} << 11) + 1;
  if (type == ElementType::kF32) return (int64_t{1} << 24) + 1;
  if (type == ElementType::kF64) return (int64_t{1} << 53) + 1;
  const int bits = static_cast<int>(BitsOf(type)) - (IsSigned(type) ? 1 : 0);
  return bits >= 63 ? std::numeric_limits<int64_t>::max() : int64_t{1} << bits;
}

void Write(OpKernelContext& c, Tensor value) {
  if (c.failed()) return;
  WriteInPlace(c.tensor(0), std::move(value));
  c.Return(c.tensor(0));
}

}  // namespace

void Rand(OpKernelContext& c) { c.Return(Draw(c, Op::uniform_node, c.ints(0), 0, 1, c.dtype(1, kDefaultFloat))); }
void Randn(OpKernelContext& c) { c.Return(Draw(c, Op::normal_node, c.ints(0), 0, 1, c.dtype(1, kDefaultFloat))); }
void RandLike(OpKernelContext& c) {
  c.Return(Draw(c, Op::uniform_node, c.tensor(0).sizes(), 0, 1, c.dtype(1, c.tensor(0).dtype())));
}
void RandnLike(OpKernelContext& c) {
  c.Return(Draw(c, Op::normal_node, c.tensor(0).sizes(), 0, 1, c.dtype(1, c.tensor(0).dtype())));
}
void Randint(OpKernelContext& c) { c.Return(Whole(c, c.ints(1), 0, c.int_arg(0), c.dtype(2, ElementType::kS64))); }
void RandintLow(OpKernelContext& c) {
  c.Return(Whole(c, c.ints(2), c.int_arg(0), c.int_arg(1), c.dtype(3, ElementType::kS64)));
}
void Randperm(OpKernelContext& c) {
  if (c.int_arg(0) < 0) return c.Fail("n must be non-negative");
  c.Return(
      lazy::Record(c.device(), Op::randperm_node, {Seed(c), c.args()[0], IValue(c.dtype(1, ElementType::kS64))})[0]);
}

void BernoulliTensor(OpKernelContext& c) {
  if (!IsFloat(c.tensor(0).dtype())) return c.Fail("expected a floating-point type");
  c.Return(Flips(c, c.tensor(0), Sizes(c.tensor(0))));
}
void BernoulliP(OpKernelContext& c) { c.Return(FlipsLike(c, c.tensor(0), c.float_arg(1))); }
void BernoulliInPlace(OpKernelContext& c) { Write(c, FlipsLike(c, c.tensor(0), c.float_arg(1))); }
void UniformInPlace(OpKernelContext& c) {
  if (!(c.float_arg(1) <= c.float_arg(2)))
    return c.Fail("uniform_ expects to return a [from, to) range, but found from > to");
  Write(c, Draw(c, Op::uniform_node, c.tensor(0).sizes(), c.float_arg(1), c.float_arg(2), c.tensor(0).dtype()));
}
void NormalInPlace(OpKernelContext& c) {
  if (!(c.float_arg(2) >= 0)) return c.Fail("normal expects std >= 0.0");
  Write(c, Draw(c, Op::normal_node, c.tensor(0).sizes(), c.float_arg(1), c.float_arg(2), c.tensor(0).dtype()));
}

// ---- distributions made of uniform and normal samples ----

namespace {

// Returns median + sigma tan(pi (u - 1/2)).
Tensor CauchyLike(OpKernelContext& c, const Tensor& like, double median, double sigma) {
  if (!(sigma > 0)) {
    c.Fail(StrCat("cauchy_ expects sigma > 0.0, but found sigma=", FormatDouble(sigma, 9)));
    return Tensor();
  }
  const NoGradGuard no_grad;
  const Tensor u = Draw(c, Op::uniform_node, like.sizes(), 0, 1, like.dtype());
  if (!u.defined()) return u;
  const Tensor angle = lazy::Sub(u, 0.5) * Scalar(std::numbers::pi);
  return lazy::Add(InvokeOp(Op::tan, angle) * Scalar(sigma), median);
}

// Returns the number of trials up to the first success of probability p: log(1 - u) / log(1 - p), rounded up.
Tensor GeometricLike(OpKernelContext& c, const Tensor& like, double p) {
  if (!(p > 0 && p < 1)) {
    c.Fail(StrCat("geometric_ expects p to be in (0, 1), but got p=", FormatDouble(p, 9)));
    return Tensor();
  }
  const NoGradGuard no_grad;
  const ElementType type = IsFloat(like.dtype()) ? like.dtype() : kDefaultFloat;
  const Tensor u = Draw(c, Op::uniform_node, like.sizes(), 0, 1, type);
  if (!u.defined()) return u;
  const Tensor trials = InvokeOp(Op::ceil, InvokeOp(Op::log1p, -u) / Scalar(std::log1p(-p)));
  return lazy::To(InvokeOp(Op::clamp, trials, 1), like.dtype());
}

Tensor LogNormalLike(OpKernelContext& c, const Tensor& like, double mean, double std) {
  if (!(std > 0)) {
    c.Fail(StrCat("log_normal_ expects std > 0.0, but found std=", FormatDouble(std, 9)));
    return Tensor();
  }
  const NoGradGuard no_grad;
  const Tensor normal = Draw(c, Op::normal_node, like.sizes(), mean, std, like.dtype());
  return normal.defined() ? lazy::Exp(normal) : normal;
}

Tensor ExponentialLike(OpKernelContext& c, const Tensor& like, double rate) {
  if (!(rate > 0)) c.Fail("exponential_ expects lambda > 0.0");
  if (!IsFloat(like.dtype())) c.Fail("expected a floating-point type");
  if (c.failed()) return Tensor();
  const NoGradGuard no_grad;
  return lazy::Record(c.device(), Op::exponential_node,
                      {lazy::Full({}, rate, like.dtype()), Seed(c), IValue(Sizes(like))})[0];
}

}  // namespace

void Cauchy(OpKernelContext& c) { c.Return(CauchyLike(c, c.tensor(0), c.float_arg(1), c.float_arg(2))); }
void CauchyInPlace(OpKernelContext& c) { Write(c, CauchyLike(c, c.tensor(0), c.float_arg(1), c.float_arg(2))); }
void Geometric(OpKernelContext& c) { c.Return(GeometricLike(c, c.tensor(0), c.float_arg(1))); }
void GeometricInPlace(OpKernelContext& c) { Write(c, GeometricLike(c, c.tensor(0), c.float_arg(1))); }
void LogNormal(OpKernelContext& c) { c.Return(LogNormalLike(c, c.tensor(0), c.float_arg(1), c.float_arg(2))); }
void LogNormalInPlace(OpKernelContext& c) { Write(c, LogNormalLike(c, c.tensor(0), c.float_arg(1), c.float_arg(2))); }
void ExponentialInPlace(OpKernelContext& c) { Write(c, ExponentialLike(c, c.tensor(0), c.float_arg(1))); }
void Exponential(OpKernelContext& c) { c.Return(ExponentialLike(c, c.tensor(0), c.float_arg(1))); }

// mean, std: tensors or numbers; two numbers come with sizes and a type.
void NormalOf(OpKernelContext& c) {
  const Tensor &mean = c.tensor(0), &std = c.tensor(1);
  if (!std.defined() && !(c.float_arg(1) >= 0)) {
    return c.Fail(StrCat("normal expects std >= 0.0, but found std ", FormatDouble(c.float_arg(1), 9)));
  }
  if (!mean.defined() && !std.defined()) {
    return c.Return(Draw(c, Op::normal_node, c.ints(2), c.float_arg(0), c.float_arg(1), c.dtype(3, kDefaultFloat)));
  }
  const NoGradGuard no_grad;
  const Tensor like = mean.defined() && std.defined() ? mean + std : mean.defined() ? mean : std;
  if (!like.defined()) return c.Return(like);
  const Tensor sample = Draw(c, Op::normal_node, like.sizes(), 0, 1, like.dtype());
  if (!sample.defined()) return c.Return(sample);
  const Tensor scaled = std.defined() ? sample * std : sample * c.scalar(1);
  c.Return(mean.defined() ? scaled + mean : lazy::Add(scaled, c.scalar(0)));
}
void RandintLike(OpKernelContext& c) {
  const bool low = c.op() == Op::randint_like_low_dtype;
  const Tensor& like = c.tensor(0);
  c.Return(Whole(c, like.sizes(), low ? c.int_arg(1) : 0, c.int_arg(low ? 2 : 1), c.dtype(low ? 3 : 2, like.dtype())));
}
void Poisson(OpKernelContext& c) {
  const ElementType type = c.tensor(0).dtype();
  if (!IsFloat(type)) return c.Fail("expected a floating-point type");
  const NoGradGuard no_grad;
  const Tensor rate = type == ElementType::kF64 ? c.tensor(0) : lazy::To(c.tensor(0), ElementType::kF32);
  const Tensor u = Draw(c, Op::uniform_node, rate.sizes(), 0, 1, rate.dtype());
  if (!u.defined()) return c.Return(u);
  // The node takes as many steps as the largest rate. Large ones follow from a normal sample with Cornish and Fisher's
  // correction for the skewness, which leaves less than a hundredth of a count.
  constexpr double kLarge = 1024;
  const Tensor counted = lazy::Record(c.device(), Op::poisson_node, {InvokeOp(Op::clamp_max, rate, kLarge), u})[0];
  const Tensor inside = InvokeOp(Op::clamp, lazy::Sub(u * Scalar(2), 1), -0x1.fffffep-1, 0x1.fffffep-1);
  const Tensor normal = InvokeOp(Op::erfinv, inside) * Scalar(std::numbers::sqrt2);
  const Tensor quantile = rate + lazy::Sqrt(rate) * normal + lazy::Add(normal * normal, 2) / Scalar(6);
  c.Return(lazy::To(lazy::Where(lazy::Lt(rate, kLarge), counted, InvokeOp(Op::floor, quantile)), type));
}
void RandomInPlace(OpKernelContext& c) {
  Write(c, Whole(c, c.tensor(0).sizes(), 0, EndOf(c.tensor(0).dtype()), c.tensor(0).dtype()));
}
void RandomToInPlace(OpKernelContext& c) {
  Write(c, Whole(c, c.tensor(0).sizes(), 0, c.int_arg(1), c.tensor(0).dtype()));
}
void RandomFromInPlace(OpKernelContext& c) {
  const int64_t to = c.has(2) ? c.int_arg(2) : EndOf(c.tensor(0).dtype());
  Write(c, Whole(c, c.tensor(0).sizes(), c.int_arg(1), to, c.tensor(0).dtype()));
}

// Samples without replacement: the largest of weight / (exponential sample), as in torch. With replacement: one such
// sample for each.
void Multinomial(OpKernelContext& c) {
  const Tensor& weights = c.tensor(0);
  const int64_t samples = c.int_arg(1), rank = weights.dim(), classes = weights.size(-1);
  if (rank != 1 && rank != 2) return c.Fail("prob_dist must be 1 or 2 dim");
  if (!IsFloat(weights.dtype())) return c.Fail("expected a floating-point type");
  if (samples <= 0) return c.Fail("cannot sample n_sample <= 0 samples");
  if (!c.bool_arg(2) && samples > classes) {
    return c.Fail("cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  }
  const Tensor one = lazy::Full({}, 1, weights.dtype());
  const auto scores = [&](const Tensor& w) {
    return w / lazy::Record(c.device(), Op::exponential_node, {one, Seed(c), IValue(Sizes(w))})[0];
  };
  if (!c.bool_arg(2)) return c.Return(InvokeOpMultiOutput(Op::topk, scores(weights), samples, -1, true, true)[1]);
  IntList wide = Sizes(weights);
  wide.insert(wide.end() - 1, samples);
  c.Return(InvokeOp(Op::argmax, scores(lazy::Expand(lazy::Unsqueeze(weights, -2), wide)), -1, false));
}

// ---- random slopes, and dropout of channels or to the limit of selu ----

namespace {

// Checks a dropout's probability. False if its result is returned: the input, or zeros for p = 1.
bool NeedsDropout(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const double p = c.float_arg(1);
  if (!(p >= 0 && p <= 1)) {
    c.Fail(StrCat("dropout probability has to be between 0 and 1, but got ", FormatDouble(p, 6)));
  } else if (!c.bool_arg(2) || p == 0 || x.numel() == 0) {
    c.Return(x);
  } else if (p == 1) {
    c.Return(lazy::Mul(x, 0));
  } else if (!IsFloat(x.dtype())) {
    c.Fail("expected a floating-point type");
  } else {
    return true;
  }
  return false;
}

// Ones with probability 1 - p for each element, or for each channel of each example.
Tensor Kept(OpKernelContext& c, bool channels) {
  const Tensor& x = c.tensor(0);
  IntList sizes = Sizes(x);
  if (channels && x.dim() < 2) {
    c.Fail("Feature dropout requires at least 2 dimensions in the input");
    return Tensor();
  }
  for (size_t d = 2; channels && d < sizes.size(); ++d) sizes[d] = 1;
  return Flips(c, lazy::Full({}, 1 - c.float_arg(1), x.dtype()), sizes);
}

// Dropped elements become the least value of selu; the result keeps mean and variance.
void DropToSeluLimit(OpKernelContext& c, const Tensor& kept) {
  if (!kept.defined()) return;
  constexpr double kAlpha = 1.7580993408473766;
  const double p = c.float_arg(1), a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  const Tensor shift = lazy::Add(lazy::Sub(kept, 1) * Scalar(kAlpha * a), kAlpha * a * p);
  c.Return(c.tensor(0) * (kept * Scalar(a)) + shift);
}

}  // namespace

// input, p, train
void FeatureDropout(OpKernelContext& c) {
  if (!NeedsDropout(c)) return;
  const Tensor kept = Kept(c, true);
  if (kept.defined()) c.Return(c.tensor(0) * lazy::Div(kept, 1 - c.float_arg(1)));
}
void AlphaDropout(OpKernelContext& c) {
  if (NeedsDropout(c)) DropToSeluLimit(c, Kept(c, false));
}
void FeatureAlphaDropout(OpKernelContext& c) {
  if (NeedsDropout(c)) DropToSeluLimit(c, Kept(c, true));
}
// self, lower, upper, training: a leaky relu with a random slope for each element
void Rrelu(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const double lower = c.float_arg(1), upper = c.float_arg(2);
  if (!(lower <= upper)) return c.Fail("Lower bound should be less than or equal to the upper bound");
  if (!c.bool_arg(3)) return c.Return(InvokeOp(Op::leaky_relu, x, (lower + upper) / 2));
  const Tensor slope = Draw(c, Op::uniform_node, x.sizes(), lower, upper, x.dtype());
  if (slope.defined()) c.Return(lazy::Where(lazy::Le(x, 0), x * slope, x));
}

// ---- dropout ----

void Dropout(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const double p = c.float_arg(1);
  if (!(p >= 0 && p <= 1)) return c.Fail("dropout probability has to be between 0 and 1");
  if (!c.bool_arg(2) || p == 0) return c.Return(x);
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
void NativeDropout(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const double p = c.float_arg(1);
  if (c.has(2) && !c.bool_arg(2))
    return c.Return(lazy::InvokeOp(Op::clone, x), lazy::Full(x.sizes(), true, ElementType::kPred));
  const Tensor mask = lazy::To(Flips(c, lazy::Full({}, 1 - p, x.dtype()), Sizes(x)), ElementType::kPred);
  if (mask.defined()) c.Return(lazy::Mul(x * lazy::To(mask, x.dtype()), p == 1 ? 0.0 : 1 / (1 - p)), mask);
}

}  // namespace hlokit::lazy::kernel

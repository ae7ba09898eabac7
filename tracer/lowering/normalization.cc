// SPDX-License-Identifier: Apache-2.0
// Batch norm and dropout.
#include <cstring>

#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

XlaOp BatchNormOp(Opcode opcode, absl::Span<const XlaOp> operands, double eps) {
  XlaEmitter& e = operands[0].emitter();
  std::vector<InstructionId> ids;
  for (const XlaOp& operand : operands) {
    if (!operand.ok()) return operand;
    ids.push_back(operand.id());
  }
  const float epsilon = static_cast<float>(eps);
  uint32_t bits;
  static_assert(sizeof(bits) == sizeof(epsilon));
  std::memcpy(&bits, &epsilon, sizeof(bits));
  return e.Take(e.builder().Add(opcode, ids, {{Attr::kEpsilon, bits}, e.builder().Int(Attr::kFeatureIndex, 1)}));
}

XlaOp Vector(LoweringContext& n, size_t i, ElementType type, int64_t size, double absent) {
  return n.has(i) ? lazy::Cast(n.in(i), type) : Full(n.emitter(), type, {size}, absent);
}

}  // namespace

// input, weight?, bias?, running_mean?, running_var?, training, momentum, eps -> output, mean, variance, 1/deviation
void NativeBatchNorm(LoweringContext& n) {
  const XlaOp input = n.in(0);
  const XlaOp x = Wide(input);
  const int64_t features = x.size(1);
  const double eps = n.float_arg(7);
  const XlaOp scale = Vector(n, 1, x.type(), features, 1), offset = Vector(n, 2, x.type(), features, 0);
  XlaOp out, mean, var;
  if (n.bool_arg(5)) {
    const XlaOp all = BatchNormOp(Opcode::kBatchNormTraining, {x, scale, offset}, eps);
    out = Element(all, 0);
    mean = Element(all, 1);
    var = Element(all, 2);
  } else {
    mean = Vector(n, 3, x.type(), features, 0);
    var = Vector(n, 4, x.type(), features, 1);
    out = BatchNormOp(Opcode::kBatchNormInference, {x, scale, offset, mean, var}, eps);
  }
  n.Return(lazy::Cast(out, input.type()), mean);
  n.Return(var, Rsqrt(var + eps));
}

// grad_out, input, weight?, running_mean?, running_var?, save_mean?, save_invstd?, train, eps, output_mask
void NativeBatchNormBackward(LoweringContext& n) {
  const XlaOp g = Wide(n.in(0)), x = Wide(n.in(1));
  const int64_t features = x.size(1);
  const double eps = n.float_arg(8);
  const XlaOp scale = Vector(n, 2, x.type(), features, 1);
  XlaOp dx, dscale, doffset;
  if (n.bool_arg(7)) {
    const XlaOp mean = lazy::Cast(n.in(5), x.type()), invstd = lazy::Cast(n.in(6), x.type());
    const XlaOp var = 1.0 / (invstd * invstd) - eps;
    const XlaOp all = BatchNormOp(Opcode::kBatchNormGrad, {x, scale, mean, var, g}, eps);
    dx = Element(all, 0);
    dscale = Element(all, 1);
    doffset = Element(all, 2);
  } else {
    const XlaOp mean = Vector(n, 3, x.type(), features, 0), var = Vector(n, 4, x.type(), features, 1);
    const XlaOp invstd = Rsqrt(var + eps);
    DimVector dims = {0};
    for (int64_t d = 2; d < x.rank(); ++d) dims.push_back(d);
    const auto spread = [&](XlaOp v) { return BroadcastInDim(v, x.dims(), {1}); };
    dx = g * spread(scale * invstd);
    dscale = Reduce(Opcode::kAdd, g * (x - spread(mean)), dims) * invstd;
    doffset = Reduce(Opcode::kAdd, g, dims);
  }
  n.Return(lazy::Cast(dx, n.in(1).type()));
  n.Return(dscale, doffset);
}

void MovingAverage(LoweringContext& n) {
  const XlaOp running = n.in(0);
  const double momentum = n.float_arg(2);
  n.Return(running * (1 - momentum) + lazy::Cast(n.in(1), running.type()) * momentum);
}

void NativeDropoutBackward(LoweringContext& n) {
  const XlaOp g = Wide(n.in(0));
  n.Return(lazy::Cast(g * lazy::Cast(n.in(1), g.type()) * n.float_arg(2), FloatingOf(n.in(0).type())));
}

}  // namespace hlokit::lazy::lower

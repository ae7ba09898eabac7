// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/norm_step.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "interp/compiled/loop_layout.h"
#include "interp/compiled/reduce_step.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/machine/run_context.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp::compiled {
namespace {

const float* Floats(const std::byte* p) { return reinterpret_cast<const float*>(p); }
float* Floats(std::byte* p) { return reinterpret_cast<float*>(p); }
double* Doubles(std::byte* p) { return reinterpret_cast<double*>(p); }
const double* Doubles(const std::byte* p) { return reinterpret_cast<const double*>(p); }

// Sums of differences from the first element, and of their squares; operands: first elements, scale, offset. Results:
// mean, variance, a, b.
class TrainingFinish : public ReduceFinish {
 public:
  TrainingFinish(double count, double epsilon) : count_(count), epsilon_(epsilon) {}
  void Run(const std::byte* const* totals, int64_t first, int64_t n, const std::byte* const* in,
           std::byte* const* out) const override {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t f = first + i;
      const double shift = std::isfinite(Floats(in[0])[f]) ? static_cast<double>(Floats(in[0])[f]) : 0.0;
      const double difference = Doubles(totals[0])[i] / count_;
      const double mean = shift + difference;
      double variance = Doubles(totals[1])[i] / count_ - difference * difference;
      if (variance < 0) variance = 0;
      const double a = static_cast<double>(Floats(in[1])[f]) / std::sqrt(variance + epsilon_);
      Floats(out[0])[f] = static_cast<float>(mean);
      Floats(out[1])[f] = static_cast<float>(variance);
      Doubles(out[2])[f] = a;
      Doubles(out[3])[f] = static_cast<double>(Floats(in[2])[f]) - mean * a;
    }
  }

 private:
  const double count_, epsilon_;
};

// Sums of the gradient, and of its product with the difference from the mean; operands: scale, mean, variance. Results:
// gradients of scale and offset, a, b, c.
class GradientFinish : public ReduceFinish {
 public:
  GradientFinish(double count, double epsilon) : count_(count), epsilon_(epsilon) {}
  void Run(const std::byte* const* totals, int64_t first, int64_t n, const std::byte* const* in,
           std::byte* const* out) const override {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t f = first + i;
      const double sum = Doubles(totals[0])[i], product = Doubles(totals[1])[i];
      const double mean = Floats(in[1])[f];
      const double inverse = 1 / std::sqrt(static_cast<double>(Floats(in[2])[f]) + epsilon_);
      const double factor = static_cast<double>(Floats(in[0])[f]) * inverse / count_;
      const double b = -factor * inverse * inverse * product;
      Floats(out[0])[f] = static_cast<float>(product * inverse);
      Floats(out[1])[f] = static_cast<float>(sum);
      Doubles(out[2])[f] = factor * count_;
      Doubles(out[3])[f] = b;
      Doubles(out[4])[f] = -factor * sum - mean * b;
    }
  }

 private:
  const double count_, epsilon_;
};

struct InferencePlan : ThunkParams {
  int64_t features = 0;
  double epsilon = 0;
};

// Computes a and b from scale, offset, mean and variance.
void RunInferenceCoefficients(const ThunkParams* plan, const std::byte* const* in, std::byte* const* out,
                              RunContext& /*context*/) {
  const auto& p = *static_cast<const InferencePlan*>(plan);
  for (int64_t f = 0; f < p.features; ++f) {
    const double a = static_cast<double>(Floats(in[0])[f]) / std::sqrt(Floats(in[3])[f] + p.epsilon);
    Doubles(out[0])[f] = a;
    Doubles(out[1])[f] = static_cast<double>(Floats(in[1])[f]) - static_cast<double>(Floats(in[2])[f]) * a;
  }
}

}  // namespace

bool PrepareNorm(CompiledComputationBuilder& b, Instruction norm, ProgramCode* code, NormStep* step, std::string* why) {
  b.set_instruction(norm);
  std::vector<View> operands;
  for (Instruction operand : norm.operands()) operands.push_back(b.leaves(operand)[0]);
  const bool training = norm.opcode() == Opcode::kBatchNormTraining;
  const bool gradient = norm.opcode() == Opcode::kBatchNormGrad;
  std::vector<View> small;  // values of features
  for (size_t k = 1; k < operands.size(); ++k) {
    if (!gradient || k != 4) small.push_back(b.MakeDense(operands[k]));
  }
  const Shape whole = operands[0].shape;
  const int64_t feature = norm.int_attr(Attr::kFeatureIndex);
  const int64_t features = whole.dim(feature);
  const double epsilon = norm.float_attr(Attr::kEpsilon);
  const Shape per_feature = small[0].shape;
  const Shape wide = b.program_shapes().Array(ElementType::kF64, per_feature.dims());
  if (!training && !gradient) {
    auto plan = std::make_unique<InferencePlan>();
    plan->features = features;
    plan->epsilon = epsilon;
    const Shape shapes[] = {wide, wide};
    const ViewList made = b.EmitTo(RunInferenceCoefficients, std::move(plan), small, shapes);
    step->coefficients.assign(made.begin(), made.end());
    return true;
  }
  const double count = static_cast<double>(whole.element_count()) / static_cast<double>(features);
  std::vector<View> views = {operands[0]};
  if (training) {
    // The first elements of the features, and a zero.
    View first = operands[0];
    first.shape = per_feature;
    const int64_t stride = StridesOf(operands[0])[static_cast<size_t>(feature)];
    first.strides = b.NewStrides({stride}, per_feature.dims());
    views.push_back(AlongDimension(b, operands[0], whole, feature, stride));
    small.insert(small.begin(), b.MakeDense(first));
    views.push_back(b.Zeros(b.program_shapes().Array(ElementType::kF32, whole.dims())));
  } else {
    views.push_back(operands[4]);
    views.push_back(AlongDimension(b, small[1], whole, feature, 1));
  }
  std::vector<bool> reduced(static_cast<size_t>(whole.rank()), true);
  reduced[static_cast<size_t>(feature)] = false;
  const std::vector<View> whole_views(views.begin(), views.begin() + (training ? 1 : 2));
  const MemoryOrder order = ChooseOrder(whole.dims(), whole_views);
  std::vector<bool> reduced_in_order;
  for (size_t d : order) reduced_in_order.push_back(reduced[d]);
  for (View& view : views) view = InMemoryOrder(b, view, order);
  ReduceStep sums(b, Permuted(whole.dims(), order), reduced_in_order, views, 0);
  LoopBuilder loop;
  uint16_t inputs[3];
  for (size_t i = 0; i < 3; ++i) inputs[i] = loop.AddInput(ElementType::kF32, sums.RepeatsOf(i));
  const auto widen = [&](uint16_t node) { return loop.AddNode(LoopOp::kConvert, ElementType::kF64, {node}); };
  std::unique_ptr<ReduceFinish> finish;
  std::vector<Shape> shapes = {per_feature, per_feature, wide, wide};
  if (training) {
    // Infinite first elements would make all others NaN.
    const uint16_t finite = loop.AddNode(LoopOp::kIsFinite, ElementType::kPred, {inputs[1]});
    const uint16_t shift = loop.AddNode(LoopOp::kSelect, ElementType::kF32, {finite, inputs[1], inputs[2]});
    const uint16_t difference = loop.AddNode(LoopOp::kSubtract, ElementType::kF64, {widen(inputs[0]), widen(shift)});
    const uint16_t square = loop.AddNode(LoopOp::kMultiply, ElementType::kF64, {difference, difference});
    sums.AddReduction(loop, LoopOp::kAdd, difference);
    sums.AddReduction(loop, LoopOp::kAdd, square);
    finish = std::make_unique<TrainingFinish>(count, epsilon);
  } else {
    const uint16_t g = widen(inputs[1]);
    const uint16_t difference =
        loop.AddNode(LoopOp::kSubtract, ElementType::kF64, {widen(inputs[0]), widen(inputs[2])});
    const uint16_t product = loop.AddNode(LoopOp::kMultiply, ElementType::kF64, {g, difference});
    sums.AddReduction(loop, LoopOp::kAdd, g);
    sums.AddReduction(loop, LoopOp::kAdd, product);
    finish = std::make_unique<GradientFinish>(count, epsilon);
    shapes.push_back(wide);
  }
  ViewList made;
  if (!sums.Emit(loop, small, shapes, std::move(finish), code, &made, &step->program, why)) return false;
  step->results = {made[0], made[1]};
  step->coefficients.assign(made.begin() + 2, made.end());
  return true;
}

void AddNormElements(LoopBuilder& loop, Instruction norm, const std::vector<uint16_t>& coefficients) {
  const auto widen = [&](Instruction value) {
    return loop.AddNode(LoopOp::kConvert, ElementType::kF64, {loop.ValueOf(value)});
  };
  const auto combine = [&](LoopOp op, uint16_t a, uint16_t b) { return loop.AddNode(op, ElementType::kF64, {a, b}); };
  uint16_t sum;
  if (norm.opcode() == Opcode::kBatchNormGrad) {
    sum = combine(LoopOp::kAdd, combine(LoopOp::kMultiply, widen(norm.operand(4)), coefficients[0]),
                  combine(LoopOp::kMultiply, widen(norm.operand(0)), coefficients[1]));
    sum = combine(LoopOp::kAdd, sum, coefficients[2]);
  } else {
    sum = combine(LoopOp::kAdd, combine(LoopOp::kMultiply, widen(norm.operand(0)), coefficients[0]), coefficients[1]);
  }
  loop.SetNode(norm, loop.AddNode(LoopOp::kConvert, ElementType::kF32, {sum}));
}

}  // namespace hlokit::interp::compiled

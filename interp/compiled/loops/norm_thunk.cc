// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/loops/norm_thunk.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "interp/compiled/loops/reduce_thunk.h"
#include "interp/compiled/programs/loop_layout.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/machine/run_context.h"
#include "ir/graph/attribute_views.h"
#include "ir/types/float_types.h"

namespace hlokit::interp::compiled {
namespace {

double* Doubles(std::byte* p) { return reinterpret_cast<double*>(p); }
const double* Doubles(const std::byte* p) { return reinterpret_cast<const double*>(p); }

double ValueAt(ElementType type, const std::byte* array, int64_t i) {
  double value = 0;
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    if constexpr (AnyFloat<T>) value = static_cast<double>(reinterpret_cast<const T*>(array)[i]);
  });
  return value;
}

void SetValueAt(ElementType type, std::byte* array, int64_t i, double value) {
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    if constexpr (AnyFloat<T>) reinterpret_cast<T*>(array)[i] = static_cast<T>(value);
  });
}

// Types of the values of features.
struct FeatureTypes {
  std::vector<ElementType> operands;
  std::vector<ElementType> results;

  double Get(const std::byte* const* in, size_t operand, int64_t feature) const {
    return ValueAt(operands[operand], in[operand], feature);
  }
  void Set(std::byte* const* out, size_t result, int64_t feature, double value) const {
    SetValueAt(results[result], out[result], feature, value);
  }
};

// Sums of differences from the first element, and of their squares; operands: first elements, scale, offset. Results:
// mean, variance, a, b.
class TrainingFinish : public ReduceFinish {
 public:
  TrainingFinish(FeatureTypes types, double count, double epsilon)
      : types_(std::move(types)), count_(count), epsilon_(epsilon) {}
  void Run(const std::byte* const* totals, int64_t first, int64_t n, const std::byte* const* in,
           std::byte* const* out) const override {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t f = first + i;
      const double begin = types_.Get(in, 0, f);
      const double shift = std::isfinite(begin) ? begin : 0.0;
      const double difference = Doubles(totals[0])[i] / count_;
      const double mean = shift + difference;
      double variance = Doubles(totals[1])[i] / count_ - difference * difference;
      if (variance < 0) variance = 0;
      const double a = types_.Get(in, 1, f) / std::sqrt(variance + epsilon_);
      types_.Set(out, 0, f, mean);
      types_.Set(out, 1, f, variance);
      Doubles(out[2])[f] = a;
      Doubles(out[3])[f] = types_.Get(in, 2, f) - mean * a;
    }
  }

 private:
  const FeatureTypes types_;
  const double count_, epsilon_;
};

// Sums of the gradient, and of its product with the difference from the mean; operands: scale, mean, variance. Results:
// gradients of scale and offset, a, b, c.
class GradientFinish : public ReduceFinish {
 public:
  GradientFinish(FeatureTypes types, double count, double epsilon)
      : types_(std::move(types)), count_(count), epsilon_(epsilon) {}
  void Run(const std::byte* const* totals, int64_t first, int64_t n, const std::byte* const* in,
           std::byte* const* out) const override {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t f = first + i;
      const double sum = Doubles(totals[0])[i], product = Doubles(totals[1])[i];
      const double mean = types_.Get(in, 1, f);
      const double inverse = 1 / std::sqrt(types_.Get(in, 2, f) + epsilon_);
      const double factor = types_.Get(in, 0, f) * inverse / count_;
      const double b = -factor * inverse * inverse * product;
      types_.Set(out, 0, f, product * inverse);
      types_.Set(out, 1, f, sum);
      Doubles(out[2])[f] = factor * count_;
      Doubles(out[3])[f] = b;
      Doubles(out[4])[f] = -factor * sum - mean * b;
    }
  }

 private:
  const FeatureTypes types_;
  const double count_, epsilon_;
};

struct InferenceParams : ThunkParams {
  FeatureTypes types;
  int64_t features = 0;
  double epsilon = 0;
};

// Computes a and b from scale, offset, mean and variance.
void RunInferenceCoefficients(const InferenceParams& p, const std::byte* const* in, std::byte* const* out,
                              RunContext& /*context*/) {
  for (int64_t f = 0; f < p.features; ++f) {
    const double a = p.types.Get(in, 0, f) / std::sqrt(p.types.Get(in, 3, f) + p.epsilon);
    Doubles(out[0])[f] = a;
    Doubles(out[1])[f] = p.types.Get(in, 1, f) - p.types.Get(in, 2, f) * a;
  }
}

}  // namespace

absl::StatusOr<NormThunk> PrepareNorm(CompiledComputationBuilder& b, Instruction norm, ProgramCode* code) {
  NormThunk thunk;
  b.set_instruction(norm);
  std::vector<View> operands;
  for (Instruction operand : norm.operands()) operands.push_back(b.leaves(operand)[0]);
  const NormForm& form = *NormFormOf(norm.opcode());
  std::vector<View> small;  // values of features
  for (size_t k = 1; k < operands.size(); ++k) {
    if (static_cast<int64_t>(k) != form.gradient) small.push_back(b.MakeDense(operands[k]));
  }
  const Shape whole = operands[0].shape;
  const int64_t feature = norm.int_attr(Attr::kFeatureIndex);
  const int64_t features = whole.dim(feature);
  const double epsilon = norm.float_attr(Attr::kEpsilon);
  const absl::Span<const int64_t> dims = small[0].dims();
  const Shape wide = b.program_shapes().Array(ElementType::kF64, dims);
  FeatureTypes types;
  if (!form.has_sums) {
    auto params = std::make_unique<InferenceParams>();
    for (const View& view : small) types.operands.push_back(view.type());
    params->types = std::move(types);
    params->features = features;
    params->epsilon = epsilon;
    const Shape shapes[] = {wide, wide};
    const ViewList made = b.EmitTo(kKernel<RunInferenceCoefficients>, std::move(params), small, shapes);
    thunk.coefficients.assign(made.begin(), made.end());
    return thunk;
  }
  const bool training = form.gradient < 0;
  const double count = static_cast<double>(whole.element_count()) / static_cast<double>(features);
  std::vector<View> views = {operands[0]};
  if (training) {
    // The first elements of the features, and a zero.
    View first = operands[0];
    first.shape = b.program_shapes().Array(whole.element_type(), dims);
    const int64_t stride = StridesOf(operands[0])[static_cast<size_t>(feature)];
    first.strides = b.NewStrides({stride}, dims);
    views.push_back(AlongDimension(b, operands[0], whole, feature, stride));
    small.insert(small.begin(), b.MakeDense(first));
    views.push_back(b.Zeros(b.program_shapes().Array(whole.element_type(), whole.dims())));
  } else {
    views.push_back(operands[static_cast<size_t>(form.gradient)]);
    views.push_back(AlongDimension(b, small[1], whole, feature, 1));
  }
  std::vector<bool> reduced(static_cast<size_t>(whole.rank()), true);
  reduced[static_cast<size_t>(feature)] = false;
  const std::vector<View> whole_views(views.begin(), views.begin() + (training ? 1 : 2));
  const MemoryOrder order = ChooseOrder(whole.dims(), whole_views);
  std::vector<bool> reduced_in_order;
  for (size_t d : order) reduced_in_order.push_back(reduced[d]);
  for (View& view : views) view = InMemoryOrder(b, view, order);
  const ElementType input_types[] = {views[0].type(), views[1].type(), views[2].type()};
  ReduceThunkBuilder sums(b, Permuted(whole.dims(), order), reduced_in_order, views, 0);
  LoopBuilder loop;
  uint16_t inputs[3];
  for (size_t i = 0; i < 3; ++i) inputs[i] = loop.AddInput(input_types[i], sums.RepeatsOf(i));
  const auto widen = [&](uint16_t node) { return loop.AddNode(LoopOp::kConvert, ElementType::kF64, {node}); };
  std::unique_ptr<ReduceFinish> finish;
  std::vector<Shape> shapes = {norm.shape().elements()[1], norm.shape().elements()[2], wide, wide};
  for (const View& view : small) types.operands.push_back(view.type());
  types.results = {shapes[0].element_type(), shapes[1].element_type()};
  if (training) {
    // Infinite first elements would make all others NaN.
    const uint16_t finite = loop.AddNode(LoopOp::kIsFinite, ElementType::kPred, {inputs[1]});
    const uint16_t shift = loop.AddNode(LoopOp::kSelect, input_types[0], {finite, inputs[1], inputs[2]});
    const uint16_t difference = loop.AddNode(LoopOp::kSubtract, ElementType::kF64, {widen(inputs[0]), widen(shift)});
    const uint16_t square = loop.AddNode(LoopOp::kMultiply, ElementType::kF64, {difference, difference});
    sums.AddReduction(loop, LoopOp::kAdd, difference);
    sums.AddReduction(loop, LoopOp::kAdd, square);
    finish = std::make_unique<TrainingFinish>(std::move(types), count, epsilon);
  } else {
    const uint16_t g = widen(inputs[1]);
    const uint16_t difference =
        loop.AddNode(LoopOp::kSubtract, ElementType::kF64, {widen(inputs[0]), widen(inputs[2])});
    const uint16_t product = loop.AddNode(LoopOp::kMultiply, ElementType::kF64, {g, difference});
    sums.AddReduction(loop, LoopOp::kAdd, g);
    sums.AddReduction(loop, LoopOp::kAdd, product);
    finish = std::make_unique<GradientFinish>(std::move(types), count, epsilon);
    shapes.push_back(wide);
  }
  const absl::StatusOr<ViewList> made = sums.Emit(loop, small, shapes, std::move(finish), code, &thunk.program);
  if (!made.ok()) return made.status();
  thunk.results = {(*made)[0], (*made)[1]};
  thunk.coefficients.assign(made->begin() + 2, made->end());
  return thunk;
}

void AddNormElements(LoopBuilder& loop, Instruction norm, const std::vector<uint16_t>& coefficients) {
  const auto widen = [&](Instruction value) {
    return loop.AddNode(LoopOp::kConvert, ElementType::kF64, {loop.ValueOf(value)});
  };
  const auto multiply_add = [&](uint16_t a, uint16_t b, uint16_t c) {
    return loop.AddNode(LoopOp::kMultiplyAdd, ElementType::kF64, {a, b, c});
  };
  const int64_t gradient = NormFormOf(norm.opcode())->gradient;
  uint16_t sum = multiply_add(widen(norm.operand(0)), coefficients[gradient < 0 ? 0 : 1], coefficients.back());
  if (gradient >= 0) sum = multiply_add(widen(norm.operand(gradient)), coefficients[0], sum);
  // Narrow results are rounded to f32 first.
  uint16_t result = loop.AddNode(LoopOp::kConvert, ElementType::kF32, {sum});
  const ElementType type = norm.operand(0).shape().element_type();
  if (type != ElementType::kF32) result = loop.AddNode(LoopOp::kConvert, type, {result});
  loop.SetNode(norm, result);
}

}  // namespace hlokit::interp::compiled

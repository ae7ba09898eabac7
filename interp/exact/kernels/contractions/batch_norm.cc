// SPDX-License-Identifier: Apache-2.0
// Batch normalization: inference, training and gradient, in double.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "interp/custom_calls/real_values.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/machine/run_context.h"
#include "ir/ops/attribute.h"

namespace hlokit::interp {
namespace {

// The operand is a dense [outer, features, inner] array.
struct BatchNormParams : ThunkParams {
  double epsilon = 0;
  int64_t outer = 1;
  int64_t features = 1;
  int64_t inner = 1;
  ElementType type = ElementType::kF32;
  std::vector<ElementType> operands;
  std::vector<ElementType> results;

  double At(const std::byte* const* in, size_t operand, int64_t feature) const {
    double v;
    ReadReals(operands[operand], in[operand] + feature * BytesOf(operands[operand]), 1, 1, &v);
    return v;
  }
  void Set(std::byte* const* out, size_t result, int64_t feature, double v) const {
    WriteReals(results[result], &v, 1, out[result] + feature * BytesOf(results[result]), 1);
  }
};

// Calls body(values, n) with chunks of a feature's elements of each of the given arrays. The body may change the first
// chunk, which is then written to `to` (if given).
template <typename Body>
void ForEachChunk(const BatchNormParams& p, int64_t feature, std::initializer_list<const std::byte*> arrays,
                  std::byte* to, Body body) {
  constexpr int64_t kChunk = 256;
  double values[2][kChunk];
  const int64_t bytes = BytesOf(p.type);
  for (int64_t o = 0; o < p.outer; ++o) {
    const int64_t line = (o * p.features + feature) * p.inner;
    for (int64_t i = 0; i < p.inner; i += kChunk) {
      const int64_t n = std::min(kChunk, p.inner - i);
      int k = 0;
      for (const std::byte* array : arrays) ReadReals(p.type, array + (line + i) * bytes, 1, n, values[k++]);
      body(values[0], values[1], n);
      if (to != nullptr) WriteReals(p.type, values[0], n, to + (line + i) * bytes, 1);
    }
  }
}

double Cost(const BatchNormParams& p) { return static_cast<double>(p.outer) * static_cast<double>(p.inner) * 10; }

// Computes inference from operand, scale, offset, mean, variance.
void RunInference(const BatchNormParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  context.ForEach(p.features, Cost(p), [&](int64_t f) {
    const double scale = p.At(in, 1, f) / std::sqrt(p.At(in, 4, f) + p.epsilon);
    const double offset = p.At(in, 2, f);
    const double mean = p.At(in, 3, f);
    ForEachChunk(p, f, {in[0]}, out[0], [&](double* x, const double*, int64_t n) {
      for (int64_t i = 0; i < n; ++i) x[i] = (x[i] - mean) * scale + offset;
    });
  });
}

// Computes training: operand, scale, offset -> result, mean, variance.
void RunTraining(const BatchNormParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  context.ForEach(p.features, 3 * Cost(p), [&](int64_t f) {
    const double count = static_cast<double>(p.outer) * static_cast<double>(p.inner);
    double sum = 0;
    ForEachChunk(p, f, {in[0]}, nullptr, [&](const double* x, const double*, int64_t n) {
      for (int64_t i = 0; i < n; ++i) sum += x[i];
    });
    const double mean = sum / count;
    double squares = 0;
    ForEachChunk(p, f, {in[0]}, nullptr, [&](const double* x, const double*, int64_t n) {
      for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
    });
    const double variance = squares / count;
    const double scale = p.At(in, 1, f) / std::sqrt(variance + p.epsilon);
    const double offset = p.At(in, 2, f);
    ForEachChunk(p, f, {in[0]}, out[0], [&](double* x, const double*, int64_t n) {
      for (int64_t i = 0; i < n; ++i) x[i] = (x[i] - mean) * scale + offset;
    });
    p.Set(out, 1, f, mean);
    p.Set(out, 2, f, variance);
  });
}

// Computes the gradients of operand, scale, offset from operand, scale, mean, variance, gradient of the result.
void RunGrad(const BatchNormParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  context.ForEach(p.features, 2 * Cost(p), [&](int64_t f) {
    const double count = static_cast<double>(p.outer) * static_cast<double>(p.inner);
    const double mean = p.At(in, 2, f);
    const double inverse = 1 / std::sqrt(p.At(in, 3, f) + p.epsilon);
    double sum = 0;
    double product = 0;
    ForEachChunk(p, f, {in[0], in[4]}, nullptr, [&](const double* x, const double* g, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        sum += g[i];
        product += g[i] * (x[i] - mean);
      }
    });
    const double factor = p.At(in, 1, f) * inverse / count;
    ForEachChunk(p, f, {in[0], in[4]}, out[0], [&](double* x, const double* g, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        x[i] = factor * (count * g[i] - sum - (x[i] - mean) * inverse * inverse * product);
      }
    });
    p.Set(out, 1, f, product * inverse);
    p.Set(out, 2, f, sum);
  });
}

void Prepare(CompiledComputationBuilder& b, size_t operands, size_t results, std::initializer_list<size_t> whole,
             Kernel kernel) {
  const Instruction instruction = b.instruction();
  auto params = std::make_unique<BatchNormParams>();
  std::vector<View> views;
  for (size_t i = 0; i < operands; ++i) views.push_back(b.MakeDense(b.operand(static_cast<int64_t>(i))));
  std::vector<Shape> shapes;
  AppendLeaves(b.shape(), &shapes);
  const Shape operand = views[0].shape;
  const int64_t feature = instruction.int_attr(Attr::kFeatureIndex);
  bool fits = shapes.size() == results && feature >= 0 && feature < operand.rank() && IsFloat(operand.element_type());
  if (fits) {
    for (int64_t d = 0; d < feature; ++d) params->outer *= operand.dim(d);
    params->features = operand.dim(feature);
    for (int64_t d = feature + 1; d < operand.rank(); ++d) params->inner *= operand.dim(d);
  }
  for (size_t i = 0; fits && i < operands; ++i) {
    const bool is_whole = std::find(whole.begin(), whole.end(), i) != whole.end();
    fits = IsFloat(views[i].type()) && views[i].count() == (is_whole ? operand.element_count() : params->features) &&
           (!is_whole || views[i].type() == operand.element_type());
    params->operands.push_back(views[i].type());
  }
  for (size_t i = 0; fits && i < results; ++i) {
    fits = IsFloat(shapes[i].element_type()) &&
           shapes[i].element_count() == (i == 0 ? operand.element_count() : params->features) &&
           (i != 0 || shapes[i].element_type() == operand.element_type());
    params->results.push_back(shapes[i].element_type());
  }
  if (!fits) {
    b.FailMismatch("a floating-point operand 0 and one value for each feature in the others");
    return;
  }
  params->epsilon = instruction.float_attr(Attr::kEpsilon);
  params->type = operand.element_type();
  b.Emit(kernel, std::move(params), views);
}

}  // namespace

void PrepareBatchNormInference(CompiledComputationBuilder& b) { Prepare(b, 5, 1, {0}, kKernel<RunInference>); }
void PrepareBatchNormTraining(CompiledComputationBuilder& b) { Prepare(b, 3, 3, {0}, kKernel<RunTraining>); }
void PrepareBatchNormGrad(CompiledComputationBuilder& b) { Prepare(b, 5, 3, {0, 4}, kKernel<RunGrad>); }

}  // namespace hlokit::interp

// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/blocks.h"

#include <cmath>
#include <limits>

#include "tracer/graph/deterministic_init.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::models {

Shape S64Shape(Dims dims) { return CurrentDevice()->ArrayShape(ElementType::kS64, dims); }
Shape F32Shape(Dims dims) { return CurrentDevice()->ArrayShape(ElementType::kF32, dims); }

Tensor Dropout(const LocatedTensor& x, double rate, bool training) {
  return training && rate > 0 ? InvokeOp(Op::dropout, x, rate, true) : x.tensor;
}

Tensor SplitHeads(const Tensor& x, int64_t heads) {
  return Transpose(View(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
}

Tensor MergeHeads(const Tensor& x) {
  const Tensor y = Transpose(x, 1, 2);
  return Reshape(y, {y.size(0), y.size(1), y.size(2) * y.size(3)});
}

Tensor RepeatHeads(const Tensor& x, int64_t times) {
  const Tensor wide = Expand(Unsqueeze(x, 2), {x.size(0), x.size(1), times, x.size(2), x.size(3)});
  return Reshape(wide, {x.size(0), x.size(1) * times, x.size(2), x.size(3)});
}

Tensor Attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  if (options.kernel) {
    const Tensor scaled = q / Scalar(std::sqrt(static_cast<double>(q.size(-1))));
    // Under autocast rotary embeddings make queries and keys wider than the values.
    return InvokeOp(Op::splash_attention, To(scaled, v.dtype()), To(k, v.dtype()), v, options.above.defined());
  }
  Tensor scores = Matmul(q, Transpose(k, -1, -2));
  if (options.scale == 0) {
    scores = scores / Scalar(std::sqrt(static_cast<double>(q.size(-1))));
  } else if (options.scale != 1) {
    scores = scores * Scalar(options.scale);
  }
  if (options.bias.defined()) scores = scores + options.bias;
  if (options.above.defined()) {
    scores = MaskedFill(scores, options.above, -std::numeric_limits<double>::infinity());
  }
  const Tensor weights = InvokeOp(Op::softmax_int, scores, -1);
  return Matmul(Dropout(weights, options.dropout, options.training), v);
}

Tensor Positions(nn::ParameterRegistry* registry, int64_t n) {
  return registry->Constant(S64Shape({n}), [n](Literal* positions) {
    for (int64_t t = 0; t < n; ++t) positions->values<int64_t>()[t] = t;
  });
}

Tensor Above(nn::ParameterRegistry* registry, int64_t n) {
  return registry->Constant(CurrentDevice()->ArrayShape(ElementType::kPred, {n, n}), [n](Literal* above) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) above->values<uint8_t>()[i * n + j] = 1;
    }
  });
}

Tensor RotaryTable(nn::ParameterRegistry* registry, int64_t n, int64_t width, double (*function)(double)) {
  return registry->Constant(F32Shape({n, width}), [n, width, function](Literal* table) {
    for (int64_t t = 0; t < n; ++t) {
      for (int64_t j = 0; j < width; ++j) {
        const double exponent = -2.0 * static_cast<double>(j % (width / 2)) / static_cast<double>(width);
        const double angle = static_cast<double>(t) * std::pow(10000.0, exponent);
        table->values<float>()[t * width + j] = static_cast<float>(function(angle));
      }
    }
  });
}

Tensor Rotate(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  const int64_t half = x.size(-1) / 2;
  const Tensor turned = Cat({-Slice(x, -1, half, 2 * half), Slice(x, -1, 0, half)}, -1);
  return x * cos + turned * sin;
}

Tensor SelfAttention::operator()(const Tensor& x, const AttentionOptions& options) const {
  const Tensor queries = SplitHeads(q(x), heads);
  const Tensor keys = SplitHeads(k(x), heads);
  const Tensor values = SplitHeads(v(x), heads);
  return o(MergeHeads(Attention(queries, keys, values, options)));
}

BatchArray RandomTokens(const ModelConfig& config) {
  const auto fill = [seq = config.seq, vocab = config.vocab](int64_t first, Literal* ids) {
    const size_t before = static_cast<size_t>(first * seq);
    const absl::Span<int64_t> values = ids->values<int64_t>();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = HashWord(1001, static_cast<uint32_t>(before + i)) % static_cast<uint32_t>(vocab);
    }
  };
  return {"input_ids", S64Shape({config.batch, config.seq}), config.vocab, fill};
}

std::pair<Tensor, Tensor> LanguageModel::Predictions(const Tensor& logits, const Batch& batch) const {
  const int64_t t = config_.seq - 1;
  return {Reshape(Slice(logits, 1, 0, t), {config_.batch * t, config_.vocab}),
          Reshape(Slice(batch.labels, 1, 1, config_.seq), {config_.batch * t})};
}

std::vector<BatchArray> LanguageModel::BatchArrays() const { return {RandomTokens(config_)}; }

}  // namespace hlokit::lazy::models

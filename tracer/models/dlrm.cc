// SPDX-License-Identifier: Apache-2.0
// DLRM, which predicts clicks from numbers and categories, with the parameter names of its reference implementation.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tracer/graph/deterministic_init.h"
#include "tracer/models/blocks.h"
#include "tracer/models/model.h"
#include "tracer/nn/layers.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::models {
namespace {

using nn::Embedding;
using nn::Linear;
using nn::ModuleScope;

constexpr int64_t kNumbers = 13;  // of the Criteo data set
constexpr int64_t kCategories = 26;

// Linear layers with relu in between; in a torch.nn.Sequential, so layer i has the name 2 i.
std::vector<Linear> Perceptron(const ModuleScope& s, const std::vector<int64_t>& widths) {
  std::vector<Linear> layers;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    layers.emplace_back(s[static_cast<int64_t>(2 * i)], widths[i], widths[i + 1]);
  }
  return layers;
}

class Dlrm : public Model {
 public:
  Dlrm(const ModelConfig& c, nn::ParameterRegistry* r) : config_(c) {
    const ModuleScope s(r);
    for (int64_t i = 0; i < kCategories; ++i) tables_.emplace_back(s["emb_l"][i], c.vocab, c.hidden);
    bottom_ = Perceptron(s["bot_l"], {kNumbers, 512, 256, 64, c.hidden});
    constexpr int64_t kVectors = kCategories + 1, kPairs = kVectors * (kVectors - 1) / 2;
    top_ = Perceptron(s["top_l"], {c.hidden + kPairs, 512, 256, 1});
    pairs_ = r->Constant(S64Shape({kPairs}), [](Literal* out) {
      int64_t n = 0;
      for (int64_t i = 0; i < kVectors; ++i) {
        for (int64_t j = 0; j < i; ++j) out->values<int64_t>()[static_cast<size_t>(n++)] = i * kVectors + j;
      }
    });
    // The bottom layers take numbers and pass the categories on.
    for (size_t i = 0; i < bottom_.size(); ++i) {
      AddStage([this, i](Tensors x, bool) {
        x[0] = Relu(bottom_[i](x[0]));
        return x;
      });
    }
    AddStage([this](Tensors x, bool) {
      x[0] = Interact(x[0], x[1]);
      x.resize(1);
      return x;
    });
    for (size_t i = 0; i < top_.size(); ++i) {
      AddStage([this, i](Tensors x, bool) {
        x[0] = i + 1 < top_.size() ? Relu(top_[i](x[0])) : top_[i](x[0]);
        return x;
      });
    }
  }

  // A click, as the class 1, if the logit is positive.
  std::pair<Tensor, Tensor> Predictions(const Tensor& logits, const Batch& batch) const override {
    return {Cat({ZerosLike(logits), logits}, 1), batch.labels};
  }
  Tensor Loss(const Tensor& logits, const Batch& batch, double label_smoothing) const override {
    Tensor labels = To(Unsqueeze(batch.labels, 1), logits.dtype());
    if (label_smoothing > 0) labels = labels * Scalar(1 - label_smoothing) + Scalar(label_smoothing / 2);
    return InvokeOp(Op::binary_cross_entropy_with_logits, logits, labels);
  }

  std::vector<BatchArray> BatchArrays() const override {
    std::vector<BatchArray> arrays = ImageArrays(config_, {kNumbers});
    arrays[0].name = "numbers";
    const auto fill = [vocab = config_.vocab](int64_t first, Literal* out) {
      const absl::Span<int64_t> values = out->values<int64_t>();
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = HashWord(1001, static_cast<uint32_t>(first * kCategories) + static_cast<uint32_t>(i)) %
                    static_cast<uint32_t>(vocab);
      }
    };
    arrays.insert(arrays.begin() + 1, {"categories", S64Shape({config_.batch, kCategories}), config_.vocab, fill});
    return arrays;
  }

 private:
  // Returns the products of all pairs of vectors, after the first one.
  Tensor Interact(const Tensor& dense, const Tensor& categories) const {
    Tensors vectors = {dense};
    for (size_t i = 0; i < tables_.size(); ++i) {
      vectors.push_back(tables_[i](Select(categories, 1, static_cast<int64_t>(i))));
    }
    const Tensor all = InvokeOp(Op::stack, std::move(vectors), 1);
    const Tensor products = IndexSelect(Flatten(Matmul(all, Transpose(all, 1, 2)), 1), 1, pairs_);
    return Cat({dense, products}, 1);
  }

  ModelConfig config_;
  std::vector<Embedding> tables_;
  std::vector<Linear> bottom_, top_;
  Tensor pairs_;  // of vectors, as indices into their products
};

}  // namespace

std::unique_ptr<Model> MakeDlrm(const ModelConfig& c, nn::ParameterRegistry* registry) {
  return std::make_unique<Dlrm>(c, registry);
}

}  // namespace hlokit::lazy::models

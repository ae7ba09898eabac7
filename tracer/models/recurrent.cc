// SPDX-License-Identifier: Apache-2.0
// A language model of LSTM layers, with the parameter names of torch.nn.LSTM.
#include <memory>
#include <utility>
#include <vector>

#include "tracer/models/blocks.h"
#include "tracer/models/model.h"
#include "tracer/nn/layers.h"

namespace hlokit::lazy::models {
namespace {

using nn::Embedding;
using nn::Linear;
using nn::ModuleScope;
using nn::ParameterKind;

// Gates are in the order input, forget, cell, output.
struct LstmLayer {
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  int64_t hidden = 0;

  LstmLayer(const ModuleScope& s, int64_t layer, int64_t in, int64_t width) : hidden(width) {
    const std::string suffix = "_l" + std::to_string(layer);
    weight_ih = s.Parameter("weight_ih" + suffix, {4 * width, in}, ParameterKind::kWeight);
    weight_hh = s.Parameter("weight_hh" + suffix, {4 * width, width}, ParameterKind::kWeight);
    bias_ih = s.Parameter("bias_ih" + suffix, {4 * width}, ParameterKind::kBias);
    bias_hh = s.Parameter("bias_hh" + suffix, {4 * width}, ParameterKind::kBias);
  }

  // [batch, t, in] -> [batch, t, hidden], from a state of zeros.
  Tensor operator()(const Tensor& x) const {
    const Tensor from_input = lazy::Linear(x, weight_ih, bias_ih);  // of all positions at once
    Tensor h, c;
    Tensors outputs;
    for (int64_t t = 0; t < x.size(1); ++t) {
      Tensor gates = Select(from_input, 1, t);
      gates = h.defined() ? gates + lazy::Linear(h, weight_hh, bias_hh) : gates + bias_hh;
      const auto gate = [&](int64_t k) { return Slice(gates, 1, k * hidden, (k + 1) * hidden); };
      const Tensor added = Sigmoid(gate(0)) * Tanh(gate(2));
      c = c.defined() ? Sigmoid(gate(1)) * c + added : added;
      h = Sigmoid(gate(3)) * Tanh(c);
      outputs.push_back(h);
    }
    return InvokeOp(Op::stack, std::move(outputs), 1);
  }
};

class LstmModel : public LanguageModel {
 public:
  LstmModel(const ModelConfig& c, nn::ParameterRegistry* r) : LanguageModel(c) {
    const ModuleScope s(r);
    encoder_ = Embedding(s["encoder"], c.vocab, c.hidden);
    for (int64_t i = 0; i < c.layers; ++i) layers_.emplace_back(s["rnn"], i, c.hidden, c.hidden);
    decoder_ = Linear(s["decoder"], c.hidden, c.vocab);
  }

  Tensor Logits(const Batch& batch, bool training) const override {
    Tensor x = Dropout(encoder_(batch.inputs[0]), config_.dropout, training);
    for (const LstmLayer& layer : layers_) x = Dropout(layer(x), config_.dropout, training);
    return decoder_(x);
  }

 private:
  Embedding encoder_;
  std::vector<LstmLayer> layers_;
  Linear decoder_;
};

}  // namespace

std::unique_ptr<Model> MakeLstm(const ModelConfig& c, nn::ParameterRegistry* registry) {
  return std::make_unique<LstmModel>(c, registry);
}

}  // namespace hlokit::lazy::models

// SPDX-License-Identifier: Apache-2.0
// A language model of LSTM layers, with the parameter names of torch.nn.LSTM.
#include <memory>
#include <optional>
#include <utility>

#include "tracer/models/blocks.h"
#include "tracer/models/model.h"
#include "tracer/nn/layers.h"
#include "tracer/nn/lstm.h"

namespace hlokit::lazy::models {
namespace {

using nn::Embedding;
using nn::Linear;
using nn::ModuleScope;

class LstmModel : public LanguageModel {
 public:
  LstmModel(const ModelConfig& c, nn::ParameterRegistry* r) : LanguageModel(c) {
    const ModuleScope s(r);
    encoder_ = Embedding(s["encoder"], c.vocab, c.hidden);
    nn::LstmOptions options;
    options.num_layers = c.layers;
    options.batch_first = true;
    options.dropout = c.dropout;
    rnn_.emplace(s["rnn"], c.hidden, c.hidden, options);
    decoder_ = Linear(s["decoder"], c.hidden, c.vocab);
    AddStage([this](Tensors x, bool training) {
      x[0] = Dropout(encoder_(x[0]), config_.dropout, training);
      return x;
    });
    AddStage([this](Tensors x, bool training) {
      x[0] = Dropout((*rnn_)(x[0], training).output, config_.dropout, training);
      return x;
    });
    AddStage([this](Tensors x, bool) {
      x[0] = decoder_(x[0]);
      return x;
    });
  }

 private:
  Embedding encoder_;
  std::optional<nn::Lstm> rnn_;
  Linear decoder_;
};

}  // namespace

std::unique_ptr<Model> MakeLstm(const ModelConfig& c, nn::ParameterRegistry* registry) {
  return std::make_unique<LstmModel>(c, registry);
}

}  // namespace hlokit::lazy::models

// SPDX-License-Identifier: Apache-2.0
// BERT, GPT-2 and ViT, of any size.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tracer/graph/deterministic_init.h"
#include "tracer/models/blocks.h"
#include "tracer/models/model.h"
#include "tracer/nn/layers.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::models {
namespace {

using nn::Conv2d;
using nn::Embedding;
using nn::LayerNorm;
using nn::Linear;
using nn::ModuleScope;
using nn::ParameterKind;

class Gpt2 : public LanguageModel {
 public:
  Gpt2(const ModelConfig& c, nn::ParameterRegistry* r) : LanguageModel(c) {
    const ModuleScope s(r);
    tok_ = Embedding(s["tok"], c.vocab, c.hidden);
    pos_ = Embedding(s["pos"], c.seq, c.hidden);
    for (int64_t i = 0; i < c.layers; ++i) {
      const ModuleScope b = s["blocks"][i];
      blocks_.push_back({LayerNorm(b["ln1"], c.hidden), Linear(b["qkv"], c.hidden, 3 * c.hidden),
                         Linear(b["proj"], c.hidden, c.hidden), LayerNorm(b["ln2"], c.hidden),
                         Linear(b["fc1"], c.hidden, c.ffn_hidden), Linear(b["fc2"], c.ffn_hidden, c.hidden)});
    }
    ln_ = LayerNorm(s["ln"], c.hidden);
    positions_ = Positions(r, c.seq);
    above_ = Above(r, c.seq);
  }
  Tensor Logits(const Batch& batch, bool training) const override {
    const auto dropped = [&](const Tensor& x) { return Dropout(x, config_.dropout, training); };
    AttentionOptions attention;
    attention.above = above_;
    attention.dropout = config_.dropout;
    attention.training = training;
    Tensor x = dropped(tok_(batch.inputs[0]) + pos_(positions_));
    for (const Block& b : blocks_) {
      const Outputs parts = InvokeOpMultiOutput(Op::split_Tensor, b.qkv(b.ln1(x)), config_.hidden, 2);
      if (parts.size() != 3) return Tensor();
      const Tensor q = SplitHeads(parts[0], config_.heads);
      const Tensor k = SplitHeads(parts[1], config_.heads);
      const Tensor v = SplitHeads(parts[2], config_.heads);
      x = x + dropped(b.proj(MergeHeads(Attention(q, k, v, attention))));
      x = x + dropped(b.fc2(Gelu(b.fc1(b.ln2(x)), "tanh")));
    }
    return InvokeOp(Op::linear, ln_(x), tok_.weight);
  }

 private:
  struct Block {
    LayerNorm ln1;
    Linear qkv, proj;
    LayerNorm ln2;
    Linear fc1, fc2;
  };
  Embedding tok_, pos_;
  std::vector<Block> blocks_;
  LayerNorm ln_;
  Tensor positions_, above_;
};

// Masked-token prediction with an output tied to the token table.
class Bert : public Model {
 public:
  Bert(const ModelConfig& c, nn::ParameterRegistry* r) : config_(c) {
    const ModuleScope s(r);
    bias_ = s.Parameter("bias", {c.vocab}, ParameterKind::kBias);
    tok_ = Embedding(s["tok"], c.vocab, c.hidden);
    pos_ = Embedding(s["pos"], c.seq, c.hidden);
    typ_ = Embedding(s["typ"], 2, c.hidden);
    ln_ = LayerNorm(s["ln"], c.hidden, 1e-12);
    for (int64_t i = 0; i < c.layers; ++i) {
      const ModuleScope b = s["layers"][i];
      blocks_.push_back({SelfAttention(b["attn"], c.hidden, c.heads), LayerNorm(b["ln1"], c.hidden, 1e-12),
                         Linear(b["fc1"], c.hidden, c.ffn_hidden), Linear(b["fc2"], c.ffn_hidden, c.hidden),
                         LayerNorm(b["ln2"], c.hidden, 1e-12)});
    }
    dense_ = Linear(s["dense"], c.hidden, c.hidden);
    head_ln_ = LayerNorm(s["head_ln"], c.hidden, 1e-12);
    positions_ = Positions(r, c.seq);
  }
  Tensor Logits(const Batch& batch, bool training) const override {
    const auto dropped = [&](const Tensor& x) { return Dropout(x, config_.dropout, training); };
    AttentionOptions attention;
    attention.bias = batch.inputs[2];
    attention.dropout = config_.dropout;
    attention.training = training;
    Tensor x = dropped(ln_(tok_(batch.inputs[0]) + pos_(positions_) + typ_(batch.inputs[1])));
    for (const Block& b : blocks_) {
      x = b.ln1(x + dropped(b.attn(x, attention)));
      x = b.ln2(x + dropped(b.fc2(Gelu(b.fc1(x)))));
    }
    return lazy::Linear(head_ln_(Gelu(dense_(x))), tok_.weight, bias_);
  }
  std::pair<Tensor, Tensor> Predictions(const Tensor& logits, const Batch& batch) const override {
    const int64_t n = config_.batch * config_.seq;
    return {Reshape(logits, {n, config_.vocab}), Reshape(batch.labels, {n})};
  }
  bool predicts_tokens() const override { return true; }
  Batch MakeBatch(Tracer& tracer, int64_t first) const override {
    const int64_t n = config_.batch, t = config_.seq;
    const auto from_tokens = [&](Shape shape, auto&& element) {
      return tracer.FromGenerator(shape, [config = config_, first, element](Literal* out) {
        using Element = decltype(element(Token()));
        for (int64_t i = 0; i < config.batch * config.seq; ++i) {
          out->values<Element>()[i] = element(TokenAt(config, first + i / config.seq, i % config.seq));
        }
      });
    };
    const Tensor ids = from_tokens(S64Shape({n, t}), [](const Token& token) { return token.id; });
    const Tensor types = from_tokens(S64Shape({n, t}), [](const Token& token) { return token.type; });
    const Tensor labels = from_tokens(S64Shape({n, t}), [](const Token& token) { return token.label; });
    Tensor bias = from_tokens(F32Shape({n, 1, 1, t}), [](const Token& token) { return token.bias; });
    if (config_.type != ElementType::kF32) bias = To(bias, config_.type);
    return {{ids, types, bias}, labels};
  }

 private:
  struct Token {
    int64_t id = 0, type = 0, label = 0;
    float bias = 0;  // of attention to it
  };
  // Every other sequence is three tokens shorter; every fifth token is masked.
  static Token TokenAt(const ModelConfig& config, int64_t example, int64_t k) {
    const int64_t t = config.seq;
    const int64_t real = example % 2 == 0 ? t : std::max<int64_t>(1, t - 3);
    const uint32_t number = static_cast<uint32_t>(example * t + k);
    const int64_t token = 4 + HashWord(1001, number) % static_cast<uint32_t>(config.vocab - 4);
    const bool masked = k < real && k % 5 == 2;
    return {masked ? 3 : k >= real ? 0 : token, k >= t / 2, masked ? token : -100, k < real ? 0.0f : -10000.0f};
  }

  struct Block {
    SelfAttention attn;
    LayerNorm ln1;
    Linear fc1, fc2;
    LayerNorm ln2;
  };
  ModelConfig config_;
  Tensor bias_;
  Embedding tok_, pos_, typ_;
  LayerNorm ln_;
  std::vector<Block> blocks_;
  Linear dense_;
  LayerNorm head_ln_;
  Tensor positions_;
};

class Vit : public Model {
 public:
  Vit(const ModelConfig& c, nn::ParameterRegistry* r) : config_(c) {
    const ModuleScope s(r);
    const int64_t side = c.image / c.patch;
    cls_ = s.Parameter("cls", {1, 1, c.hidden}, ParameterKind::kWeight);
    pos_ = s.Parameter("pos", {1, side * side + 1, c.hidden}, ParameterKind::kWeight);
    patch_ = Conv2d(s["patch"], 3, c.hidden, c.patch, c.patch);
    for (int64_t i = 0; i < c.layers; ++i) {
      const ModuleScope b = s["blocks"][i];
      blocks_.push_back({LayerNorm(b["ln1"], c.hidden), SelfAttention(b["attn"], c.hidden, c.heads),
                         LayerNorm(b["ln2"], c.hidden), Linear(b["fc1"], c.hidden, c.ffn_hidden),
                         Linear(b["fc2"], c.ffn_hidden, c.hidden)});
    }
    ln_ = LayerNorm(s["ln"], c.hidden);
    head_ = Linear(s["head"], c.hidden, c.classes);
  }
  Tensor Logits(const Batch& batch, bool training) const override {
    const auto dropped = [&](const Tensor& x) { return Dropout(x, config_.dropout, training); };
    AttentionOptions attention;
    attention.dropout = config_.dropout;
    attention.training = training;
    const Tensor patches = Transpose(Flatten(patch_(batch.inputs[0]), 2), 1, 2);
    Tensor x = dropped(Cat({Expand(cls_, {config_.batch, -1, -1}), patches}, 1) + pos_);
    for (const Block& b : blocks_) {
      x = x + dropped(b.attn(b.ln1(x), attention));
      x = x + dropped(b.fc2(dropped(Gelu(b.fc1(b.ln2(x))))));
    }
    return head_(Select(ln_(x), 1, 0));
  }
  std::pair<Tensor, Tensor> Predictions(const Tensor& logits, const Batch& batch) const override {
    return {logits, batch.labels};
  }
  Batch MakeBatch(Tracer& tracer, int64_t first) const override {
    return ImageBatch(tracer, config_, {3, config_.image, config_.image}, first);
  }

 private:
  struct Block {
    LayerNorm ln1;
    SelfAttention attn;
    LayerNorm ln2;
    Linear fc1, fc2;
  };
  ModelConfig config_;
  Tensor cls_, pos_;
  Conv2d patch_;
  std::vector<Block> blocks_;
  LayerNorm ln_;
  Linear head_;
};

}  // namespace

std::unique_ptr<Model> MakeTransformer(const ModelConfig& c, nn::ParameterRegistry* registry) {
  if (c.name == "vit") return std::make_unique<Vit>(c, registry);
  if (c.name == "gpt2") return std::make_unique<Gpt2>(c, registry);
  return std::make_unique<Bert>(c, registry);
}

}  // namespace hlokit::lazy::models

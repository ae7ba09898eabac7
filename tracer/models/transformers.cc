// SPDX-License-Identifier: Apache-2.0
// BERT, GPT-2 and ViT, of any size.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tracer/graph/deterministic_init.h"
#include "tracer/graph/literal_scalar.h"
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
    AddStage([this](Tensors x, bool training) {
      x[0] = Dropout(tok_(x[0]) + pos_(positions_), config_.dropout, training);
      return x;
    });
    for (size_t i = 0; i < blocks_.size(); ++i) {
      AddStage([this, i](Tensors x, bool training) {
        x[0] = Apply(blocks_[i], x[0], training);
        return x;
      });
    }
    AddStage([this](Tensors x, bool) {
      x[0] = InvokeOp(Op::linear, ln_(x[0]), tok_.weight);
      return x;
    });
  }

 private:
  struct Block {
    LayerNorm ln1;
    Linear qkv, proj;
    LayerNorm ln2;
    Linear fc1, fc2;
  };
  Tensor Apply(const Block& b, Tensor x, bool training) const {
    const auto dropped = [&](const Tensor& y) { return Dropout(y, config_.dropout, training); };
    AttentionOptions attention;
    attention.above = above_;
    attention.dropout = config_.dropout;
    attention.training = training;
    const Outputs parts = InvokeOpMultiOutput(Op::split_Tensor, b.qkv(b.ln1(x)), config_.hidden, 2);
    if (parts.size() != 3) return Tensor();
    const Tensor q = SplitHeads(parts[0], config_.heads);
    const Tensor k = SplitHeads(parts[1], config_.heads);
    const Tensor v = SplitHeads(parts[2], config_.heads);
    x = x + dropped(b.proj(MergeHeads(Attention(q, k, v, attention))));
    return x + dropped(b.fc2(Gelu(b.fc1(b.ln2(x)), "tanh")));
  }

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
    // Takes tokens, their types and the bias of attention to them; blocks take the hidden states and the bias.
    AddStage([this](Tensors x, bool training) {
      const Tensor embedded = ln_(tok_(x[0]) + pos_(positions_) + typ_(x[1]));
      x.erase(x.begin());
      x[0] = Dropout(embedded, config_.dropout, training);
      return x;
    });
    for (size_t i = 0; i < blocks_.size(); ++i) {
      AddStage([this, i](Tensors x, bool training) {
        const auto dropped = [&](const Tensor& y) { return Dropout(y, config_.dropout, training); };
        const Block& b = blocks_[i];
        AttentionOptions attention;
        attention.bias = x[1];
        attention.dropout = config_.dropout;
        attention.training = training;
        x[0] = b.ln1(x[0] + dropped(b.attn(x[0], attention)));
        x[0] = b.ln2(x[0] + dropped(b.fc2(Gelu(b.fc1(x[0])))));
        return x;
      });
    }
    AddStage([this](Tensors x, bool) {
      x[0] = lazy::Linear(head_ln_(Gelu(dense_(x[0]))), tok_.weight, bias_);
      return x;
    });
  }
  std::pair<Tensor, Tensor> Predictions(const Tensor& logits, const Batch& batch) const override {
    const int64_t n = config_.batch * config_.seq;
    return {Reshape(logits, {n, config_.vocab}), Reshape(batch.labels, {n})};
  }
  bool predicts_tokens() const override { return true; }
  std::vector<BatchArray> BatchArrays() const override {
    const Shape tokens = S64Shape({config_.batch, config_.seq});
    const Shape bias = F32Shape({config_.batch, 1, 1, config_.seq});
    const auto from_tokens = [&](std::string_view name, Shape shape, int64_t limit, auto&& element) -> BatchArray {
      return {name, shape, limit, [config = config_, element](int64_t first, Literal* out) {
                using Element = decltype(element(Token()));
                for (int64_t i = 0; i < config.batch * config.seq; ++i) {
                  out->values<Element>()[i] = element(TokenAt(config, first + i / config.seq, i % config.seq));
                }
              }};
    };
    BatchArray attention = from_tokens("attention_bias", bias, 0, [](const Token& token) { return token.bias; });
    if (config_.type != ElementType::kF32) {
      attention.shape = CurrentDevice()->ArrayShape(config_.type, bias.dims());
      attention.fill = [bias, shape = attention.shape, fill = attention.fill](int64_t first, Literal* out) {
        Literal values = Literal::Zeros(bias);
        fill(first, &values);
        *out = Converted(values, shape);
      };
    }
    return {from_tokens("input_ids", tokens, config_.vocab, [](const Token& token) { return token.id; }),
            from_tokens("token_type_ids", tokens, 2, [](const Token& token) { return token.type; }),
            std::move(attention),
            from_tokens("labels", tokens, config_.vocab, [](const Token& token) { return token.label; })};
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
    AddStage([this](Tensors x, bool training) {
      const Tensor patches = Transpose(Flatten(patch_(x[0]), 2), 1, 2);
      const Tensor all = Cat({Expand(cls_, {config_.batch, -1, -1}), patches}, 1);
      x[0] = Dropout(all + pos_, config_.dropout, training);
      return x;
    });
    for (size_t i = 0; i < blocks_.size(); ++i) {
      AddStage([this, i](Tensors x, bool training) {
        const auto dropped = [&](const Tensor& y) { return Dropout(y, config_.dropout, training); };
        const Block& b = blocks_[i];
        AttentionOptions attention;
        attention.dropout = config_.dropout;
        attention.training = training;
        x[0] = x[0] + dropped(b.attn(b.ln1(x[0]), attention));
        x[0] = x[0] + dropped(b.fc2(dropped(Gelu(b.fc1(b.ln2(x[0]))))));
        return x;
      });
    }
    AddStage([this](Tensors x, bool) {
      x[0] = head_(Select(ln_(x[0]), 1, 0));
      return x;
    });
  }
  std::pair<Tensor, Tensor> Predictions(const Tensor& logits, const Batch& batch) const override {
    return {logits, batch.labels};
  }
  std::vector<BatchArray> BatchArrays() const override {
    return ImageArrays(config_, {3, config_.image, config_.image});
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

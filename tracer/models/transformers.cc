// SPDX-License-Identifier: Apache-2.0
// BERT, GPT-2, Llama and ViT, of any size.
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "tracer/graph/deterministic_init.h"
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
using nn::RmsNorm;

Shape S64Shape(Dims dims) { return CurrentDevice()->ArrayShape(ElementType::kS64, dims); }
Shape F32Shape(Dims dims) { return CurrentDevice()->ArrayShape(ElementType::kF32, dims); }

// [batch, t, hidden] -> [batch, heads, t, width]
Tensor SplitHeads(const Tensor& x, int64_t heads) {
  return Transpose(View(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
}
Tensor MergeHeads(const Tensor& x) {
  const Tensor y = Transpose(x, 1, 2);
  return Reshape(y, {y.size(0), y.size(1), y.size(2) * y.size(3)});
}
// Returns softmax(q k' / sqrt(width) + bias) v, or with the elements marked by `above` masked.
Tensor Attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias, const Tensor& above) {
  Tensor scores = Matmul(q, Transpose(k, -1, -2)) / Scalar(std::sqrt(static_cast<double>(q.size(-1))));
  if (bias.defined()) scores = scores + bias;
  if (above.defined()) scores = MaskedFill(scores, above, -std::numeric_limits<double>::infinity());
  return Matmul(InvokeOp(Op::softmax_int, scores, -1), v);
}

Tensor Positions(nn::ParameterRegistry* registry, int64_t n) {
  return registry->Constant(S64Shape({n}), [n](Literal* positions) {
    for (int64_t t = 0; t < n; ++t) positions->values<int64_t>()[t] = t;
  });
}
// Returns the mask above[i][j] = j > i.
Tensor Above(nn::ParameterRegistry* registry, int64_t n) {
  return registry->Constant(CurrentDevice()->ArrayShape(ElementType::kPred, {n, n}), [n](Literal* above) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) above->values<uint8_t>()[i * n + j] = 1;
    }
  });
}

// Rotary embedding: returns a function of angles by position and index in the first half of the width, twice.
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

struct SelfAttention {
  Linear q, k, v, o;
  int64_t heads = 1;

  SelfAttention(const ModuleScope& s, int64_t hidden, int64_t head_count)
      : q(s["q"], hidden, hidden),
        k(s["k"], hidden, hidden),
        v(s["v"], hidden, hidden),
        o(s["o"], hidden, hidden),
        heads(head_count) {}
  Tensor operator()(const Tensor& x, const Tensor& bias) const {
    const Tensor queries = SplitHeads(q(x), heads);
    const Tensor keys = SplitHeads(k(x), heads);
    const Tensor values = SplitHeads(v(x), heads);
    return o(MergeHeads(Attention(queries, keys, values, bias, Tensor())));
  }
};

// Next-token prediction.
class LanguageModel : public Model {
 public:
  explicit LanguageModel(const ModelConfig& c) : config_(c) {}

  Tensor Loss(const Tensor& logits, const Batch& batch) const override {
    const int64_t t = config_.seq - 1;
    const Tensor shown = Reshape(Slice(logits, 1, 0, t), {config_.batch * t, config_.vocab});
    return CrossEntropy(shown, Reshape(Slice(batch.labels, 1, 1, config_.seq), {config_.batch * t}));
  }
  Batch MakeBatch(Tracer& tracer) const override {
    const auto fill = [config = config_](Literal* ids) {
      const size_t before = static_cast<size_t>(config.batch_offset * config.seq);
      const absl::Span<int64_t> values = ids->values<int64_t>();
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = HashWord(1001, static_cast<uint32_t>(before + i)) % static_cast<uint32_t>(config.vocab);
      }
    };
    const Tensor t = tracer.FromGenerator(S64Shape({config_.batch, config_.seq}), fill);
    return {{t}, t};
  }

 protected:
  ModelConfig config_;
};

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
  Tensor Logits(const Batch& batch, bool) const override {
    Tensor x = tok_(batch.inputs[0]) + pos_(positions_);
    for (const Block& b : blocks_) {
      const Outputs parts = InvokeOpMultiOutput(Op::split_Tensor, b.qkv(b.ln1(x)), config_.hidden, 2);
      if (parts.size() != 3) return Tensor();
      const Tensor q = SplitHeads(parts[0], config_.heads);
      const Tensor k = SplitHeads(parts[1], config_.heads);
      const Tensor v = SplitHeads(parts[2], config_.heads);
      x = x + b.proj(MergeHeads(Attention(q, k, v, Tensor(), above_)));
      x = x + b.fc2(Gelu(b.fc1(b.ln2(x)), "tanh"));
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

class Llama : public LanguageModel {
 public:
  Llama(const ModelConfig& c, nn::ParameterRegistry* r) : LanguageModel(c) {
    const ModuleScope s(r);
    const int64_t width = c.hidden / c.heads, kv = width * c.kv_heads;
    tok_ = Embedding(s["tok"], c.vocab, c.hidden);
    for (int64_t i = 0; i < c.layers; ++i) {
      const ModuleScope b = s["blocks"][i];
      blocks_.push_back(
          {RmsNorm(b["rms1"], c.hidden), Linear(b["q"], c.hidden, c.hidden, false), Linear(b["k"], c.hidden, kv, false),
           Linear(b["v"], c.hidden, kv, false), Linear(b["o"], c.hidden, c.hidden, false), RmsNorm(b["rms2"], c.hidden),
           Linear(b["gate"], c.hidden, c.ffn_hidden, false), Linear(b["up"], c.hidden, c.ffn_hidden, false),
           Linear(b["down"], c.ffn_hidden, c.hidden, false)});
    }
    rms_ = RmsNorm(s["rms"], c.hidden);
    lm_ = Linear(s["lm"], c.hidden, c.vocab, false);
    cos_ = RotaryTable(r, c.seq, width, [](double angle) { return std::cos(angle); });
    sin_ = RotaryTable(r, c.seq, width, [](double angle) { return std::sin(angle); });
    if (c.type != ElementType::kF32) {
      cos_ = To(cos_, c.type);
      sin_ = To(sin_, c.type);
    }
    above_ = Above(r, c.seq);
  }
  Tensor Logits(const Batch& batch, bool) const override {
    Tensor x = tok_(batch.inputs[0]);
    for (const Block& b : blocks_) {
      const Tensor h = b.rms1(x);
      const Tensor q = Rotate(SplitHeads(b.q(h), config_.heads));
      const Tensor k = Repeat(Rotate(SplitHeads(b.k(h), config_.kv_heads)));
      const Tensor v = Repeat(SplitHeads(b.v(h), config_.kv_heads));
      x = x + b.o(MergeHeads(Attention(q, k, v, Tensor(), above_)));
      const Tensor m = b.rms2(x);
      x = x + b.down(Silu(b.gate(m)) * b.up(m));
    }
    return lm_(rms_(x));
  }

 private:
  struct Block {
    RmsNorm rms1;
    Linear q, k, v, o;
    RmsNorm rms2;
    Linear gate, up, down;
  };
  Tensor Rotate(const Tensor& x) const {
    const int64_t half = x.size(-1) / 2;
    const Tensor turned = Cat({-Slice(x, -1, half, 2 * half), Slice(x, -1, 0, half)}, -1);
    return x * cos_ + turned * sin_;
  }
  // Repeats key and value heads, each shared by several query heads.
  Tensor Repeat(const Tensor& x) const {
    const int64_t times = config_.heads / config_.kv_heads;
    const Tensor wide = Expand(Unsqueeze(x, 2), {x.size(0), x.size(1), times, x.size(2), x.size(3)});
    return Reshape(wide, {x.size(0), x.size(1) * times, x.size(2), x.size(3)});
  }

  Embedding tok_;
  std::vector<Block> blocks_;
  RmsNorm rms_;
  Linear lm_;
  Tensor cos_, sin_, above_;
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
  Tensor Logits(const Batch& batch, bool) const override {
    const Tensor& bias = batch.inputs[2];
    Tensor x = ln_(tok_(batch.inputs[0]) + pos_(positions_) + typ_(batch.inputs[1]));
    for (const Block& b : blocks_) {
      x = b.ln1(x + b.attn(x, bias));
      x = b.ln2(x + b.fc2(Gelu(b.fc1(x))));
    }
    return lazy::Linear(head_ln_(Gelu(dense_(x))), tok_.weight, bias_);
  }
  Tensor Loss(const Tensor& logits, const Batch& batch) const override {
    const int64_t n = config_.batch * config_.seq;
    return CrossEntropy(Reshape(logits, {n, config_.vocab}), Reshape(batch.labels, {n}));
  }
  Batch MakeBatch(Tracer& tracer) const override {
    const int64_t n = config_.batch, t = config_.seq;
    const auto from_tokens = [&](Shape shape, auto&& element) {
      return tracer.FromGenerator(shape, [config = config_, element](Literal* out) {
        using Element = decltype(element(Token()));
        for (int64_t i = 0; i < config.batch * config.seq; ++i) {
          out->values<Element>()[i] = element(TokenAt(config, i / config.seq, i % config.seq));
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
  static Token TokenAt(const ModelConfig& config, int64_t b, int64_t k) {
    const int64_t t = config.seq, example = config.batch_offset + b;
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
  Tensor Logits(const Batch& batch, bool) const override {
    const Tensor patches = Transpose(Flatten(patch_(batch.inputs[0]), 2), 1, 2);
    Tensor x = Cat({Expand(cls_, {config_.batch, -1, -1}), patches}, 1) + pos_;
    for (const Block& b : blocks_) {
      x = x + b.attn(b.ln1(x), Tensor());
      x = x + b.fc2(Gelu(b.fc1(b.ln2(x))));
    }
    return head_(Select(ln_(x), 1, 0));
  }
  Tensor Loss(const Tensor& logits, const Batch& batch) const override { return CrossEntropy(logits, batch.labels); }
  Batch MakeBatch(Tracer& tracer) const override {
    return ImageBatch(tracer, config_, {3, config_.image, config_.image});
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
  if (c.name == "llama") return std::make_unique<Llama>(c, registry);
  return std::make_unique<Bert>(c, registry);
}

}  // namespace hlokit::lazy::models

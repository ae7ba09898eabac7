// SPDX-License-Identifier: Apache-2.0
// The U-Net of denoising diffusion models: it predicts the noise in an image, given the time step. Parameter names are
// those of the PyTorch version of the published one.
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
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
using nn::Linear;
using nn::ModuleScope;

constexpr int64_t kMultipliers[] = {1, 2, 2, 2};  // of the width, by resolution
constexpr int64_t kLevels = 4;
constexpr int64_t kBlocks = 2;          // at each resolution
constexpr int64_t kAttentionLevel = 1;  // the resolution with attention
constexpr int64_t kTimeSteps = 1000;
constexpr int64_t kGroups = 32;

// The parameters of a group norm of as many of the published groups as divide the channels.
nn::GroupNorm Norm(const ModuleScope& s, int64_t channels) {
  return nn::GroupNorm(s, std::gcd(kGroups, channels), channels, 1e-6);
}

struct ResidualBlock {
  nn::GroupNorm norm1, norm2;
  Conv2d conv1, conv2, shortcut;
  Linear time;

  ResidualBlock() = default;
  ResidualBlock(const ModuleScope& s, int64_t in, int64_t out, int64_t time_width)
      : norm1(Norm(s["norm1"], in)),
        norm2(Norm(s["norm2"], out)),
        conv1(s["conv1"], in, out, 3, 1, 1),
        conv2(s["conv2"], out, out, 3, 1, 1),
        time(s["temb_proj"], time_width, out) {
    if (in != out) shortcut = Conv2d(s["nin_shortcut"], in, out, 1);
  }
  Tensor operator()(const Tensor& x, const Tensor& embedded_time, double dropout, bool training) const {
    Tensor h = conv1(Silu(norm1(x)));
    h = h + Unsqueeze(Unsqueeze(time(Silu(embedded_time)), -1), -1);
    h = conv2(Dropout(Silu(norm2(h)), dropout, training));
    return (shortcut.weight.defined() ? shortcut(x) : x) + h;
  }
};

// Attention of all pixels to all others.
struct PixelAttention {
  nn::GroupNorm norm;
  Conv2d q, k, v, proj;

  PixelAttention() = default;
  PixelAttention(const ModuleScope& s, int64_t channels)
      : norm(Norm(s["norm"], channels)),
        q(s["q"], channels, channels, 1),
        k(s["k"], channels, channels, 1),
        v(s["v"], channels, channels, 1),
        proj(s["proj_out"], channels, channels, 1) {}
  Tensor operator()(const Tensor& x) const {
    const Tensor h = norm(x);
    const auto pixels = [](const Tensor& y) { return Transpose(Flatten(y, 2), 1, 2); };  // [batch, pixels, channels]
    const Tensor mixed = Attention(pixels(q(h)), pixels(k(h)), pixels(v(h)), {});
    return x + proj(Reshape(Transpose(mixed, 1, 2), {x.size(0), x.size(1), x.size(2), x.size(3)}));
  }
};

struct Level {
  std::vector<ResidualBlock> blocks;
  std::vector<PixelAttention> attention;  // one for each block, or none
  Conv2d resample;                        // to the next resolution, if there is one
};

class Unet : public Model {
 public:
  Unet(const ModelConfig& c, nn::ParameterRegistry* r) : config_(c) {
    const ModuleScope s(r);
    const int64_t width = c.hidden, time_width = 4 * width;
    dense0_ = Linear(s["temb"]["dense"][0], width, time_width);
    dense1_ = Linear(s["temb"]["dense"][1], time_width, time_width);
    conv_in_ = Conv2d(s["conv_in"], 3, width, 3, 1, 1);
    std::vector<int64_t> skipped = {width};
    int64_t in = width;
    for (int64_t level = 0; level < kLevels; ++level) {
      const ModuleScope d = s["down"][level];
      const int64_t out = width * kMultipliers[level];
      Level made;
      for (int64_t i = 0; i < kBlocks; ++i) {
        made.blocks.emplace_back(d["block"][i], in, out, time_width);
        if (level == kAttentionLevel) made.attention.emplace_back(d["attn"][i], out);
        in = out;
        skipped.push_back(in);
      }
      if (level + 1 < kLevels) {
        made.resample = Conv2d(d["downsample"]["conv"], in, in, 3, 2, 1);
        skipped.push_back(in);
      }
      down_.push_back(std::move(made));
    }
    mid1_ = ResidualBlock(s["mid"]["block_1"], in, in, time_width);
    mid_attention_ = PixelAttention(s["mid"]["attn_1"], in);
    mid2_ = ResidualBlock(s["mid"]["block_2"], in, in, time_width);
    up_.resize(kLevels);
    for (int64_t level = kLevels; level-- > 0;) {
      const ModuleScope u = s["up"][level];
      const int64_t out = width * kMultipliers[level];
      Level& made = up_[static_cast<size_t>(level)];
      for (int64_t i = 0; i <= kBlocks; ++i) {
        made.blocks.emplace_back(u["block"][i], in + skipped.back(), out, time_width);
        if (level == kAttentionLevel) made.attention.emplace_back(u["attn"][i], out);
        skipped.pop_back();
        in = out;
      }
      if (level > 0) made.resample = Conv2d(u["upsample"]["conv"], in, in, 3, 1, 1);
    }
    norm_out_ = Norm(s["norm_out"], in);
    conv_out_ = Conv2d(s["conv_out"], in, 3, 3, 1, 1);
    frequencies_ = r->Constant(F32Shape({1, width / 2}), [half = width / 2](Literal* out) {
      for (int64_t j = 0; j < half; ++j) {
        const double exponent = static_cast<double>(j) / static_cast<double>(std::max<int64_t>(half - 1, 1));
        out->values<float>()[j] = static_cast<float>(std::pow(10000.0, -exponent));
      }
    });
    AddStages();
  }

  std::pair<Tensor, Tensor> Predictions(const Tensor&, const Batch&) const override { return {}; }
  Tensor Loss(const Tensor& logits, const Batch& batch, double) const override {
    return InvokeOp(Op::mse_loss, logits, batch.labels);
  }

  // Images with noise of the published schedule; the labels are the noise.
  std::vector<BatchArray> BatchArrays() const override {
    const Shape numbers = F32Shape({config_.batch, 3, config_.image, config_.image});
    const Shape shape = CurrentDevice()->ArrayShape(config_.type, numbers.dims());
    const int64_t each = 3 * config_.image * config_.image;
    const auto filled = [&](bool with_image) {
      return [numbers, shape, each, with_image](int64_t first, Literal* out) {
        Literal images = Literal::Zeros(numbers);
        const absl::Span<float> values = images.values<float>();
        double kept = 0;
        for (size_t i = 0; i < values.size(); ++i) {
          const int64_t number = first * each + static_cast<int64_t>(i);
          if (with_image && number % each == 0) kept = KeptAt(TimeOf(number / each));
          // Uniform, with the variance of a normal distribution.
          const double noise = std::sqrt(3.0) * HashedValue(1003, static_cast<uint32_t>(number));
          const double image = HashedValue(1000, static_cast<uint32_t>(number));
          values[i] = static_cast<float>(std::sqrt(kept) * image + std::sqrt(1 - kept) * noise);
        }
        *out = shape == numbers ? std::move(images) : Converted(images, shape);
      };
    };
    const auto fill_times = [](int64_t first, Literal* out) {
      const absl::Span<float> values = out->values<float>();
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(TimeOf(first + static_cast<int64_t>(i)));
      }
    };
    return {{"images", shape, 0, filled(true)},
            {"times", F32Shape({config_.batch}), 0, fill_times},
            {"labels", shape, 0, filled(false)}};
  }

 private:
  // The first stage takes the noisy images and their time steps, as f32. Further ones take the embedded time, then the
  // results of resolutions that are still to be read, then the one that the next layer takes.
  void AddStages() {
    AddStage([this](Tensors x, bool) {
      const Tensor angles = Unsqueeze(x[1], 1) * frequencies_;
      Tensor time = Cat({InvokeOp(Op::sin, angles), InvokeOp(Op::cos, angles)}, 1);
      if (config_.type != time.dtype()) time = To(time, config_.type);
      time = dense1_(Silu(dense0_(time)));
      x[1] = conv_in_(x[0]);
      x[0] = time;
      return x;
    });
    for (const Level& level : down_) {
      for (size_t i = 0; i < level.blocks.size(); ++i) {
        AddStage([this, &level, i](Tensors x, bool training) {
          x.push_back(Apply(level, i, x.back(), x[0], training));
          return x;
        });
      }
      if (!level.resample.weight.defined()) continue;
      AddStage([&level](Tensors x, bool) {
        x.push_back(level.resample(x.back()));
        return x;
      });
    }
    AddStage([this](Tensors x, bool training) {
      const Tensor y = mid1_(x.back(), x[0], config_.dropout, training);
      x.push_back(mid2_(mid_attention_(y), x[0], config_.dropout, training));
      return x;
    });
    for (size_t at = up_.size(); at-- > 0;) {
      const Level& level = up_[at];
      for (size_t i = 0; i < level.blocks.size(); ++i) {
        AddStage([this, &level, i](Tensors x, bool training) {
          const Tensor y = x.back();
          x.pop_back();
          x.back() = Apply(level, i, Cat({y, x.back()}, 1), x[0], training);
          return x;
        });
      }
      if (!level.resample.weight.defined()) continue;
      AddStage([&level](Tensors x, bool) {
        const IntList wide = {2 * x.back().size(2), 2 * x.back().size(3)};
        x.back() = level.resample(InvokeOp(Op::upsample_nearest2d, x.back(), wide));
        return x;
      });
    }
    AddStage([this](Tensors x, bool) {
      x[0] = conv_out_(Silu(norm_out_(x.back())));
      x.resize(1);
      return x;
    });
  }
  Tensor Apply(const Level& level, size_t i, const Tensor& x, const Tensor& time, bool training) const {
    const Tensor y = level.blocks[i](x, time, config_.dropout, training);
    return level.attention.empty() ? y : level.attention[i](y);
  }
  static int64_t TimeOf(int64_t example) { return HashWord(1004, static_cast<uint32_t>(example)) % kTimeSteps; }
  // Returns the share of the image's variance that is left at a time step: betas rise linearly.
  static double KeptAt(int64_t time) {
    double kept = 1;
    for (int64_t t = 0; t <= time; ++t) {
      kept *= 1 - (1e-4 + (0.02 - 1e-4) * static_cast<double>(t) / static_cast<double>(kTimeSteps - 1));
    }
    return kept;
  }

  ModelConfig config_;
  Linear dense0_, dense1_;
  Conv2d conv_in_, conv_out_;
  std::vector<Level> down_, up_;
  ResidualBlock mid1_, mid2_;
  PixelAttention mid_attention_;
  nn::GroupNorm norm_out_;
  Tensor frequencies_;
};

}  // namespace

std::unique_ptr<Model> MakeUnet(const ModelConfig& c, nn::ParameterRegistry* registry) {
  return std::make_unique<Unet>(c, registry);
}

}  // namespace hlokit::lazy::models

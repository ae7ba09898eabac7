// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/initialization.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <string_view>

#include "tracer/nn/distributions.h"

namespace hlokit::lazy::models {
namespace {

using nn::ParameterKind;
using nn::ParameterSpec;

enum class DistributionShape { kUniform, kNormal, kTruncated, kConstant };
// A number n, of which a distribution has the half width or deviation gain / sqrt(n).
enum class Basis { kOne, kFanIn, kFanOut, kFanSum, kHidden, kHiddenTimesWidth, kFfn, kTwiceLayers };

struct Rule {
  std::string_view models;  // separated by blanks; empty: all
  std::string_view part;    // of the parameter's name; empty: any
  size_t rank;              // of the parameter; 0: any
  DistributionShape shape;
  Basis basis;
  double gain;  // or the constant
};

constexpr double kSqrt2 = std::numbers::sqrt2, kSqrt3 = std::numbers::sqrt3, kSqrt6 = kSqrt2 * kSqrt3;

// The first rule that fits applies.
constexpr Rule kRules[] = {
    // Residual layers start with a part of the variance that leaves that of all layers together at one.
    {"gpt2", ".proj.weight", 2, DistributionShape::kNormal, Basis::kTwiceLayers, 0.02},
    {"gpt2", ".fc2.weight", 2, DistributionShape::kNormal, Basis::kTwiceLayers, 0.02},
    {"bert bert-base bert-large gpt2 llama mixtral", "weight", 2, DistributionShape::kNormal, Basis::kOne, 0.02},
    {"vit", "", 2, DistributionShape::kTruncated, Basis::kOne, 0.02},
    {"vit", "", 3, DistributionShape::kTruncated, Basis::kOne, 0.02},
    {"vit", "", 4, DistributionShape::kTruncated, Basis::kOne, 0.02},
    {"t5", "shared.weight", 2, DistributionShape::kNormal, Basis::kOne, 1},
    {"t5", ".q.weight", 2, DistributionShape::kNormal, Basis::kHiddenTimesWidth, 1},
    {"t5", ".wo.weight", 2, DistributionShape::kNormal, Basis::kFfn, 1},
    {"t5", "weight", 2, DistributionShape::kNormal, Basis::kHidden, 1},
    {"lstm", "rnn.", 0, DistributionShape::kUniform, Basis::kHidden, 1},
    {"lstm", "weight", 2, DistributionShape::kUniform, Basis::kOne, 0.1},
    {"dlrm", "emb_l.", 2, DistributionShape::kUniform, Basis::kFanOut, 1},
    {"dlrm", "weight", 2, DistributionShape::kNormal, Basis::kFanSum, kSqrt2},
    {"dlrm", "bias", 1, DistributionShape::kNormal, Basis::kFanOut, 1},
    {"unet", ".conv2.weight", 4, DistributionShape::kUniform, Basis::kFanSum, kSqrt6 * 1e-5},
    {"unet", ".proj_out.weight", 4, DistributionShape::kUniform, Basis::kFanSum, kSqrt6 * 1e-5},
    {"unet", "conv_out.weight", 4, DistributionShape::kUniform, Basis::kFanSum, kSqrt6 * 1e-5},
    {"unet", "weight", 2, DistributionShape::kUniform, Basis::kFanSum, kSqrt6},
    {"unet", "weight", 4, DistributionShape::kUniform, Basis::kFanSum, kSqrt6},
    {"squeezenet1_1", "classifier.1.weight", 4, DistributionShape::kNormal, Basis::kOne, 0.01},
    {"squeezenet1_1", "weight", 4, DistributionShape::kUniform, Basis::kFanIn, kSqrt6},
    {"vgg16 mobilenet_v2", "weight", 2, DistributionShape::kNormal, Basis::kOne, 0.01},
    {"mnasnet1_0", "weight", 2, DistributionShape::kUniform, Basis::kFanOut, kSqrt3},
    {"vgg16 mobilenet_v2 mnasnet1_0 resnet18 resnet50 resnext50_32x4d", "weight", 4, DistributionShape::kNormal,
     Basis::kFanOut, kSqrt2},
    // torch's Linear and Conv2d.
    {"", "weight", 2, DistributionShape::kUniform, Basis::kFanIn, 1},
    {"", "weight", 4, DistributionShape::kUniform, Basis::kFanIn, 1},
    {"mlp lenet alexnet resnet18 resnet50 resnext50_32x4d", "bias", 1, DistributionShape::kUniform, Basis::kFanIn, 1},
    {"", "", 0, DistributionShape::kConstant, Basis::kOne, 0},
};

bool Contains(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::string_view first = words.substr(0, words.find(' '));
    if (first == word) return true;
    words.remove_prefix(std::min(first.size() + 1, words.size()));
  }
  return false;
}

const Rule& RuleFor(std::string_view model, const ParameterSpec& spec, size_t rank) {
  return *std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& rule) {
    return (rule.models.empty() || Contains(rule.models, model)) && (rule.rank == 0 || rule.rank == rank) &&
           spec.name.find(rule.part) != std::string::npos;
  });
}

double BasisOf(Basis basis, const ModelConfig& config, const ParameterSpec& spec, absl::Span<const int64_t> dims) {
  double fan_out = dims.empty() ? 1 : static_cast<double>(dims[0]);
  for (size_t i = 2; i < dims.size(); ++i) fan_out *= static_cast<double>(dims[i]);
  const auto fan_in = static_cast<double>(std::max<int64_t>(spec.fan_in, 1));
  const auto hidden = static_cast<double>(config.hidden);
  switch (basis) {
    case Basis::kOne:
      return 1;
    case Basis::kFanIn:
      return fan_in;
    case Basis::kFanOut:
      return fan_out;
    case Basis::kFanSum:
      return fan_in + fan_out;
    case Basis::kHidden:
      return hidden;
    case Basis::kHiddenTimesWidth:
      return hidden * hidden / static_cast<double>(config.heads);
    case Basis::kFfn:
      return static_cast<double>(config.ffn_hidden);
    case Basis::kTwiceLayers:
      return 2 * static_cast<double>(config.layers);
  }
  return 1;
}

nn::Distribution DistributionOf(const Rule& rule, double scale) {
  switch (rule.shape) {
    case DistributionShape::kUniform:
      return nn::Distribution::Uniform(-scale, scale);
    case DistributionShape::kNormal:
      return nn::Distribution::Normal(0, scale);
    case DistributionShape::kTruncated:
      return nn::Distribution::TruncatedNormal(0, scale, -2 * scale, 2 * scale);
    case DistributionShape::kConstant:
      break;
  }
  return nn::Distribution::Constant(scale);
}

}  // namespace

nn::Initializer PublishedInitializer(const ModelConfig& config, uint64_t seed) {
  return [config, seed](const ParameterSpec& spec, Literal* out) {
    const absl::Span<float> values = out->values<float>();
    if (spec.kind == ParameterKind::kNormWeight || spec.kind == ParameterKind::kResidualNormWeight) {
      std::fill(values.begin(), values.end(), 1.0f);
      return;
    }
    const absl::Span<const int64_t> dims = out->shape().dims();
    const Rule& rule = RuleFor(config.name, spec, dims.size());
    const double scale = rule.gain / std::sqrt(BasisOf(rule.basis, config, spec, dims));
    nn::Fill(DistributionOf(rule, scale), seed, spec.number, values);
  };
}

}  // namespace hlokit::lazy::models

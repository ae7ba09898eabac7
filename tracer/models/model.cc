// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/deterministic_init.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::models {
namespace {

using Maker = std::unique_ptr<Model> (*)(const ModelConfig&, nn::ParameterRegistry*);

struct Preset {
  std::string_view name;
  Maker make;
  double dropout;  // as published
  int64_t image, classes, seq, vocab, hidden, layers, heads, kv_heads, ff, patch, experts;
};

constexpr Preset kPresets[] = {
    {"mlp", MakeConvnet, 0, 28, 10, 0, 0, 512, 0, 0, 0, 0, 0, 0},
    {"lenet", MakeConvnet, 0, 28, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"alexnet", MakeConvnet, 0.5, 224, 1000, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"vgg16", MakeConvnet, 0.5, 224, 1000, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"squeezenet1_1", MakeConvnet, 0.5, 224, 1000, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"resnet18", MakeConvnet, 0, 224, 1000, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"resnet50", MakeConvnet, 0, 224, 1000, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"resnext50_32x4d", MakeConvnet, 0, 224, 1000, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"mobilenet_v2", MakeConvnet, 0.2, 224, 1000, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"mnasnet1_0", MakeConvnet, 0.2, 224, 1000, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"vit", MakeTransformer, 0.1, 224, 1000, 0, 0, 768, 12, 12, 0, 3072, 16, 0},
    {"bert-base", MakeTransformer, 0.1, 0, 0, 128, 30522, 768, 12, 12, 0, 3072, 0, 0},
    {"bert-large", MakeTransformer, 0.1, 0, 0, 128, 30522, 1024, 24, 16, 0, 4096, 0, 0},
    {"bert", MakeTransformer, 0.1, 0, 0, 128, 30522, 768, 12, 12, 0, 3072, 0, 0},
    {"gpt2", MakeTransformer, 0.1, 0, 0, 128, 50257, 768, 12, 12, 0, 3072, 0, 0},
    {"llama", MakeLlama, 0, 0, 0, 128, 32000, 4096, 32, 32, 32, 11008, 0, 0},
    {"mixtral", MakeLlama, 0, 0, 0, 128, 32000, 4096, 32, 32, 8, 14336, 0, 8},
    {"t5", MakeT5, 0.1, 0, 0, 128, 32128, 512, 6, 8, 0, 2048, 0, 0},
    {"lstm", MakeLstm, 0.2, 0, 0, 35, 33278, 200, 2, 0, 0, 0, 0, 0},
    {"dlrm", MakeDlrm, 0, 0, 2, 0, 10000, 16, 0, 0, 0, 0, 0, 0},
    {"unet", MakeUnet, 0.1, 32, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0},
};

constexpr int64_t kMaxDimension = int64_t{1} << 31;
constexpr int64_t kMaxLayers = 4096;
constexpr double kMaxElements = 0x1p32;  // per tensor
constexpr double kMaxParameters = 0x1p45;

}  // namespace

Tensor Model::Loss(const Tensor& logits, const Batch& batch, double label_smoothing) const {
  const auto [shown, labels] = Predictions(logits, batch);
  return InvokeOp(Op::cross_entropy_loss, shown, labels, Tensor(), 1, -100, label_smoothing);
}

Tensors Model::RunStages(size_t begin, size_t end, Tensors x, bool training) const {
  for (size_t i = begin; i < end; ++i) {
    x = stages_[i](std::move(x), training);
    if (observer_) observer_(i, x);
  }
  return x;
}

Batch Model::MakeBatch(Tracer& tracer, int64_t first) const {
  Tensors arrays;
  for (const BatchArray& array : BatchArrays()) {
    arrays.push_back(tracer.FromGenerator(array.shape, [fill = array.fill, first](Literal* out) { fill(first, out); }));
  }
  return BatchOf(std::move(arrays));
}

Batch BatchOf(Tensors arrays) {
  Batch batch;
  batch.labels = arrays.back();
  if (arrays.size() > 1) arrays.pop_back();
  batch.inputs = std::move(arrays);
  return batch;
}

std::vector<BatchArray> ImageArrays(const ModelConfig& config, Dims sizes) {
  DeviceState& device = *CurrentDevice();
  std::vector<int64_t> dims = {config.batch};
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  const Shape numbers = device.ArrayShape(ElementType::kF32, dims), shape = device.ArrayShape(config.type, dims);
  const auto fill_images = [numbers, shape, batch = config.batch](int64_t first, Literal* out) {
    Literal images = Literal::Zeros(numbers);
    const absl::Span<float> values = images.values<float>();
    const size_t before = static_cast<size_t>(first) * (values.size() / static_cast<size_t>(batch));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(HashedValue(1000, static_cast<uint32_t>(before + i)));
    }
    *out = shape == numbers ? std::move(images) : Converted(images, shape);
  };
  const auto fill_labels = [batch = config.batch, classes = config.classes](int64_t first, Literal* out) {
    for (int64_t n = 0; n < batch; ++n) out->values<int64_t>()[n] = (7 * (first + n) + 3) % classes;
  };
  const Shape labels = device.ArrayShape(ElementType::kS64, {config.batch});
  return {{"images", shape, 0, fill_images}, {"labels", labels, config.classes, fill_labels}};
}

std::vector<std::string_view> ModelNames() {
  std::vector<std::string_view> names;
  for (const Preset& preset : kPresets) names.push_back(preset.name);
  return names;
}

absl::StatusOr<ModelConfig> Complete(ModelConfig c) {
  for (const Preset& p : kPresets) {
    if (c.name != p.name) continue;
    const auto fill = [](int64_t* to, int64_t from) {
      if (*to == 0) *to = from;
    };
    fill(&c.image, p.image);
    fill(&c.classes, p.classes);
    fill(&c.seq, p.seq);
    fill(&c.vocab, p.vocab);
    fill(&c.hidden, p.hidden);
    fill(&c.layers, p.layers);
    fill(&c.heads, p.heads);
    fill(&c.kv_heads, p.kv_heads == 0 ? 0 : std::min(p.kv_heads, c.heads));
    fill(&c.ffn_hidden, p.ff);
    fill(&c.patch, p.patch);
    fill(&c.experts, p.experts);
    if (c.dropout == kPublishedDropout) c.dropout = p.dropout;
    if (c.batch < 1 || c.image < 0 || c.classes < 0 || c.seq < 0 || c.vocab < 0 || c.hidden < 0 || c.layers < 0 ||
        c.heads < 0 || c.kv_heads < 0 || c.ffn_hidden < 0 || c.patch < 0 || c.experts < 0) {
      return absl::InvalidArgumentError("sizes of a model must be positive");
    }
    const std::pair<const char*, std::pair<int64_t, int64_t>> lacking[] = {
        {"image", {p.image, c.image}}, {"classes", {p.classes, c.classes}},    {"seq", {p.seq, c.seq}},
        {"vocab", {p.vocab, c.vocab}}, {"hidden", {p.hidden, c.hidden}},       {"layers", {p.layers, c.layers}},
        {"heads", {p.heads, c.heads}}, {"kv-heads", {p.kv_heads, c.kv_heads}}, {"ff", {p.ff, c.ffn_hidden}},
        {"patch", {p.patch, c.patch}}, {"experts", {p.experts, c.experts}},    {"batch", {1, c.batch}},
    };
    for (const auto& [name, sizes] : lacking) {
      const auto [usual, given] = sizes;
      if (usual == 0 && given != 0)
        return absl::InvalidArgumentError(StrCat("--", name, " cannot be used with model `", c.name, "`"));
      if (given > kMaxDimension) return absl::InvalidArgumentError(StrCat("--", name, "=", given, " is too large"));
    }
    if (c.layers > kMaxLayers) {
      return absl::InvalidArgumentError(
          StrCat("--layers=", c.layers, " is too large: a model has at most ", kMaxLayers, " blocks"));
    }
    if (c.patch != 0 && c.image % c.patch != 0) {
      return absl::InvalidArgumentError(StrCat("the patch size ", c.patch, " does not divide the image's, ", c.image));
    }
    if (c.dropout > 0 && p.dropout == 0) {
      return absl::InvalidArgumentError(StrCat("--dropout cannot be used with model `", c.name, "`"));
    }
    if (p.make == MakeUnet && (c.image % 8 != 0 || c.hidden % 2 != 0)) {
      return absl::InvalidArgumentError("the image of a unet must be a multiple of 8, and its width even");
    }
    // Inputs and the largest parameters: rejects sizes that would exhaust memory.
    const double values[] = {1.0 * c.batch * std::max<int64_t>(c.image, 1) * std::max<int64_t>(c.image, 1) * 3,
                             1.0 * c.batch * c.seq,
                             1.0 * c.vocab * c.hidden,
                             1.0 * c.hidden * c.hidden,
                             1.0 * c.hidden * c.ffn_hidden,
                             1.0 * c.seq * c.hidden,
                             1.0 * c.classes * 4096,
                             p.seq == 0 && p.hidden != 0 ? 1.0 * c.image * c.image * c.hidden : 0.0};
    const double all =
        c.layers * (4.0 * c.hidden * c.hidden + 3.0 * c.hidden * c.ffn_hidden * std::max<int64_t>(c.experts, 1));
    for (double count : values) {
      if (count > kMaxElements || all > kMaxParameters)
        return absl::InvalidArgumentError("a model of these sizes exceeds the limit on memory");
    }
    if (c.heads != 0 && c.hidden % c.heads != 0) {
      return absl::InvalidArgumentError(
          StrCat("the number of heads, ", c.heads, ", does not divide the width, ", c.hidden));
    }
    if (c.kv_heads != 0 && c.heads % c.kv_heads != 0) {
      return absl::InvalidArgumentError(
          StrCat("the number of key and value heads, ", c.kv_heads, ", does not divide that of heads, ", c.heads));
    }
    return c;
  }
  return absl::NotFoundError(StrCat("unknown model `", c.name, "`", DidYouMeanSuffix(c.name, ModelNames())));
}

std::unique_ptr<Model> MakeModel(const ModelConfig& config, nn::ParameterRegistry* registry) {
  const auto* const preset =
      std::find_if(std::begin(kPresets), std::end(kPresets), [&](const Preset& p) { return p.name == config.name; });
  return preset->make(config, registry);
}

}  // namespace hlokit::lazy::models

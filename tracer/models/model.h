// SPDX-License-Identifier: Apache-2.0
// Models to trace: common vision networks under torchvision's names, and transformers of any size.
#ifndef HLOKIT_TRACER_MODELS_MODEL_H_
#define HLOKIT_TRACER_MODELS_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/types/element_type.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"
#include "tracer/nn/parameter_registry.h"

namespace hlokit::lazy::models {

// Configuration; 0 selects the model's default.
struct ModelConfig {
  std::string name;
  int64_t batch = 2;
  int64_t batch_offset = 0;  // first example of the batch: data-parallel devices train on parts of one batch
  int64_t image = 0;         // height and width
  int64_t classes = 0;
  int64_t seq = 0;  // tokens
  int64_t vocab = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;    // Llama
  int64_t ffn_hidden = 0;  // width of the hidden layer of a feed-forward block
  int64_t patch = 0;       // ViT
  ElementType type = ElementType::kF32;
};

struct Batch {
  Tensors inputs;
  Tensor labels;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual Tensor Logits(const Batch& batch, bool training) const = 0;
  // Returns a scalar.
  virtual Tensor Loss(const Tensor& logits, const Batch& batch) const = 0;
  // Returns deterministic pseudo-random inputs and labels, the same on every platform.
  virtual Batch MakeBatch(Tracer& tracer) const = 0;
};

// Returns deterministic pseudo-random images, each of `sizes`, and their labels.
Batch ImageBatch(Tracer& tracer, const ModelConfig& config, Dims sizes);

// Returns all names that MakeModel accepts.
std::vector<std::string_view> ModelNames();
// Completes the config with the defaults of its model. The error for an unknown model names the nearest one.
absl::StatusOr<ModelConfig> Complete(ModelConfig config);
// Creates a model with its parameters in the registry. Requires: `config` is complete.
std::unique_ptr<Model> MakeModel(const ModelConfig& config, nn::ParameterRegistry* registry);

// Creates a model of one family, for MakeModel.
std::unique_ptr<Model> MakeConvnet(const ModelConfig& config, nn::ParameterRegistry* registry);
std::unique_ptr<Model> MakeTransformer(const ModelConfig& config, nn::ParameterRegistry* registry);

}  // namespace hlokit::lazy::models

#endif  // HLOKIT_TRACER_MODELS_MODEL_H_

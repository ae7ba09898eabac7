// SPDX-License-Identifier: Apache-2.0
// Models to trace: common vision networks under torchvision's names, transformers of any size, and others.
#ifndef HLOKIT_TRACER_MODELS_MODEL_H_
#define HLOKIT_TRACER_MODELS_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/types/element_type.h"
#include "ir/types/literal.h"
#include "ir/types/shape.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"
#include "tracer/nn/parameter_registry.h"

namespace hlokit::lazy::models {

// Configuration; 0 selects the model's default.
struct ModelConfig {
  std::string name;
  int64_t batch = 2;
  int64_t image = 0;  // height and width
  int64_t classes = 0;
  int64_t seq = 0;  // tokens
  int64_t vocab = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;          // Llama
  int64_t ffn_hidden = 0;        // width of the hidden layer of a feed-forward block
  int64_t patch = 0;             // ViT
  int64_t experts = 0;           // Mixtral
  double dropout = 0;            // rate in training; kPublishedDropout: the model's own
  bool fused_attention = false;  // Llama, Mixtral: one kernel, which is simulated but not executed
  ElementType type = ElementType::kF32;
};

// Selects the rate that the model was published with.
constexpr double kPublishedDropout = -1;

struct Batch {
  Tensors inputs;
  Tensor labels;
};

// An array of a batch: its shape, and the values of the model's pseudo-random examples.
struct BatchArray {
  std::string_view name;  // in files of inputs
  Shape shape;            // [batch, ...]
  int64_t limit = 0;      // of integers, which are less and not negative; 0: any
  // Sets the elements, from zeros, of the batch whose first example has this number: the same values on every platform.
  // Called in any thread.
  std::function<void(int64_t first, Literal* out)> fill;
};

// Generates tokens one by one. Its graphs have the same shapes at every position.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Records the processing of the prompt, [batch, t], and returns the logits of the next token, [batch, vocab].
  virtual Tensor Prefill(const Tensor& prompt) = 0;
  // Records the processing of the last token, and returns the logits of the next one.
  virtual Tensor Step() = 0;
  // Returns the most probable next token, [batch, 1].
  virtual const Tensor& token() const = 0;
};

// The forward pass is a list of stages, between which it can be divided into several graphs.
class Model {
 public:
  Model() = default;
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  Tensor Logits(const Batch& batch, bool training) const {
    return RunStages(0, stage_count(), batch.inputs, training)[0];
  }
  // Runs the stages from `begin` to before `end` on the tensors that the stage before returned. The first stage takes
  // the inputs of a batch, the last one returns the logits.
  Tensors RunStages(size_t begin, size_t end, Tensors x, bool training) const;
  size_t stage_count() const { return stages_.size(); }
  // Calls `observer` with the number of each stage that has run, and what it returned.
  using StageObserver = std::function<void(size_t stage, const Tensors& results)>;
  void OnStage(StageObserver observer) { observer_ = std::move(observer); }
  // Returns the logits that are compared with labels as [examples, classes], and their labels as [examples].
  virtual std::pair<Tensor, Tensor> Predictions(const Tensor& logits, const Batch& batch) const = 0;
  // Returns a scalar: the cross entropy of the predictions, unless the model has another loss.
  virtual Tensor Loss(const Tensor& logits, const Batch& batch, double label_smoothing = 0) const;
  // Returns true if the exponential of the loss is a perplexity.
  virtual bool predicts_tokens() const { return false; }
  // Returns nullptr if the model does not generate tokens.
  virtual std::unique_ptr<Decoder> MakeDecoder(Tracer&) const { return nullptr; }
  // Returns the arrays of a batch, inputs in order and the labels last. A single array is the labels too. Requires:
  // this thread has a current device.
  virtual std::vector<BatchArray> BatchArrays() const = 0;
  // Returns pseudo-random inputs and labels from example `first` on, which take no memory until something reads them.
  Batch MakeBatch(Tracer& tracer, int64_t first = 0) const;

 protected:
  using Stage = std::function<Tensors(Tensors x, bool training)>;
  void AddStage(Stage stage) { stages_.push_back(std::move(stage)); }

 private:
  std::vector<Stage> stages_;
  StageObserver observer_;
};

// Returns the batch of tensors for BatchArrays, in their order.
Batch BatchOf(Tensors arrays);

// Returns pseudo-random images, each of `sizes`, and their labels.
std::vector<BatchArray> ImageArrays(const ModelConfig& config, Dims sizes);

// Returns all names that MakeModel accepts.
std::vector<std::string_view> ModelNames();
// Completes the config with the defaults of its model. The error for an unknown model names the nearest one.
absl::StatusOr<ModelConfig> Complete(ModelConfig config);
// Creates a model with its parameters in the registry. Requires: `config` is complete.
std::unique_ptr<Model> MakeModel(const ModelConfig& config, nn::ParameterRegistry* registry);

// Creates a model of one family, for MakeModel.
std::unique_ptr<Model> MakeConvnet(const ModelConfig& config, nn::ParameterRegistry* registry);
std::unique_ptr<Model> MakeTransformer(const ModelConfig& config, nn::ParameterRegistry* registry);
std::unique_ptr<Model> MakeLlama(const ModelConfig& config, nn::ParameterRegistry* registry);
std::unique_ptr<Model> MakeT5(const ModelConfig& config, nn::ParameterRegistry* registry);
std::unique_ptr<Model> MakeLstm(const ModelConfig& config, nn::ParameterRegistry* registry);
std::unique_ptr<Model> MakeDlrm(const ModelConfig& config, nn::ParameterRegistry* registry);
std::unique_ptr<Model> MakeUnet(const ModelConfig& config, nn::ParameterRegistry* registry);

}  // namespace hlokit::lazy::models

#endif  // HLOKIT_TRACER_MODELS_MODEL_H_

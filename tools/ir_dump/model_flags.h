// SPDX-License-Identifier: Apache-2.0
// The flags of ir-dump that select a model and what is done with it.
#ifndef HLOKIT_TOOLS_IR_DUMP_MODEL_FLAGS_H_
#define HLOKIT_TOOLS_IR_DUMP_MODEL_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tracer/models/model.h"
#include "tracer/models/training.h"
#include "tracer/nn/parameter_registry.h"
#include "tracer/ops/sharding.h"

namespace hlokit {

struct ModelRequest {
  lazy::models::ModelConfig config;
  lazy::models::TrainingOptions training;
  std::string step = "train";      // or infer, eval, decode
  int64_t devices = 1;             // data-parallel devices, which divide the batch
  std::optional<lazy::Mesh> mesh;  // annotates the emitted step with shardings
  lazy::nn::Initializer initializer;
  std::string expected;  // expected metrics; empty: none
  bool compare = false;
  std::string load, save;           // files of parameters and buffers; empty: none
  std::vector<std::string> inputs;  // files of examples; empty: the model's pseudo-random ones
};

class ModelFlags {
 public:
  ModelRequest request;

  void AddTo(CLI::App* app);
  // Completes the request. Returns an error if flags contradict each other or have wrong values.
  absl::Status Check();

  bool steps_given() const { return steps_->count() > 0; }
  bool devices_given() const { return devices_->count() > 0; }

 private:
  absl::Status CheckTraining() const;
  // Returns an error for flags that have no effect beside the others.
  absl::Status CheckUse() const;
  bool given(const char* flag) const { return app_->get_option(flag)->count() > 0; }

  std::string mesh_;
  std::string attention_ = "plain";
  std::string dtype_ = "f32", init_ = "hash", autocast_, dropout_, capture_, loader_;
  double gain_ = 6;
  int64_t seed_ = 0;
  const CLI::App* app_ = nullptr;
  CLI::Option* steps_ = nullptr;
  CLI::Option* devices_ = nullptr;
  CLI::Option* momentum_ = nullptr;
};

}  // namespace hlokit

#endif  // HLOKIT_TOOLS_IR_DUMP_MODEL_FLAGS_H_

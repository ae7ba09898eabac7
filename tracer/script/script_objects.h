// SPDX-License-Identifier: Apache-2.0
// Objects of scripts: modules, optimizers, learning rate schedules, meshes.
#ifndef HLOKIT_TRACER_SCRIPT_SCRIPT_OBJECTS_H_
#define HLOKIT_TRACER_SCRIPT_SCRIPT_OBJECTS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tracer/nn/lr_schedule.h"
#include "tracer/nn/optimizer.h"
#include "tracer/nn/parameter_registry.h"
#include "tracer/ops/sharding.h"
#include "tracer/script/script_value.h"
#include "tracer/script/signature.h"

namespace hlokit::lazy::script {

// A module of torch.nn: its own parameters, and the modules in it.
class Module : public Object {
 public:
  static constexpr int kMaxDepth = 32;
  static constexpr size_t kMaxTotal = size_t{1} << 16;
  using Forward = std::function<absl::StatusOr<Value>(const Arguments& arguments, bool training)>;

  // registry: of its own parameters; may be null. forward: the parameters of a call.
  Module(std::unique_ptr<nn::ParameterRegistry> registry, const Signature* forward_signature, Forward forward)
      : Object("a module"),
        registry_(std::move(registry)),
        forward_signature_(forward_signature),
        forward_(std::move(forward)) {}

  // Adds a module in this one. Returns an error if modules are nested too deeply, or are too many, each counted as
  // often as it is in others. Requires: this one is in no other yet.
  absl::Status AddChild(std::shared_ptr<Module> child);
  const std::vector<std::shared_ptr<Module>>& children() const { return children_; }

  const Signature& forward_signature() const { return *forward_signature_; }
  absl::StatusOr<Value> Call(const Arguments& arguments) const { return forward_(arguments, training_); }
  // Calls the module with one argument and the defaults of the others.
  absl::StatusOr<Value> CallWith(const Value& input) const;

  void SetTraining(bool training);
  bool training() const { return training_; }
  // Returns parameters and buffers under the names of a state dict: "0.weight".
  std::vector<nn::NamedTensor> State() const { return Collect(&nn::ParameterRegistry::state); }
  std::vector<nn::NamedTensor> Parameters() const { return Collect(&nn::ParameterRegistry::parameters); }

  void AppendState(std::vector<uint64_t>* state) const override;

 private:
  using Part = const std::vector<nn::NamedTensor>& (nn::ParameterRegistry::*)() const;
  std::vector<nn::NamedTensor> Collect(Part part) const;
  // Calls the function for this module and all in it, with the prefixes of their parameters.
  void Visit(const std::function<void(const Module&, const std::string&)>& visit) const;

  const std::unique_ptr<nn::ParameterRegistry> registry_;
  const Signature* forward_signature_;
  const Forward forward_;
  std::vector<std::shared_ptr<Module>> children_;
  int depth_ = 1;
  size_t total_ = 1;  // modules, with this one
  bool training_ = true;
};

class OptimizerObject : public Object {
 public:
  explicit OptimizerObject(std::unique_ptr<nn::Optimizer> o) : Object("an optimizer"), optimizer(std::move(o)) {}
  void AppendState(std::vector<uint64_t>* state) const override;

  const std::unique_ptr<nn::Optimizer> optimizer;
};

class SchedulerObject : public Object {
 public:
  SchedulerObject(std::shared_ptr<OptimizerObject> o, nn::LrSchedule schedule)
      : Object("a learning rate schedule"),
        optimizer(std::move(o)),
        scheduler(optimizer->optimizer.get(), std::move(schedule)) {}

  const std::shared_ptr<OptimizerObject> optimizer;
  nn::LrScheduler scheduler;
};

class MeshObject : public Object {
 public:
  explicit MeshObject(Mesh m) : Object("a mesh"), mesh(std::move(m)) {}

  const Mesh mesh;
};

}  // namespace hlokit::lazy::script

#endif  // HLOKIT_TRACER_SCRIPT_SCRIPT_OBJECTS_H_

// SPDX-License-Identifier: Apache-2.0
// Parameters and buffers of a model in declaration order, under the names of their modules ("layer1.0.bn2.weight"), as
// in state dicts.
#ifndef HLOKIT_TRACER_NN_PARAMETER_REGISTRY_H_
#define HLOKIT_TRACER_NN_PARAMETER_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/types/literal.h"
#include "tracer/graph/deterministic_init.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy::nn {

// The kind of a parameter determines its initialization.
enum class ParameterKind { kWeight, kNormWeight, kResidualNormWeight, kBias };

struct ParameterSpec {
  std::string name;
  ParameterKind kind = ParameterKind::kWeight;
  size_t number = 0;   // among the parameters, from 0
  int64_t fan_in = 0;  // inputs of each output of its module; 0: unknown
};

// Initializes a value, an f32 array of the parameter's dimensions, when it is first read: perhaps in another thread.
using Initializer = std::function<void(const ParameterSpec&, Literal*)>;

// Returns a deterministic pseudo-random initialization, the same on every platform. Rank 2 and more: in +-sqrt(gain /
// fan_in); norm weights near 1, those of the last norm of a residual block near 0.2; others in +-0.01.
Initializer PatternInitializer(InitPattern formula, double gain);

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

class ParameterRegistry {
 public:
  ParameterRegistry(Tracer* tracer, ElementType type, Initializer initializer)
      : tracer_(tracer), type_(type), initializer_(std::move(initializer)) {}

  ElementType type() const { return type_; }
  Tensor AddParameter(std::string name, Dims dims, ParameterKind kind);
  // Adds a tensor of the state that is not a parameter: running statistics, which narrow models keep in f32, or an s64
  // counter.
  Tensor AddBuffer(std::string name, Dims dims, double value);
  Tensor AddIntegerBuffer(std::string name);
  // Returns a table that the model reads, outside of parameters and state, and that `fill` sets from zeros.
  Tensor Constant(Shape shape, std::function<void(Literal*)> fill) {
    return tracer_->FromGenerator(shape, std::move(fill));
  }
  Tracer* tracer() const { return tracer_; }

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  const std::vector<NamedTensor>& buffers() const { return buffers_; }
  // Returns parameters and buffers in declaration order, as in a state dict.
  const std::vector<NamedTensor>& state() const { return state_; }
  // Returns the bytes of parameters and buffers once their values are read.
  int64_t ByteSize() const;

 private:
  Tensor AddFilled(std::string name, Shape shape, double value);

  Tracer* tracer_;
  ElementType type_;
  Initializer initializer_;
  int64_t last_fan_in_ = 0;  // of the last parameter
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  std::vector<NamedTensor> state_;
};

// A position in the tree of modules.
class ModuleScope {
 public:
  explicit ModuleScope(ParameterRegistry* registry, std::string prefix = "")
      : registry_(registry), prefix_(std::move(prefix)) {}

  ModuleScope operator[](std::string_view child) const {
    return ModuleScope(registry_, prefix_.empty() ? std::string(child) : prefix_ + "." + std::string(child));
  }
  ModuleScope operator[](int64_t child) const { return (*this)[std::string_view(std::to_string(child))]; }
  Tensor Parameter(std::string_view name, Dims dims, ParameterKind kind) const {
    return registry_->AddParameter((*this)[name].prefix_, dims, kind);
  }
  Tensor Buffer(std::string_view name, Dims dims, double value) const {
    return registry_->AddBuffer((*this)[name].prefix_, dims, value);
  }
  Tensor IntegerBuffer(std::string_view name) const { return registry_->AddIntegerBuffer((*this)[name].prefix_); }
  ParameterRegistry& registry() const { return *registry_; }

 private:
  ParameterRegistry* registry_;
  std::string prefix_;
};

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_PARAMETER_REGISTRY_H_

// SPDX-License-Identifier: Apache-2.0
// Modules in a row, applied one after another. They are named by their positions, as in torch.
#ifndef HLOKIT_TRACER_NN_CONTAINERS_H_
#define HLOKIT_TRACER_NN_CONTAINERS_H_

#include <cstdint>
#include <functional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/tensor.h"
#include "tracer/nn/parameter_registry.h"

namespace hlokit::lazy::nn {

class Sequential {
 public:
  explicit Sequential(ModuleScope scope) : scope_(std::move(scope)) {}

  // Adds a module: Add<Conv2d>(3, 8, 3). Modules with parameters have the scope of their position. No line is known.
  template <typename Module, typename... A>
  Sequential& Add(A&&... arguments) {
    if constexpr (std::is_constructible_v<Module, const ModuleScope&, A&&...>) {
      return Append(Module(scope_[size()], std::forward<A>(arguments)...), {});
    } else {
      return Append(Module(std::forward<A>(arguments)...), {});
    }
  }
  // Adds a function of a tensor, or of a tensor and whether the model is training; it takes a position too. A layer is
  // attributed to this line; a function of the program has lines of its own.
  template <typename Function>
  Sequential& Append(Function function, const std::source_location& location = std::source_location::current()) {
    if constexpr (std::is_invocable_r_v<Tensor, const Function&, OnlyLocated, bool>) {
      stages_.push_back([apply = std::move(function), location](const Tensor& x, bool training) {
        return apply({x, location}, training);
      });
    } else if constexpr (std::is_invocable_r_v<Tensor, const Function&, OnlyLocated>) {
      stages_.push_back([apply = std::move(function), location](const Tensor& x, bool) {
        return apply({x, location});
      });
    } else if constexpr (std::is_invocable_r_v<Tensor, const Function&, const Tensor&, bool>) {
      stages_.push_back(std::move(function));
    } else {
      stages_.push_back([apply = std::move(function)](const Tensor& x, bool) { return apply(x); });
    }
    return *this;
  }

  Tensor operator()(Tensor x, bool training) const {
    for (const auto& stage : stages_) x = stage(x, training);
    return x;
  }
  // Applies module `i` alone.
  Tensor Apply(int64_t i, const Tensor& x, bool training) const { return stages_[static_cast<size_t>(i)](x, training); }
  int64_t size() const { return static_cast<int64_t>(stages_.size()); }

 private:
  // Converts to the argument of a layer, and not to that of a function.
  struct OnlyLocated {
    operator LocatedTensor() const;  // NOLINT: never called
  };

  ModuleScope scope_;
  std::vector<std::function<Tensor(const Tensor&, bool)>> stages_;
};

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_CONTAINERS_H_

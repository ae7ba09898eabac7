// SPDX-License-Identifier: Apache-2.0
// The engine selected by --engine: the exact one, or the plain evaluator that defines the values.
#ifndef HLOKIT_TOOLS_HLO_RUN_ENGINE_H_
#define HLOKIT_TOOLS_HLO_RUN_ENGINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "interp/equivalence/sharded_arrays.h"
#include "interp/exact/evaluator.h"
#include "interp/reference/evaluator.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::run {

enum class EngineKind : uint8_t { kExact, kReference };

class Engine {
 public:
  // Returns null after an error.
  static std::unique_ptr<Engine> Prepare(EngineKind kind, const Module& module, const interp::EvaluatorOptions& options,
                                         DiagnosticSink* sink);

  // The module is the program of one device: Run takes arguments of the whole program, which are divided by the
  // shardings of the parameters, and returns its results. `by_device`: the results of each device in turn instead.
  void DivideArrays(interp::ShardedArrays parameters, interp::ShardedArrays result, interp::PaddingFill padding,
                    bool by_device);

  const std::vector<Shape>& argument_shapes() const {
    if (division_) return division_->argument_shapes;
    return exact_ != nullptr ? exact_->argument_shapes() : reference_->argument_shapes();
  }
  const std::vector<Shape>& result_shapes() const {
    if (division_ && !division_->by_device) return division_->result_shapes;
    return exact_ != nullptr ? exact_->result_shapes() : reference_->result_shapes();
  }
  // Devices that have arguments of their own, and those that have results.
  int64_t argument_devices() const { return division_ ? 1 : num_devices(); }
  int64_t result_devices() const { return division_ && !division_->by_device ? 1 : num_devices(); }
  std::optional<std::vector<Literal>> Run(absl::Span<const Literal> arguments, DiagnosticSink* sink);
  const interp::RunStatistics& statistics() const {
    return exact_ != nullptr ? exact_->statistics() : reference_->statistics();
  }

 private:
  struct Division {
    interp::ShardedArrays parameters, result;
    interp::PaddingFill padding = interp::PaddingFill::kZero;
    bool by_device = false;
    std::vector<Shape> argument_shapes, result_shapes;  // of the whole program
  };

  int64_t num_devices() const { return exact_ != nullptr ? exact_->num_devices() : reference_->num_devices(); }
  std::optional<std::vector<Literal>> RunOnDevices(absl::Span<const Literal> arguments, DiagnosticSink* sink) {
    return exact_ != nullptr ? exact_->Run(arguments, sink) : reference_->Run(arguments, sink);
  }

  std::unique_ptr<interp::Evaluator> exact_;  // exactly one is set
  std::unique_ptr<reference::Evaluator> reference_;
  std::optional<Division> division_;
};

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_ENGINE_H_

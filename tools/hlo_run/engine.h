// SPDX-License-Identifier: Apache-2.0
// The engine selected by --engine, with arguments of the whole program or of each device, in one process or several.
#ifndef HLOKIT_TOOLS_HLO_RUN_ENGINE_H_
#define HLOKIT_TOOLS_HLO_RUN_ENGINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "interp/exact/evaluator.h"
#include "interp/program/engine.h"
#include "interp/program/sharded_arrays.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::run {

using EngineKind = interp::EngineKind;

// Devices of this process, [first, first + count), of `all`.
struct DeviceRange {
  int64_t all = 1;
  int64_t first = 0;
  int64_t count = 1;
};

// How the arguments and results of a whole program are divided among devices.
struct Division {
  interp::ShardedArrays parameters, result;
  interp::PaddingFill padding = interp::PaddingFill::kZero;
  bool by_device = false;
  std::vector<Shape> argument_shapes, result_shapes;  // of the whole program
};

class Engine {
 public:
  // Returns null after an error.
  static std::unique_ptr<Engine> Prepare(EngineKind kind, const Module& module, const interp::EvaluatorOptions& options,
                                         DiagnosticSink* sink);

  // The module is the program of one device: Run takes arguments of the whole program, which are divided by the
  // shardings of the parameters, and returns its results. `by_device`: the results of each device in turn instead.
  void DivideArrays(interp::ShardedArrays parameters, interp::ShardedArrays result, interp::PaddingFill padding,
                    bool by_device);

  // The division of a whole program; null if the module is one.
  const Division* division() const { return division_ ? &*division_ : nullptr; }
  // From now on Run takes the parts of own_devices() instead of arguments of the whole program.
  void TakeParts() { takes_parts_ = true; }
  bool takes_parts() const { return takes_parts_; }
  // Devices of this process.
  DeviceRange own_devices() const;

  const std::vector<Shape>& argument_shapes() const {
    if (division_) return division_->argument_shapes;
    return engine_->argument_shapes();
  }
  const std::vector<Shape>& result_shapes() const {
    if (division_ && !division_->by_device) return division_->result_shapes;
    return engine_->result_shapes();
  }
  // Devices that have arguments of their own, and those that have results.
  int64_t argument_devices() const { return division_ ? 1 : num_devices(); }
  // Of those that have arguments, the ones whose arguments Run takes.
  DeviceRange argument_range() const { return division_ ? DeviceRange() : own_devices(); }
  int64_t result_devices() const { return division_ && !division_->by_device ? 1 : num_devices(); }
  // Of several processes, the first one gets the results of all devices, unless `gathers` is off; others none, or
  // theirs.
  std::optional<std::vector<Literal>> Run(absl::Span<const Literal> arguments, DiagnosticSink* sink);
  void set_gathers(bool gathers) { gathers_ = gathers; }
  bool gathers() const { return gathers_; }
  const interp::RunStatistics& statistics() const { return engine_->statistics(); }
  const interp::Evaluator* exact() const { return engine_->exact(); }
  const interp::Engine& engine() const { return *engine_; }
  const interp::compiled::CompiledKernels* compiled() const { return engine_->compiled(); }

 private:
  int64_t num_devices() const { return engine_->num_devices(); }
  std::optional<std::vector<Literal>> RunOnDevices(absl::Span<const Literal> arguments, DiagnosticSink* sink);

  std::unique_ptr<interp::Engine> engine_;
  std::optional<Division> division_;
  bool takes_parts_ = false;
  interp::World* world_ = nullptr;
  bool gathers_ = true;
};

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_ENGINE_H_

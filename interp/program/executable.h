// SPDX-License-Identifier: Apache-2.0
// A compiled program: an engine, with arguments of the whole program or of each device, in one process or several.
#ifndef HLOKIT_INTERP_PROGRAM_EXECUTABLE_H_
#define HLOKIT_INTERP_PROGRAM_EXECUTABLE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "interp/interface/engine.h"
#include "interp/program/sharded_arrays.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// How the arguments and results of a whole program are divided among devices.
struct Division {
  ArrayDivision arrays;
  PaddingFill padding = PaddingFill::kZero;
  bool by_device = false;                             // runs return the results of each device in turn
  std::vector<Shape> argument_shapes, result_shapes;  // of the whole program
};

class Executable {
 public:
  // `owned`: the module, unless others keep it. `division`: the module is the program of one device: Run takes
  // arguments of the whole program, which are divided by the shardings of its parameters, and returns its results.
  // `world`, borrowed, may be null.
  Executable(const Module& module, std::unique_ptr<Module> owned, std::unique_ptr<Engine> engine,
             std::optional<Division> division, World* world);

  // The module that runs.
  const Module& module() const { return module_; }
  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  // The division of a whole program; null if the module is one.
  const Division* division() const { return division_ ? &*division_ : nullptr; }
  // From now on Run takes the parts of own_devices() instead of arguments of the whole program.
  void TakeParts() { takes_parts_ = true; }
  bool takes_parts() const { return takes_parts_; }
  // Devices of this process.
  DeviceRange own_devices() const { return engine_->devices(); }

  const std::vector<Shape>& argument_shapes() const {
    return division_ ? division_->argument_shapes : engine_->argument_shapes();
  }
  const std::vector<Shape>& result_shapes() const {
    return division_ && !division_->by_device ? division_->result_shapes : engine_->result_shapes();
  }
  // Devices that have arguments of their own, and those that have results.
  int64_t argument_devices() const { return division_ ? 1 : engine_->num_devices(); }
  int64_t result_devices() const { return division_ && !division_->by_device ? 1 : engine_->num_devices(); }
  // Of those that have arguments, the ones whose arguments Run takes.
  DeviceRange argument_range() const { return division_ ? DeviceRange() : own_devices(); }

  // Returns nullopt after an error. Of several processes, the first one gets the results of all devices, unless
  // `gathers` is off; others none, or theirs.
  std::optional<std::vector<Literal>> Run(absl::Span<const Literal> arguments, DiagnosticSink* sink);
  void set_gathers(bool gathers) { gathers_ = gathers; }
  bool gathers() const { return gathers_; }
  const RunStatistics& statistics() const { return engine_->statistics(); }

 private:
  std::optional<std::vector<Literal>> RunOnDevices(absl::Span<const Literal> arguments, DiagnosticSink* sink);

  const Module& module_;
  const std::unique_ptr<Module> owned_;
  const std::unique_ptr<Engine> engine_;
  const std::optional<Division> division_;
  World* const world_;
  bool takes_parts_ = false;
  bool gathers_ = true;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROGRAM_EXECUTABLE_H_

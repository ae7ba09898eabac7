// SPDX-License-Identifier: Apache-2.0
// Different programs of several devices as one: each device runs its own, and the n-th collective of each is the same
// collective. So devices meet whose programs differ in what they compute between collectives, such as those into which
// a framework writes the number of the device.
#ifndef HLOKIT_RUNTIME_CLIENT_COMBINED_PROGRAM_H_
#define HLOKIT_RUNTIME_CLIENT_COMBINED_PROGRAM_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/interface/engine.h"
#include "interp/program/engine_table.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::runtime {

class CombinedProgram {
 public:
  using Arguments = absl::Span<const Literal* const>;

  // `programs`: by device, in the order of replicas; devices with the same program may name the same module. `options`
  // have their number. Returns FAILED_PRECONDITION unless their collectives are the same ones in the same order.
  static absl::StatusOr<std::shared_ptr<CombinedProgram>> Create(absl::Span<const Module* const> programs,
                                                                 interp::EngineKind kind,
                                                                 const interp::EvaluatorOptions& options);

  // Runs the programs on the arguments of each device. Returns the results by device, whose shapes are in context().
  absl::StatusOr<std::vector<std::vector<Literal>>> Run(absl::Span<const Arguments> arguments);
  const std::shared_ptr<Context>& context() const { return module_->shared_context(); }

 private:
  // One of the different programs: the parameter of the whole for each of its own, and so for results.
  struct Part {
    std::vector<size_t> parameters, results;
  };

  CombinedProgram() = default;

  std::vector<Part> parts_;
  std::vector<size_t> part_of_;  // by device
  std::unique_ptr<Module> module_;
  std::unique_ptr<interp::Engine> engine_;
  std::vector<Literal> zeros_;  // of each parameter, for devices whose program does not have it
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_CLIENT_COMBINED_PROGRAM_H_

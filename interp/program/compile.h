// SPDX-License-Identifier: Apache-2.0
// The way from a module to what an engine runs: the program of one device where shardings divide it among several, then
// the passes of the engine. Which passes an engine takes, when a program is partitioned and what is said where either
// fails is decided here, for hlo-run and Python alike; Engine::Prepare follows. (The runtime's client has a pipeline of
// its own, and frameworks partition before they compile.)
#ifndef HLOKIT_INTERP_PROGRAM_COMPILE_H_
#define HLOKIT_INTERP_PROGRAM_COMPILE_H_

#include <memory>
#include <optional>
#include <string>

#include "interp/interface/evaluator_options.h"
#include "interp/program/engine.h"
#include "interp/program/partitioned_program.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

struct CompileOptions {
  EngineKind engine = EngineKind::kExact;
  // Passes before the run, in the syntax of hlo-opt --passes; unset: those of the engine.
  std::optional<std::string> passes;
  std::string passes_flag;  // names `passes` in messages
  // The engine's own passes change the instructions, and rely on what the verifier holds: they are left out where the
  // caller shows instructions of the module, or has not verified it.
  bool shows_instructions = false;
  bool is_verified = true;
  std::string partition_hint;  // what a user may do where a program cannot be partitioned
};

// Sets `*program` to the program of one device of options.num_partitions, if `module` is a whole program with
// shardings; leaves it unset if it runs as it is. Returns false after an error.
bool PartitionIfWhole(const Module& module, const CompileOptions& compile, const EvaluatorOptions& options,
                      DiagnosticSink* sink, std::optional<PartitionedProgram>* program);

// Sets `*after` to the module after its passes; to null if there are none. Where the engine's own fail the module runs
// as it is, with a warning, unless the work was canceled or is out of time. Returns false after an error.
bool ApplyPasses(const Module& module, const CompileOptions& compile, const EvaluatorOptions& options,
                 DiagnosticSink* sink, std::unique_ptr<Module>* after);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROGRAM_COMPILE_H_

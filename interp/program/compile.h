// SPDX-License-Identifier: Apache-2.0
// The way from a module to what runs: Lower verifies it, divides it where shardings do so, and runs the passes of the
// engine; Compile prepares the engine. Which passes an engine takes, when a program is partitioned and what is said
// where either fails is decided here, for every tool, Python and the runtime alike.
//
//   absl::StatusOr<LoweredProgram> lowered = Lower(module, compile, options, &sink);
//   std::unique_ptr<Executable> executable = Compile(*std::move(lowered), compile, options, &sink);
//   std::optional<std::vector<Literal>> results = executable->Run(arguments, &sink);
//
// Between the two a caller may set observers of the module that runs.
#ifndef HLOKIT_INTERP_PROGRAM_COMPILE_H_
#define HLOKIT_INTERP_PROGRAM_COMPILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "interp/interface/evaluator_options.h"
#include "interp/program/engine_table.h"
#include "interp/program/executable.h"
#include "interp/program/partitioned_program.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

enum class Verification : uint8_t {
  kVerify,
  kVerified,    // by the caller
  kUnverified,  // passes of the engine's own, which rely on what the verifier holds, are left out
};

struct CompileOptions {
  EngineKind engine = EngineKind::kExact;
  Verification verification = Verification::kVerified;
  // Divides a whole program with shardings among the partitions that the run has.
  bool partition = true;
  std::string partition_hint;  // what a user may do where a program cannot be partitioned
  // Passes before the run, in the syntax of hlo-opt --passes; unset: those of the engine.
  std::optional<std::string> passes;
  std::string passes_flag;  // names `passes` in messages; empty: messages are those of the passes
  // The engine's own passes change the instructions: they are left out where the caller shows those of the module.
  bool shows_instructions = false;
  // Of a divided program: what padding holds, and whether runs return the results of each device in turn.
  PaddingFill padding = PaddingFill::kZero;
  bool results_by_device = false;
};

// A module as an engine prepares it.
struct LoweredProgram {
  // A program that is not changed: the module must outlive it.
  static LoweredProgram Of(const Module& module) { return {&module, nullptr, std::nullopt}; }
  static LoweredProgram Of(std::unique_ptr<Module> module) {
    const Module* const own = module.get();
    return {own, std::move(module), std::nullopt};
  }

  const Module* module = nullptr;         // what runs
  std::unique_ptr<Module> owned;          // the same; null: it is the one that was lowered
  std::optional<ArrayDivision> division;  // of the arrays of a program that was partitioned
};

// Lowers a module for as many devices as `options` say. Reports errors, and warnings of passes that a user chose, to
// the sink; the status has the text of the first one, and its code: InvalidArgument if the module does not verify.
// Where the engine's own passes fail the module runs as it is, with a warning. Elided constants have the values that
// the options say. Between passes it stops, with an error for which IsStopped is true, if the options cancel the run or
// it is out of time.
absl::StatusOr<LoweredProgram> Lower(const Module& module, const CompileOptions& compile,
                                     const EvaluatorOptions& options, DiagnosticSink* sink);
// The same in place.
absl::StatusOr<LoweredProgram> Lower(std::unique_ptr<Module> module, const CompileOptions& compile,
                                     const EvaluatorOptions& options, DiagnosticSink* sink);

// Prepares the engine. Returns null after an error.
std::unique_ptr<Executable> Compile(LoweredProgram program, const CompileOptions& compile,
                                    const EvaluatorOptions& options, DiagnosticSink* sink);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROGRAM_COMPILE_H_

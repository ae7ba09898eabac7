// SPDX-License-Identifier: Apache-2.0
#include "interp/program/compile.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "interp/program/program_passes.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/unpartitioned.h"

namespace hlokit::interp {

namespace {

// Returns the passes that a module goes through before it runs; "": none.
std::string PassesOf(const CompileOptions& options, const Module& module, MixedPrecisionMode mode) {
  if (options.passes) return *options.passes;
  if (options.engine != EngineKind::kFast || options.shows_instructions || !options.is_verified) return "";
  return PassesForFastEngine(module, mode);
}

}  // namespace

bool PartitionIfWhole(const Module& module, const CompileOptions& compile, const EvaluatorOptions& options,
                      DiagnosticSink* sink, std::optional<PartitionedProgram>* program) {
  program->reset();
  if (options.num_partitions <= 1 || !FirstUnpartitioned(module).valid()) return true;
  absl::StatusOr<PartitionedProgram> partitioned = PartitionProgram(module, options, sink);
  if (partitioned.ok()) {
    *program = *std::move(partitioned);
    return true;
  }
  ReportPartitionError(module, partitioned.status(), compile.partition_hint, sink);
  return false;
}

bool ApplyPasses(const Module& module, const CompileOptions& compile, const EvaluatorOptions& options,
                 DiagnosticSink* sink, std::unique_ptr<Module>* after) {
  after->reset();
  const std::string passes = PassesOf(compile, module, options.mixed_precision);
  if (passes.empty()) return true;
  // Of the engine's own passes a user asked for none, and is not told what they think of the module.
  absl::StatusOr<std::unique_ptr<Module>> changed =
      AfterPasses(module, passes, options, compile.passes ? sink : nullptr);
  if (changed.ok()) {
    *after = *std::move(changed);
    return true;
  }
  const std::string message(changed.status().message());
  if (IsStopped(changed.status())) {
    sink->Error(DiagnosticKind::kEvaluation, {}, message);
    return false;
  }
  if (compile.passes) {
    sink->Error(DiagnosticKind::kEvaluation, {}, StrCat(compile.passes_flag, ": ", message));
    return false;
  }
  sink->Warning(DiagnosticKind::kEvaluation, {},
                StrCat("the module runs as it is: of the passes ", passes, ", ", message));
  return true;
}

}  // namespace hlokit::interp

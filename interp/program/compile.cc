// SPDX-License-Identifier: Apache-2.0
#include "interp/program/compile.h"

#include <utility>

#include "absl/status/status.h"
#include "interp/compiled/code/code_store.h"
#include "interp/program/program_passes.h"
#include "ir/core/first_error.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/unpartitioned.h"
#include "ir/verify/verifier.h"

namespace hlokit::interp {
namespace {

// Returns the passes that a module goes through before it runs; "": none.
std::string PassesOf(const CompileOptions& compile, const Module& module, MixedPrecisionMode mode) {
  if (compile.passes) return *compile.passes;
  const EngineRow& engine = RowOf(compile.engine);
  const bool keeps = compile.shows_instructions || compile.verification == Verification::kUnverified;
  return engine.passes == nullptr || keeps ? "" : engine.passes(module, mode);
}

absl::Status Verify(const Module& module, DiagnosticSink* sink) {
  DiagnosticSink found;
  VerifyModule(module, VerifierOptions(), &found);
  for (const Diagnostic& diagnostic : found.diagnostics()) sink->Report(diagnostic);
  if (!found.has_errors()) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("invalid program: ", FirstErrorOf(found)));
}

// Divides the program if it is a whole one with shardings.
absl::Status PartitionIfWhole(const CompileOptions& compile, const EvaluatorOptions& options, DiagnosticSink* sink,
                              LoweredProgram* program) {
  if (!compile.partition || options.num_partitions <= 1 || !FirstUnpartitioned(*program->module).valid()) {
    return absl::OkStatus();
  }
  absl::StatusOr<PartitionedProgram> partitioned = PartitionProgram(*program->module, options, sink);
  if (!partitioned.ok()) {
    ReportPartitionError(*program->module, partitioned.status(), compile.partition_hint, sink);
    return partitioned.status();
  }
  *program = LoweredProgram::Of(std::move(partitioned->module));
  program->division = std::move(partitioned->arrays);
  return absl::OkStatus();
}

absl::Status RunPassesOf(const CompileOptions& compile, const EvaluatorOptions& options, DiagnosticSink* sink,
                         LoweredProgram* program) {
  const std::string passes = PassesOf(compile, *program->module, options.mixed_precision);
  if (passes.empty()) return absl::OkStatus();
  // Of the engine's own passes a user asked for none, and is not told what they think of the module. Where they fail,
  // the module must be as it was.
  const bool in_place = program->owned != nullptr && compile.passes.has_value();
  auto changed = in_place ? std::move(program->owned) : std::make_unique<Module>(program->module->Clone());
  const absl::Status status = RunProgramPasses(passes, options, compile.passes ? sink : nullptr, changed.get());
  if (status.ok()) {
    program->module = changed.get();
    program->owned = std::move(changed);
    return status;
  }
  const std::string message(status.message());
  if (IsStopped(status)) {
    sink->Error(DiagnosticKind::kEvaluation, {}, message);
    return status;
  }
  if (compile.passes) {
    const std::string& flag = compile.passes_flag;
    sink->Error(DiagnosticKind::kEvaluation, {}, flag.empty() ? message : StrCat(flag, ": ", message));
    return status;
  }
  sink->Warning(DiagnosticKind::kEvaluation, {},
                StrCat("the module runs as it is: of the passes ", passes, ", ", message));
  return absl::OkStatus();
}

absl::StatusOr<LoweredProgram> Lower(LoweredProgram program, const CompileOptions& compile,
                                     const EvaluatorOptions& options, DiagnosticSink* sink) {
  absl::Status status;
  if (compile.verification == Verification::kVerify) status = Verify(*program.module, sink);
  if (status.ok()) status = PartitionIfWhole(compile, options, sink, &program);
  if (status.ok()) status = RunPassesOf(compile, options, sink, &program);
  if (!status.ok()) return status;
  return program;
}

}  // namespace

absl::StatusOr<LoweredProgram> Lower(const Module& module, const CompileOptions& compile,
                                     const EvaluatorOptions& options, DiagnosticSink* sink) {
  return Lower(LoweredProgram::Of(module), compile, options, sink);
}

absl::StatusOr<LoweredProgram> Lower(std::unique_ptr<Module> module, const CompileOptions& compile,
                                     const EvaluatorOptions& options, DiagnosticSink* sink) {
  return Lower(LoweredProgram::Of(std::move(module)), compile, options, sink);
}

std::unique_ptr<Executable> Compile(LoweredProgram program, const CompileOptions& compile,
                                    const EvaluatorOptions& options, DiagnosticSink* sink) {
  if (RowOf(compile.engine).generates_code) compiled::UseCodeStoreOfEnvironment();
  std::unique_ptr<Engine> engine = PrepareEngine(compile.engine, *program.module, options, sink);
  if (engine == nullptr) return nullptr;
  std::optional<Division> division;
  if (program.division) {
    division = Division{*std::move(program.division), compile.padding, compile.results_by_device, {}, {}};
    division->argument_shapes = division->arrays.parameters.whole_shapes();
    division->result_shapes = division->arrays.result.whole_shapes();
  }
  return std::make_unique<Executable>(*program.module, std::move(program.owned), std::move(engine), std::move(division),
                                      options.world);
}

}  // namespace hlokit::interp

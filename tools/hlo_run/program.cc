// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/program.h"

#include <utility>

#include "tools/hlo_run/argument_shapes.h"

namespace hlokit::run {

std::optional<Program> ReadProgram(const std::string& path, const Flags& flags, std::shared_ptr<Context> context,
                                   cli::DiagnosticReporter* diagnostics, const std::vector<std::string>& sizes) {
  std::vector<cli::InputPart> parts = diagnostics->Read(path);
  if (parts.empty()) return std::nullopt;
  if (parts.size() != 1) {
    diagnostics->ShowError(path, "expected one module in the input", cli::kUsage);
    return std::nullopt;
  }
  std::vector<std::string> known = sizes;
  if (MayHaveOpenSizes(parts[0].text)) {
    const std::vector<std::string> shapes = ArgumentShapes(flags.args, flags.args_npy);
    known.insert(known.end(), shapes.begin(), shapes.end());
  }
  Program program = {parts[0], diagnostics->ParseWithSizes(parts[0], std::move(context), known)};
  if (program.module == nullptr) return std::nullopt;
  if (flags.verify && !diagnostics->Verify(program.part, *program.module)) return std::nullopt;
  return program;
}

interp::CompileOptions CompileOptionsOf(const Flags& flags) {
  interp::CompileOptions compile;
  compile.engine = flags.engine;
  compile.passes = flags.passes;
  compile.passes_flag = "--passes";
  compile.shows_instructions =
      !flags.trace.empty() || !flags.dump_values.empty() || flags.stop_at_nan || flags.isolate || !flags.replay.empty();
  compile.verification = flags.verify ? interp::Verification::kVerified : interp::Verification::kUnverified;
  compile.partition_hint =
      "run it with --partitions=1; if it is partitioned, remove its shardings with hlo-opt --passes=sharding-remover";
  compile.padding = flags.padding;
  compile.results_by_device = flags.results_by_device;
  return compile;
}

std::optional<interp::LoweredProgram> LowerProgram(const Program& program, const interp::CompileOptions& compile,
                                                   const interp::EvaluatorOptions& options,
                                                   cli::DiagnosticReporter* diagnostics) {
  DiagnosticSink sink;
  absl::StatusOr<interp::LoweredProgram> lowered = interp::Lower(*program.module, compile, options, &sink);
  diagnostics->Show(sink, *program.part.source);
  return lowered.ok() ? std::optional(*std::move(lowered)) : std::nullopt;
}

std::unique_ptr<interp::Executable> CompileProgram(const Program& program, interp::LoweredProgram lowered,
                                                   const interp::CompileOptions& compile,
                                                   const interp::EvaluatorOptions& options,
                                                   cli::DiagnosticReporter* diagnostics) {
  DiagnosticSink sink;
  std::unique_ptr<interp::Executable> executable = interp::Compile(std::move(lowered), compile, options, &sink);
  diagnostics->Show(sink, *program.part.source);
  return executable;
}

std::optional<std::vector<Literal>> RunOnce(const Program& program, interp::Executable* executable,
                                            const std::vector<Literal>& arguments, cli::ProgressLine* progress,
                                            cli::DiagnosticReporter* diagnostics) {
  DiagnosticSink sink;
  std::optional<std::vector<Literal>> results = executable->Run(arguments, &sink);
  progress->Clear();
  diagnostics->Show(sink, *program.part.source);
  if (!results) diagnostics->Fail(cli::kRejected);
  return results;
}

}  // namespace hlokit::run

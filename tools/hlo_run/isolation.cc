// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/isolation.h"

#include <memory>
#include <optional>
#include <string>

#include "check/isolation/isolated_run.h"
#include "check/isolation/isolation_report.h"
#include "check/isolation/value_directory.h"
#include "interp/program/program_passes.h"
#include "tools/cli/output_file.h"

namespace hlokit::run {
namespace {

interp::IsolationOptions OptionsOf(const Flags& flags, const interp::EvaluatorOptions& run) {
  interp::IsolationOptions options;
  options.run = run;
  options.whole_fusions = flags.isolate_fusions;
  if (flags.tolerance_given) options.tolerance = interp::Tolerance::OfAllTypes(flags.tolerance);
  options.max_executions = flags.max_executions;
  options.max_work = static_cast<double>(flags.isolate_max_work);
  options.distinct = flags.isolate_distinct;
  if (flags.isolate_max_seconds > 0) options.max_seconds = flags.isolate_max_seconds;
  return options;
}

// `module`: that of the instructions, from `source`.
void Report(const Flags& flags, const interp::IsolatedRun& run, const Module& module, const SourceBuffer& source,
            cli::DiagnosticReporter* diagnostics) {
  const bool written = cli::WriteOutputFile(flags.output, diagnostics,
                                            [&](TextWriter& out) { interp::PrintIsolation(run, source, &out); });
  if (!written) return;
  if (!flags.isolate_json.empty()) {
    cli::WriteOutputFile(flags.isolate_json, diagnostics,
                         [&](TextWriter& out) { interp::WriteIsolationJson(run, module, source, &out); });
  }
  if (!run.result.equal()) diagnostics->Fail(cli::kRejected);
}

// Compares with another module of the same context, from `source`.
void IsolateInModules(const Flags& flags, const Program& program, const Module& other, const SourceBuffer& source,
                      const interp::EvaluatorOptions& options, absl::Span<const Literal> arguments,
                      cli::DiagnosticReporter* diagnostics) {
  DiagnosticSink sink;
  const absl::StatusOr<interp::IsolatedRun> run =
      interp::IsolateInModules(*program.module, other, flags.engine, OptionsOf(flags, options), arguments, &sink);
  diagnostics->Show(sink, *program.part.source);
  if (run.ok()) return Report(flags, *run, other, source, diagnostics);
  if (!sink.has_errors()) diagnostics->ShowError(flags.path, std::string(run.status().message()), cli::kRejected);
}

}  // namespace

void Isolate(const Flags& flags, const Program& program, const interp::EvaluatorOptions& options,
             absl::Span<const Literal> arguments, cli::DiagnosticReporter* diagnostics) {
  const SourceBuffer& source = *program.part.source;
  if (options.num_replicas * options.num_partitions != 1 && !(flags.isolate_passes.empty() && flags.compare.empty())) {
    diagnostics->ShowError("--isolate", "values of two modules are compared on one device", cli::kUsage);
    return;
  }
  if (!flags.isolate_passes.empty()) {
    Module after = program.module->Clone();
    const absl::Status status = interp::RunPasses(flags.isolate_passes, /*warnings=*/nullptr, &after);
    if (status.ok()) return IsolateInModules(flags, program, after, source, options, arguments, diagnostics);
    diagnostics->ShowError(flags.path, std::string(status.message()), cli::kRejected);
    return;
  }
  if (!flags.compare.empty()) {
    const std::optional<Program> other =
        ReadProgram(flags.compare, flags, program.module->shared_context(), diagnostics);
    if (other) {
      IsolateInModules(flags, program, *other->module, *other->part.source, options, arguments, diagnostics);
    }
    return;
  }
  DiagnosticSink sink;
  const absl::StatusOr<interp::IsolatedRun> run =
      interp::IsolateInEngines(*program.module, flags.engine, OptionsOf(flags, options), arguments, &sink);
  diagnostics->Show(sink, source);
  if (run.ok()) {
    Report(flags, *run, *program.module, source, diagnostics);
  } else {
    diagnostics->Fail(cli::kRejected);
  }
}

void ReplayDirectory(const Flags& flags, const Program& program, const interp::EvaluatorOptions& options,
                     cli::DiagnosticReporter* diagnostics) {
  const absl::StatusOr<std::unique_ptr<interp::ValueDirectory>> directory =
      interp::ValueDirectory::Open(flags.replay, program.module->shared_context());
  if (!directory.ok()) {
    const cli::ExitCode code = absl::IsNotFound(directory.status()) ? cli::kUsage : cli::kRejected;
    diagnostics->ShowError("", std::string(directory.status().message()), code);
    return;
  }
  const absl::StatusOr<interp::IsolatedRun> run =
      interp::IsolateRecorded(*program.module, **directory, flags.engine, OptionsOf(flags, options));
  if (run.ok()) {
    Report(flags, *run, *program.module, *program.part.source, diagnostics);
  } else {
    diagnostics->ShowError("", std::string(run.status().message()), cli::kRejected);
  }
}

}  // namespace hlokit::run

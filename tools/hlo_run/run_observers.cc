// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/run_observers.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include "ir/core/printable_text.h"
#include "ir/core/str_cat.h"
#include "tools/cli/output_file.h"
#include "tools/cli/text/regex.h"

namespace hlokit::run {
namespace {

std::vector<bool> Matches(const Module& module, const std::string& pattern) {
  const auto regex = cli::CompileRegex(pattern);
  std::vector<bool> matches(module.instruction_id_bound(), false);
  if (!regex.ok()) return matches;  // the flags are checked
  for (Computation computation : module.computations()) {
    for (Instruction i : computation.instructions()) {
      matches[i.id().value] = (*regex)(i.name());
    }
  }
  return matches;
}

// Adds the instructions of one set, by id, to another.
void Add(const std::vector<bool>& some, std::vector<bool>* all) {
  all->resize(std::max(all->size(), some.size()), false);
  for (size_t i = 0; i < some.size(); ++i) {
    if (some[i]) (*all)[i] = true;
  }
}

}  // namespace

RunObservers::RunObservers(const Flags& flags, const Module& module)
    : flags_(flags), module_(module), stderr_([](std::string_view s) { std::fwrite(s.data(), 1, s.size(), stderr); }) {
  // The profiler comes first: an instruction's time ends before other observers see its value.
  if (flags.profile || !flags.profile_json.empty()) {
    profiler_ = std::make_unique<interp::InstructionProfiler>(module);
    observers_.Add(profiler_.get());
  }
  if (!flags.trace.empty()) {
    traced_ = Matches(module, flags.trace);
    if (std::find(traced_.begin(), traced_.end(), true) == traced_.end()) {
      stderr_ << "hlo-run: warning: --print-values=" << Printable(flags.trace) << " matches no instruction\n";
      stderr_.Flush();
    }
    trace_ = std::make_unique<interp::ValueTrace>(module, traced_, flags.trace_options, &stderr_);
    observers_.Add(trace_.get());
  }
  if (flags.stop_at_nan) {
    nonfinite_check_ = std::make_unique<interp::NonfiniteCheck>(module);
    observers_.Add(nonfinite_check_.get());
  }
}

bool RunObservers::OpenFiles(cli::DiagnosticReporter* diagnostics) {
  if (flags_.dump_values.empty()) return true;
  if (flags_.options.num_replicas * flags_.options.num_partitions != 1) {
    diagnostics->ShowError("--dump-values", "values are written of a run on one device", cli::kUsage);
    return false;
  }
  interp::ValueDirectoryOptions options;
  options.instructions = Matches(module_, flags_.dump_values_match);
  options.max_executions = flags_.max_executions;
  options.max_bytes = flags_.dump_values_max_bytes;
  dumped_ = options.instructions;
  if (std::find(dumped_.begin(), dumped_.end(), true) == dumped_.end()) {
    stderr_ << "hlo-run: warning: --dump-values-match=" << Printable(flags_.dump_values_match)
            << " matches no instruction\n";
    stderr_.Flush();
  }
  absl::StatusOr<std::unique_ptr<interp::ValueDirectoryWriter>> writer =
      interp::ValueDirectoryWriter::Create(flags_.dump_values, module_, options);
  if (!writer.ok()) {
    diagnostics->ShowOutputError(writer.status());
    return false;
  }
  values_ = *std::move(writer);
  observers_.Add(values_.get());
  return true;
}

bool RunObservers::CommitFiles(cli::DiagnosticReporter* diagnostics) {
  if (values_ == nullptr) return true;
  const absl::Status written = values_->Commit();
  if (!written.ok()) diagnostics->ShowOutputError(written);
  return written.ok();
}

void RunObservers::Attach(interp::EvaluatorOptions* options) {
  if (observers_.empty()) return;
  options->observer = &observers_;
  interp::ObservationRequest& observation = options->observation;
  observation.instructions = traced_;
  observation.computed_only = nonfinite_check_ != nullptr && trace_ == nullptr && values_ == nullptr;
  Add(dumped_, &observation.instructions);
  if (nonfinite_check_ != nullptr) interp::NonfiniteCheck::AddTo(module_, &observation);
}

bool RunObservers::Report(const interp::RunStatistics& statistics, const interp::RunTimes& times,
                          const interp::CodeInspection* code, cli::DiagnosticReporter* diagnostics) {
  if (profiler_ == nullptr) return true;
  interp::ProfileReport report = {module_, *profiler_, statistics, {}};
  if (code != nullptr) report.loops = code->LoopMembers();
  if (flags_.profile) {
    interp::PrintProfile(report, &stderr_);
    stderr_.Flush();
  }
  return flags_.profile_json.empty() || cli::WriteOutputFile(flags_.profile_json, diagnostics, [&](TextWriter& out) {
           interp::WriteProfileJson(report, times, &out);
         });
}

}  // namespace hlokit::run

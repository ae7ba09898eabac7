// SPDX-License-Identifier: Apache-2.0
// The observers selected by flags: value trace, search for NaNs, profile.
#ifndef HLOKIT_TOOLS_HLO_RUN_RUN_OBSERVERS_H_
#define HLOKIT_TOOLS_HLO_RUN_RUN_OBSERVERS_H_

#include <memory>
#include <vector>

#include "check/isolation/value_directory.h"
#include "interp/interface/engine.h"
#include "interp/interface/evaluator_options.h"
#include "interp/observers/instruction_profiler.h"
#include "interp/observers/nonfinite_check.h"
#include "interp/observers/observer_list.h"
#include "interp/observers/profile_report.h"
#include "interp/observers/value_trace.h"
#include "ir/core/text_writer.h"
#include "ir/graph/module_fwd.h"
#include "tools/cli/cli.h"
#include "tools/hlo_run/flags.h"

namespace hlokit::run {

class RunObservers {
 public:
  // Warns on standard error of a pattern that matches no instruction.
  RunObservers(const Flags& flags, const Module& module);
  // Creates the directory of values, if the flags ask for one. Returns false after an error, which is printed.
  bool OpenFiles(cli::DiagnosticReporter* diagnostics);
  RunObservers(const RunObservers&) = delete;
  RunObservers& operator=(const RunObservers&) = delete;

  // Called before each run: a profile is that of the last one.
  void BeginRun() {
    if (profiler_ != nullptr) profiler_->Clear();
  }

  // Attaches the observers to an evaluator. They must outlive it.
  void Attach(interp::EvaluatorOptions* options);

  // Completes the directory of values after a run without errors. Returns false after an error, which is printed.
  bool CommitFiles(cli::DiagnosticReporter* diagnostics);
  // Writes the profile after the last run. `code`: of an engine whose loops have the name of their last
  // instruction; may be null. Returns false after an error.
  bool Report(const interp::RunStatistics& statistics, const interp::RunTimes& times,
              const interp::CodeInspection* code, cli::DiagnosticReporter* diagnostics);

 private:
  const Flags& flags_;
  const Module& module_;
  TextWriter stderr_;
  std::vector<bool> traced_;  // by instruction id
  std::vector<bool> dumped_;
  std::unique_ptr<interp::ValueTrace> trace_;
  std::unique_ptr<interp::NonfiniteCheck> nonfinite_check_;
  std::unique_ptr<interp::InstructionProfiler> profiler_;
  std::unique_ptr<interp::ValueDirectoryWriter> values_;
  interp::ObserverList observers_;
};

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_RUN_OBSERVERS_H_

// SPDX-License-Identifier: Apache-2.0
// Flags that select passes and their instrumentation.
#ifndef HLOKIT_TOOLS_CLI_FLAGS_PASS_FLAGS_H_
#define HLOKIT_TOOLS_CLI_FLAGS_PASS_FLAGS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/equivalence/equivalence_check.h"
#include "ir/verify/verifier.h"
#include "passes/core/pipeline.h"
#include "passes/instrumentation/printing.h"
#include "passes/instrumentation/reports.h"
#include "tools/cli/cli.h"
#include "tools/cli/crash/crash_reproducer.h"
#include "tools/cli/flags/remark_flags.h"

namespace hlokit::cli {

class PassFlags {
 public:
  void AddFlags(CLI::App* app);
  // Prepares the flags. Returns an exit code if the tool is done, after a usage error or a requested listing.
  std::optional<int> Prepare(std::string_view tool);
  bool empty() const { return !pipeline_ || pipeline_->empty(); }

  // Runs the pipeline over the module of a part and prints errors and warnings. Returns false after an error.
  bool Run(Module& module, const VerifierOptions& verifier, bool verify, const InputPart& part,
           DiagnosticReporter* diagnostics);
  // Prints the reports over all modules on standard error, and writes the remarks.
  void PrintReports(DiagnosticReporter* diagnostics) const;

 private:
  // Returns the first flag that has no effect without --passes; "" if none was given.
  std::string_view FlagWithoutPasses() const;
  // Returns an exit code if a pattern of pass names is invalid, or matches no pass of the pipeline.
  std::optional<int> CheckPattern(std::string_view tool, std::string_view flag, const std::string& pattern) const;

  std::string passes_;
  std::string list_passes_;
  bool list_remarks_ = false;
  std::string print_pipeline_;
  bool verify_each_ = true;
  std::string time_passes_;
  std::string stats_;
  std::string print_before_, print_after_;
  bool print_before_all_ = false, print_after_all_ = false;
  std::string print_changed_;
  int64_t bisect_limit_ = -1;
  int64_t bisect_rewrites_ = -1;
  bool run_before_after_ = false;
  std::optional<std::string> run_tolerance_;
  interp::EquivalenceOptions run_;
  std::string crash_reproducer_;
  std::string dump_to_;
  int64_t dumped_modules_ = 0;
  int64_t max_rounds_ = PipelineOptions().max_iterations;

  RemarkFlags remarks_;

  std::optional<Pipeline> pipeline_;
  std::unique_ptr<TimePasses> timing_;
  std::unique_ptr<PassStatistics> statistics_;
  std::unique_ptr<CrashReproducer> reproducer_;
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FLAGS_PASS_FLAGS_H_

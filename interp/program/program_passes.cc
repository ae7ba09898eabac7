// SPDX-License-Identifier: Apache-2.0
#include "interp/program/program_passes.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "interp/exact/instruction_evaluator.h"
#include "ir/graph/literal_fill.h"
#include "passes/core/pipeline.h"

namespace hlokit::interp {

absl::Status RunPasses(const std::string& passes, DiagnosticSink* warnings, Module* module,
                       absl::Span<PassInstrumentation* const> instruments) {
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(passes);
  if (!pipeline.ok()) return pipeline.status();
  PipelineOptions options = {.context = EvaluatingContext()};
  options.context.diagnostics = warnings;
  return pipeline->Run(*module, options, instruments).status();
}

namespace {

// Stops between two passes if the work was canceled or is out of time.
class StopCheck : public PassInstrumentation {
 public:
  explicit StopCheck(const EvaluatorOptions& options) : options_(options) {}

  absl::Status RunBeforePass(const PassRun&, const Module&) override {
    if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) {
      return absl::CancelledError("interrupted");
    }
    if (!options_.limits.IsOutOfTime(start_)) return absl::OkStatus();
    return absl::DeadlineExceededError(options_.limits.OutOfTimeMessage("the run"));
  }

 private:
  const EvaluatorOptions& options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

bool IsStopped(const absl::Status& status) { return absl::IsCancelled(status) || absl::IsDeadlineExceeded(status); }

absl::Status RunProgramPasses(const std::string& passes, const EvaluatorOptions& options, DiagnosticSink* warnings,
                              Module* module) {
  const int64_t partitions = std::exchange(module->header().num_partitions, options.num_partitions);
  const int64_t replicas = std::exchange(module->header().replica_count, options.num_replicas);
  if (options.fill_elided) {
    uint64_t seed = options.seed;
    const absl::Status filled = FillElidedConstants(*options.fill_elided, options.limits.max_bytes, &seed, module);
    if (!filled.ok()) return filled;
  }
  StopCheck check(options);
  PassInstrumentation* const stop = &check;
  if (absl::Status status = RunPasses(passes, warnings, module, {&stop, 1}); !status.ok()) return status;
  module->header().num_partitions = partitions;
  module->header().replica_count = replicas;
  return absl::OkStatus();
}

}  // namespace hlokit::interp

// SPDX-License-Identifier: Apache-2.0
#include "interp/program/program_passes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "interp/exact/instruction_evaluator.h"
#include "ir/graph/literal_fill.h"
#include "ir/inference/shape_inference.h"
#include "passes/core/pipeline.h"

namespace hlokit::interp {

namespace {

// Returns true if the instruction reads the bytes of operands as elements of another type (mixed_precision.h), which
// passes do not know of.
bool IsReinterpreting(Instruction i) {
  if (i.opcode() == Opcode::kBitcast && i.shape().IsArray() && i.operand(0).shape().IsArray()) {
    const int from = BitsOf(i.operand(0).shape().element_type()), to = BitsOf(i.shape().element_type());
    return from != to && std::min(from, to) < 8;
  }
  if (!HasTrait(i.opcode(), kElementwise) && !HasTrait(i.opcode(), kUniformTypes)) return false;
  std::vector<Shape> operands;
  return !CheckShape(RequestFor(i, &operands), /*mixed_precision=*/false).ok();
}

}  // namespace

std::string PassesForFastEngine(const Module& module, MixedPrecisionMode mode) {
  for (Computation computation : module.computations()) {
    for (Instruction i : computation.instructions()) {
      if (i.opcode() == Opcode::kRng || i.opcode() == Opcode::kRngGetAndUpdateState) return "";
      if (mode == MixedPrecisionMode::kReinterpret && IsReinterpreting(i)) return "";
    }
  }
  return "cpu";
}

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

absl::StatusOr<std::unique_ptr<Module>> AfterPasses(const Module& module, const std::string& passes,
                                                    const EvaluatorOptions& options, DiagnosticSink* warnings) {
  auto after = std::make_unique<Module>(module.Clone());
  const int64_t partitions = std::exchange(after->header().num_partitions, options.num_partitions);
  const int64_t replicas = std::exchange(after->header().replica_count, options.num_replicas);
  if (options.fill_elided) {
    uint64_t seed = options.seed;
    const absl::Status filled = FillElidedConstants(*options.fill_elided, options.limits.max_bytes, &seed, &*after);
    if (!filled.ok()) return filled;
  }
  StopCheck check(options);
  PassInstrumentation* const stop = &check;
  if (absl::Status status = RunPasses(passes, warnings, &*after, {&stop, 1}); !status.ok()) return status;
  after->header().num_partitions = partitions;
  after->header().replica_count = replicas;
  return after;
}

}  // namespace hlokit::interp

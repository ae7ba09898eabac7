// SPDX-License-Identifier: Apache-2.0
#include "interp/equivalence/program_passes.h"

#include <algorithm>
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

absl::Status RunPasses(const std::string& passes, DiagnosticSink* warnings, Module* module) {
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(passes);
  if (!pipeline.ok()) return pipeline.status();
  PipelineOptions options = {.context = EvaluatingContext()};
  options.context.diagnostics = warnings;
  return pipeline->Run(*module, options).status();
}

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
  if (absl::Status status = RunPasses(passes, warnings, &*after); !status.ok()) return status;
  after->header().num_partitions = partitions;
  after->header().replica_count = replicas;
  return after;
}

}  // namespace hlokit::interp

// SPDX-License-Identifier: Apache-2.0
// PyTorch/XLA's output for PT_XLA_DEBUG: a block for each compilation and each execution with its cause and source
// lines, and recommendations from the metrics after each step.
#ifndef HLOKIT_TRACER_STEP_DEBUG_ANALYSIS_H_
#define HLOKIT_TRACER_STEP_DEBUG_ANALYSIS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/metrics/metrics.h"
#include "ir/graph/module_fwd.h"
#include "tracer/step/execution_log.h"

namespace hlokit::lazy {

enum class AnalysisKind : uint8_t { kCompilation, kExecution, kUnexpectedExecution };

// Returns the block for one execution, with at most `max_frames` source lines. No newline at the end.
std::string AnalysisBlock(AnalysisKind kind, const ExecutionRecord& execution, int max_frames);
// Returns the block for a compiled program: a digest and its memory.
std::string PostCompilationBlock(const Module& module);

// Recommendations, each given once: for compilations or transfers in more than half of the steps, a very slow one,
// steps that mostly wait for their batches, and ops that ran on the host.
class AutoAnalysis {
 public:
  std::vector<std::string> AfterStep(const runtime::Metrics& metrics, const ExecutionLog& log, int64_t steps);

 private:
  std::set<std::string> given_;  // kinds, ops by name
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_DEBUG_ANALYSIS_H_

// SPDX-License-Identifier: Apache-2.0
// What PT_XLA_DEBUG makes PyTorch/XLA print, in its words: a block for each compilation and each execution with its
// cause and the lines that triggered it, and advice drawn from the metrics after each step.
#ifndef HLOKIT_TRACER_STEP_DEBUG_ANALYSIS_H_
#define HLOKIT_TRACER_STEP_DEBUG_ANALYSIS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "interp/runtime/observe/metrics.h"
#include "ir/graph/module.h"
#include "tracer/step/execution_log.h"

namespace hlokit::lazy {

enum class AnalysisKind : uint8_t { kCompilation, kExecution, kUnexpectedExecution };

// The block about one execution, at most `max_frames` lines of the program in it. No newline at the end.
std::string AnalysisBlock(AnalysisKind kind, const ExecutionRecord& execution, int max_frames);
// The block about a program that was compiled: a digest of it and how much memory it needs.
std::string PostCompilationBlock(const Module& module);

// Advice, each piece given once: when compilations or transfers are more than half as many as steps, when one was very
// slow, when ops ran on the host.
class AutoAnalysis {
 public:
  std::vector<std::string> AfterStep(const runtime::Metrics& metrics, const ExecutionLog& log, int64_t steps);

 private:
  std::set<std::string> given_;  // of what, ops by name
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_DEBUG_ANALYSIS_H_

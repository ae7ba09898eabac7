// SPDX-License-Identifier: Apache-2.0
// Log of executions: one record for each, and reports of the graphs per step and what broke them.
#ifndef HLOKIT_TRACER_STEP_EXECUTION_LOG_H_
#define HLOKIT_TRACER_STEP_EXECUTION_LOG_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "ir/digest/digest.h"
#include "tracer/graph/scope.h"

namespace hlokit::lazy {

struct ExecutionRecord {
  enum class ProgramOrigin : uint8_t { kCompiled, kLoaded, kCached };

  int64_t step = 1;  // of the device, from 1: steps marked before it, plus one
  SyncReason cause = SyncReason::kStep;
  std::string name;  // of a compiled region or captured function
  Digest graph;
  ProgramOrigin program =
      ProgramOrigin::kCompiled;  // compiled, loaded from the persistent compilation cache, or in memory
  int ordinal = 0;               // of the device
  std::string device;
  std::string root;  // symbol of the first result's node
  int64_t nodes = 0;
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t donated = 0;
  std::vector<SourceFrame> frames;  // of the program, innermost first
};

class ExecutionLog {
 public:
  void Add(ExecutionRecord execution);
  // Returns the executions by step, those of each step by device: threads of several devices run in any order. If
  // several devices ran a program in the step in which it was compiled or loaded, the first of them counts as the one
  // that did.
  std::vector<ExecutionRecord> executions() const;

 private:
  mutable std::mutex mutex_;
  std::vector<ExecutionRecord> executions_;
};

// Returns "step@file.py:3", or "".
std::string LocationOf(const std::vector<SourceFrame>& frames);

// Returns the graphs by step, with reasons and locations; then counts, and the reasons of extra graphs.
std::string GraphReport(const std::vector<ExecutionRecord>& executions);
// Returns the report as {"steps": [[GRAPH, ...], ...], "summary": {...}}, without a newline at the end.
std::string GraphReportJson(const std::vector<ExecutionRecord>& executions);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_EXECUTION_LOG_H_

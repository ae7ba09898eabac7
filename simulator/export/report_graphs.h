// SPDX-License-Identifier: Apache-2.0
// A step of several graphs in a report: the times of all of them, and a check that the parts of a report add up.
#ifndef HLOKIT_SIMULATOR_EXPORT_REPORT_GRAPHS_H_
#define HLOKIT_SIMULATOR_EXPORT_REPORT_GRAPHS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "simulator/export/xplane.h"
#include "simulator/program/kernel_plan.h"
#include "simulator/report/report.h"
#include "simulator/timing/compile_time.h"

namespace hlokit::tpu {

// An execution of one step.
struct StepExecution {
  const ReportInput* input = nullptr;
  const KernelPlan* plan = nullptr;
  double start = 0;  // seconds since the first one of the step began
};

struct ReportGraph {
  const ReportInput* input = nullptr;
  const KernelPlan* plan = nullptr;
  double runs_per_step = 1;  // in the steady state
  CompileTime compile_time;
  double measured_compile_seconds = 0;  // CPU time here; 0: not compiled here
};

// What a report of a recorded program shows in addition to that of its main graph.
struct RecordedRun {
  std::vector<ReportGraph> graphs;
  std::vector<StepExecution> step;    // the executions of one steady step on the first device
  std::vector<HostThread> threads;    // with the times of the replay
  std::vector<int64_t> step_numbers;  // the program's numbers of the steps
  double step_seconds = 0;            // of the replay, in the steady state; 0: not known
};

// Adds the time of all graphs to the report of the main one: totals, categories, operations, collectives.
void MergeGraphs(const std::vector<ReportGraph>& graphs, const ReportInput& main, nlohmann::ordered_json* report);
// Returns the list `graphs`.
nlohmann::ordered_json GraphsJson(const std::vector<ReportGraph>& graphs);
// Returns `host.threads`: the spans of the last steps.
nlohmann::ordered_json ThreadsJson(const RecordedRun& run);

// Compares the parts of the step with the whole and sets `checks`, and `missing`: what the parts lack. `graphs` are
// those of the step. `replayed_seconds`: of a step as the recorded threads ran, which the host model of the report is
// compared with; 0: not known.
void CheckParts(const std::vector<ReportGraph>& graphs, double replayed_seconds, nlohmann::ordered_json* report);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_REPORT_GRAPHS_H_

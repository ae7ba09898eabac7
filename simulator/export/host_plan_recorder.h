// SPDX-License-Identifier: Apache-2.0
// Collects the phases, scopes and causes of each step from the points of the program's thread.
#ifndef HLOKIT_SIMULATOR_EXPORT_HOST_PLAN_RECORDER_H_
#define HLOKIT_SIMULATOR_EXPORT_HOST_PLAN_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/observe/profiler.h"
#include "simulator/export/replay.h"
#include "simulator/export/thread_points.h"

namespace hlokit::tpu {

class HostPlanRecorder {
 public:
  explicit HostPlanRecorder(const runtime::Profile& profile) : profile_(profile) {}

  // Adds a point of the program's thread, reached at time `at`.
  void Add(const ThreadPoint& point, double at, bool ends_step);
  // Adds an execution on the first device.
  void AddRun(size_t program, int64_t step) { runs_.emplace_back(program, step); }
  // Adds the production of batches on other threads: seconds per batch, and batches ahead.
  void SetLoader(double input, double transfer, int64_t prefetch);

  // Returns the step in progress at a time; a step that ends then is over.
  int64_t StepAt(double seconds) const;
  const std::vector<double>& step_ends() const { return ends_; }
  // Completes the plan. `seconds_of`: device time by program.
  void Finish(const std::vector<double>& seconds_of, Replay* replay);

 private:
  struct OpenSpan {
    size_t event;
    std::string path;  // scopes, "train/forward"; empty: none
    double start;
  };
  void AddCause(HostPhase phase, std::string what, const std::string& source, double seconds);
  // Returns why the compilation in this span was necessary, or "".
  std::string ReasonOf(const runtime::TraceEvent& compile) const;
  HostStep& step() { return steps_[ends_.size()]; }

  const runtime::Profile& profile_;
  std::vector<HostStep> steps_ = std::vector<HostStep>(1);  // the last one is in progress
  std::vector<double> ends_;
  std::vector<int64_t> numbers_;
  std::vector<OpenSpan> open_;
  std::vector<size_t> fallbacks_;                 // events of ops without lowering in progress
  std::vector<std::pair<size_t, int64_t>> runs_;  // program and step
  double input_ = 0, transfer_ = 0;
  int64_t prefetch_ = 0;
  double cpu_ = 0, step_cpu_ = 0;  // of finished steps, of the step in progress
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_HOST_PLAN_RECORDER_H_

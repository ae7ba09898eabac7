// SPDX-License-Identifier: Apache-2.0
// Named parts of a traced program for profiles: host spans, and scopes on recorded nodes that attribute device time.
//
//   StepTrace step(&tracer, "train", 7);
//   { Trace forward("forward"); loss = Loss(Logits(batch)); }
//   ...
//   absl::Status status = step.Finish();   // ends the span and marks the step
#ifndef HLOKIT_TRACER_OBSERVE_PROFILING_H_
#define HLOKIT_TRACER_OBSERVE_PROFILING_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "interp/runtime/observe/profiler.h"
#include "tracer/step/device_state.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

// A span of recording time, not device time. Requires: no step marker inside it.
class Trace {
 public:
  explicit Trace(std::string_view name) : span_(name), scope_(name) {}

 private:
  runtime::TraceMe span_;
  ScopedTrace scope_;
};

// A step of a loop; ends with a step marker.
class StepTrace {
 public:
  StepTrace(Tracer* tracer, std::string_view name, int64_t step_num);
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;
  // Marks the step. Called at most once; otherwise the destructor marks it and the tracer gets errors.
  absl::Status Finish();

 private:
  Tracer* tracer_;
  std::optional<runtime::TraceMe> span_;
  std::optional<ScopedTrace> scope_;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_OBSERVE_PROFILING_H_

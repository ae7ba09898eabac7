// SPDX-License-Identifier: Apache-2.0
// Named parts of a traced program for profiles: host spans, and scopes on recorded nodes that attribute device time.
//
//   Tensor loss;
//   StepTrace step(&tracer, "train", 7);
//   { Trace forward("forward"); loss = Loss(Logits(batch)); }
//   absl::Status status = step.Finish();  // ends the span and marks the step
#ifndef HLOKIT_TRACER_OBSERVE_PROFILING_H_
#define HLOKIT_TRACER_OBSERVE_PROFILING_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/observe/profiler.h"
#include "tracer/graph/scope.h"
#include "tracer/step/device_state.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

// A span of recording time, not device time. Requires: no step marker inside it.
using Trace = ScopedTrace;

// The span of a step, which profiles number by `step_num`, without a scope or a marker.
class StepSpan {
 public:
  using Stats = std::vector<std::pair<std::string, int64_t>>;
  StepSpan(std::string_view name, int64_t step_num, Stats more = {}) : span_(name, With(step_num, std::move(more))) {}

 private:
  static Stats With(int64_t step_num, Stats more) {
    more.emplace_back("step_num", step_num);
    more.emplace_back("_r", 1);
    return more;
  }
  runtime::AnnotationSpan span_;
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
  std::optional<StepSpan> span_;
  std::optional<ScopedName> scope_;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_OBSERVE_PROFILING_H_

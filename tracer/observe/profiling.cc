// SPDX-License-Identifier: Apache-2.0
#include "tracer/observe/profiling.h"

#include <utility>

#include "tracer/graph/scope.h"

namespace hlokit::lazy {

StepTrace::StepTrace(Tracer* tracer, std::string_view name, int64_t step_num) : tracer_(tracer) {
  span_.emplace(name, step_num);
  scope_.emplace(name);
}

absl::Status StepTrace::Finish() {
  Tracer* const tracer = std::exchange(tracer_, nullptr);
  scope_.reset();
  const ScopedSyncReason cause(SyncReason::kStepTrace);
  const absl::Status status = tracer == nullptr ? absl::OkStatus() : tracer->MarkStep();
  span_.reset();
  return status;
}

StepTrace::~StepTrace() {
  Tracer* const tracer = tracer_;
  if (tracer == nullptr) return;
  if (absl::Status status = Finish(); !status.ok()) tracer->SetError(std::move(status));
}

}  // namespace hlokit::lazy

// SPDX-License-Identifier: Apache-2.0
#include "tracer/capture/compile_region.h"

#include <mutex>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/graph/scope.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy {

CompileRegion::CompileRegion(Tracer* tracer, RegionOptions options, DynamicShapeDetector* detector,
                             const std::source_location& location)
    : tracer_(tracer),
      device_(CurrentDevice() != nullptr ? CurrentDevice() : tracer->device()),
      options_(std::move(options)),
      detector_(detector) {
  const ScopedSourceLocation site(location);
  DeviceLock lock(device_->mutex());
  outer_name_ = device_->graph_name;
  outer_forbids_ = device_->forbid_execution;
  outer_detector_ = device_->dynamic_shape_detector;
  device_->graph_name = StrCat(options_.name, "_clear_pending");
  status_ = SyncLiveTensors(*device_, SyncReason::kRegionPending, /*wait=*/false);
  device_->graph_name = options_.name;
  device_->forbid_execution = outer_forbids_ || options_.full_graph;
  device_->dynamic_shape_detector = detector_;
  if (detector_ != nullptr) detector_->Begin();
}

absl::Status CompileRegion::End(const std::source_location& location) {
  if (ended_) return absl::OkStatus();
  ended_ = true;
  const ScopedSourceLocation site(location);
  DeviceLock lock(device_->mutex());
  device_->forbid_execution = outer_forbids_;
  device_->dynamic_shape_detector = outer_detector_;
  if (status_.ok() && detector_ != nullptr) status_ = detector_->End();
  if (status_.ok()) status_ = tracer_->status();
  if (status_.ok()) status_ = SyncLiveTensors(*device_, SyncReason::kRegion, /*wait=*/false);
  device_->graph_name = outer_name_;
  return status_;
}

CompileRegion::~CompileRegion() {
  if (absl::Status s = End(); !s.ok()) tracer_->SetError(std::move(s));
}

}  // namespace hlokit::lazy

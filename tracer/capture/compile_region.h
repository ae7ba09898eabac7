// SPDX-License-Identifier: Apache-2.0
// A part of the program that is to be graphs of its own, as torch_xla.compile makes them: what was pending before runs
// first, and what the part recorded runs when it ends.
#ifndef HLOKIT_TRACER_CAPTURE_COMPILE_REGION_H_
#define HLOKIT_TRACER_CAPTURE_COMPILE_REGION_H_

#include <cstdint>
#include <source_location>
#include <string>

#include "absl/status/status.h"
#include "tracer/step/device_state.h"
#include "tracer/step/dynamic_shape_detector.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

struct RegionOptions {
  std::string name = "compile";
  // Nothing may run inside: fetching a value there is an error.
  bool full_graph = false;
};

class CompileRegion {
 public:
  // Runs what is pending on this thread's device. `detector`, if not null, watches the region; it outlives the regions
  // that it watches.
  CompileRegion(Tracer* tracer, RegionOptions options, DynamicShapeDetector* detector = nullptr,
                const std::source_location& location = std::source_location::current());
  // Runs what the region recorded. The first error of all, the start's included.
  absl::Status End(const std::source_location& location = std::source_location::current());
  // Ends it, if End was not called; an error is the tracer's.
  ~CompileRegion();
  CompileRegion(const CompileRegion&) = delete;
  CompileRegion& operator=(const CompileRegion&) = delete;

 private:
  Tracer* tracer_;
  DeviceState* device_;
  const RegionOptions options_;
  DynamicShapeDetector* detector_;
  std::string outer_name_;
  absl::Status status_;
  bool ended_ = false;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_CAPTURE_COMPILE_REGION_H_

// SPDX-License-Identifier: Apache-2.0
// A region of the program compiled as separate graphs, like torch_xla.compile: runs pending nodes at its start and its
// own nodes at its end.
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
  // Forbids executions inside: fetching a value is an error. Regions in it forbid them too.
  bool full_graph = false;
};

class CompileRegion {
 public:
  // Runs the pending nodes of this thread's device. `detector`: observes the region if not null; must outlive it.
  CompileRegion(Tracer* tracer, RegionOptions options, DynamicShapeDetector* detector = nullptr,
                const std::source_location& location = std::source_location::current());
  // Runs the nodes of the region. Returns the first error, including that of the start.
  absl::Status End(const std::source_location& location = std::source_location::current());
  // Ends the region if End was not called; the tracer then gets the error.
  ~CompileRegion();
  CompileRegion(const CompileRegion&) = delete;
  CompileRegion& operator=(const CompileRegion&) = delete;

 private:
  Tracer* tracer_;
  DeviceState* device_;
  const RegionOptions options_;
  DynamicShapeDetector* detector_;
  std::string outer_name_;
  bool outer_forbids_;
  DynamicShapeDetector* outer_detector_;
  absl::Status status_;
  bool ended_ = false;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_CAPTURE_COMPILE_REGION_H_

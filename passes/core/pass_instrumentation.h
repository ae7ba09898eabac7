// SPDX-License-Identifier: Apache-2.0
// Instrumentation of passes in a pipeline.
#ifndef HLOKIT_PASSES_CORE_PASS_INSTRUMENTATION_H_
#define HLOKIT_PASSES_CORE_PASS_INSTRUMENTATION_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "ir/graph/module_fwd.h"
#include "passes/core/pass.h"

namespace hlokit {

// One run of one pass.
struct PassRun {
  const PassInfo& info;
  const Pass& pass;
  int64_t number;          // from 1, counted over the whole pipeline run
  std::string_view place;  // labels of the enclosing groups, "simplify/clean"; "" outside
};

class PassInstrumentation {
 public:
  virtual ~PassInstrumentation() = default;
  // Returns false to skip the run; other instrumentations are then not notified.
  virtual bool ShouldRun(const PassRun&) { return true; }
  virtual absl::Status RunBeforePass(const PassRun&, const Module&) { return absl::OkStatus(); }
  // Runs after a pass. An error stops the pipeline.
  virtual absl::Status RunAfterPass(const PassRun&, const Module&, bool /*changed*/) { return absl::OkStatus(); }
  // Runs after a pass failed, which stops the pipeline. The module may be in any state.
  virtual void RunAfterPassFailed(const PassRun&, const absl::Status&) {}
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_CORE_PASS_INSTRUMENTATION_H_

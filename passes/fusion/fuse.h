// SPDX-License-Identifier: Apache-2.0
// Creates the fusions of a plan, and expands fusions.
#ifndef HLOKIT_PASSES_FUSION_FUSE_H_
#define HLOKIT_PASSES_FUSION_FUSE_H_

#include <cstdint>

#include "ir/graph/module_fwd.h"
#include "passes/fusion/fusion_plan.h"
#include "passes/remarks/remark.h"

namespace hlokit {

struct FusionCounts {
  int64_t loop = 0;
  int64_t input = 0;
  int64_t output = 0;
  int64_t multi_output = 0;  // fusions with several results
  int64_t instructions = 0;  // fused instructions
  int64_t copies = 0;        // fused instructions that are duplicated
  int64_t fusions() const { return loop + input + output; }
};

// Fuses instructions in sequential computations, by the rules of fusion_plan.h. Modules with a schedule do not change.
// A second run finds nothing to do. `remarks`: gets the decisions; null: nobody.
FusionCounts FuseModule(Module& module, const FusionLimits& limits, RemarkCollector* remarks = nullptr);

// Expands all fusions except custom ones. Returns their number.
int64_t DefuseModule(Module& module);
// Expands all fusions, also custom ones, of a module that another compiler has fused. Leaves those with control edges,
// and those that an asynchronous operation wraps. Returns their number.
int64_t InlineFusions(Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_FUSION_FUSE_H_

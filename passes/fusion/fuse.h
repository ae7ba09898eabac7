// SPDX-License-Identifier: Apache-2.0
// Makes the fusions of a plan, and takes fusions apart.
#ifndef HLOKIT_PASSES_FUSION_FUSE_H_
#define HLOKIT_PASSES_FUSION_FUSE_H_

#include <cstdint>

#include "ir/graph/module.h"
#include "passes/fusion/fusion_plan.h"

namespace hlokit {

struct FusionCounts {
  int64_t loop = 0;
  int64_t input = 0;
  int64_t output = 0;
  int64_t multi_output = 0;  // of these
  int64_t instructions = 0;  // fused
  int64_t copies = 0;        // of them that are computed elsewhere too
  int64_t fusions() const { return loop + input + output; }
};

// Fuses in the computations whose instructions run one by one; fusion_plan.h says what. Modules whose order is a
// schedule are left alone. Run again, it finds nothing more to do.
FusionCounts FuseModule(Module& module, const FusionLimits& limits);

// Replaces each fusion but custom ones by its instructions. The number of fusions.
int64_t DefuseModule(Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_FUSION_FUSE_H_

// SPDX-License-Identifier: Apache-2.0
// Functions that register the passes of each category, and the named pipelines.
#ifndef HLOKIT_PASSES_CORE_REGISTER_PASSES_H_
#define HLOKIT_PASSES_CORE_REGISTER_PASSES_H_

#include "passes/core/registry.h"

namespace hlokit {

void RegisterAnnotationPasses(PassRegistry* registry);
void RegisterSimplifyPasses(PassRegistry* registry);
void RegisterExpanderPasses(PassRegistry* registry);
void RegisterFusionPasses(PassRegistry* registry);
void RegisterCollectivePasses(PassRegistry* registry);
void RegisterShardingPasses(PassRegistry* registry);
void RegisterLayoutPasses(PassRegistry* registry);
void RegisterSchedulePasses(PassRegistry* registry);
void RegisterQueryPasses(PassRegistry* registry);
void RegisterNamedPipelines(PassRegistry* registry);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_CORE_REGISTER_PASSES_H_

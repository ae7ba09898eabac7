// SPDX-License-Identifier: Apache-2.0
// What fills a registry: the passes of the library, whose rows stand with their sources (pass_row.h), and the named
// pipelines, which are made of them.
#ifndef HLOKIT_PASSES_CORE_REGISTER_PASSES_H_
#define HLOKIT_PASSES_CORE_REGISTER_PASSES_H_

#include "passes/core/registry.h"

namespace hlokit {

void RegisterPasses(PassRegistry* registry);
void RegisterNamedPipelines(PassRegistry* registry);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_CORE_REGISTER_PASSES_H_

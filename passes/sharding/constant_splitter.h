// SPDX-License-Identifier: Apache-2.0
// Clones constants for their users.
#ifndef HLOKIT_PASSES_SHARDING_CONSTANT_SPLITTER_H_
#define HLOKIT_PASSES_SHARDING_CONSTANT_SPLITTER_H_

#include <cstdint>

#include "ir/graph/module.h"

namespace hlokit::sharding {

// Clones constants, and iotas and broadcasts of scalar constants, for each user but the first. Those with a sharding
// stay. Returns the number of clones.
int64_t SplitConstants(Module& module);

}  // namespace hlokit::sharding

#endif  // HLOKIT_PASSES_SHARDING_CONSTANT_SPLITTER_H_

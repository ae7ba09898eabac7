// SPDX-License-Identifier: Apache-2.0
// Sharding propagation by Shardy's policy over the same rules as XLA's (propagation.h): factor by factor, in rounds by
// kind of operation. Dimensions that are given are closed, unless the text opens them; a dimension only gains minor
// axes, and an axis belongs to one dimension of an array. Tilings that conflict are decided by the size of the array
// they come from.
//
// Of Shardy's text it reads meshes, shardings of values, and manual computations over all axes of a mesh. It does not
// read priorities, groups and barriers, and leaves values in manual computations over some of the axes alone.
#ifndef HLOKIT_PASSES_SHARDING_SHARDY_PROPAGATION_H_
#define HLOKIT_PASSES_SHARDING_SHARDY_PROPAGATION_H_

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/sharding/propagation.h"

namespace hlokit::sharding {

// Propagates the shardings of the module; parameters and results as the header allows.
absl::StatusOr<PropagationCounts> PropagateLikeShardy(Module& module);

}  // namespace hlokit::sharding

#endif  // HLOKIT_PASSES_SHARDING_SHARDY_PROPAGATION_H_

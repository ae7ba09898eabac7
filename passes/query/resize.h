// SPDX-License-Identifier: Apache-2.0
// Changes the size of a dimension, such as the batch, of a whole program.
#ifndef HLOKIT_PASSES_QUERY_RESIZE_H_
#define HLOKIT_PASSES_QUERY_RESIZE_H_

#include "passes/core/pass.h"

namespace hlokit::query {

// The dimension of entry parameters that has the size FROM of the option `batch`, "FROM:TO", is followed through the
// program along the factors of sharding rules (passes/sharding/sharding_rule.h), through tuples, loops, calls and
// fusions. Each dimension that it reaches is TO / FROM times as large, limits of slices and sizes of dynamic slices and
// gathers with it. Returns an error that names the instruction where the dimension cannot be followed; the module stays
// as it is then. The result is verified.
class ResizePass : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit::query

#endif  // HLOKIT_PASSES_QUERY_RESIZE_H_

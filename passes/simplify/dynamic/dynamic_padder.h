// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_DYNAMIC_DYNAMIC_PADDER_H_
#define HLOKIT_PASSES_SIMPLIFY_DYNAMIC_DYNAMIC_PADDER_H_

#include "passes/core/pass.h"

namespace hlokit {

// Arrays with a dynamic dimension become arrays of its bound. What set-dimension-size said is kept beside them, as a
// scalar: get-dimension-size is that scalar, and what combines the elements of such a dimension leaves out those
// behind it. Results of a computation stay what they were, by a set-dimension-size at the end. A module with something
// that cannot be done this way is left as it is, and the error says what.
class DynamicPadder : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_DYNAMIC_DYNAMIC_PADDER_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_BF16_PROPAGATION_H_
#define HLOKIT_PASSES_SIMPLIFY_BF16_PROPAGATION_H_

#include "passes/core/pass.h"

namespace hlokit {

// Converts to bf16 the values that are only moved until they are rounded to bf16: through data movement, select, min
// and max, collectives that only move data, tuples and loop states. The defining instruction rounds such a value.
// Results do not change.
class Bf16Propagation : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_BF16_PROPAGATION_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_BF16_PROPAGATION_H_
#define HLOKIT_PASSES_SIMPLIFY_BF16_PROPAGATION_H_

#include "passes/core/pass.h"

namespace hlokit {

// Keeps in bf16 what is only moved until it is rounded to bf16: through data movement, selections, extremes,
// collectives that only move, tuples and the states of loops. Whoever makes such a value rounds it. Every result stays
// what it was.
class Bf16Propagation : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_BF16_PROPAGATION_H_

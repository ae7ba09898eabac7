// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_DYNAMIC_DYNAMIC_PADDER_H_
#define HLOKIT_PASSES_SIMPLIFY_DYNAMIC_DYNAMIC_PADDER_H_

#include "passes/core/pass.h"

namespace hlokit {

// Payload of the pass's errors: the id of the instruction that it cannot pad, in decimal.
inline constexpr char kPaddedInstruction[] = "hlokit/instruction";

// Returns true if an array of the module is dynamic, or a custom call of XLA makes one static or dynamic.
bool HasDynamicArrays(const Module& module);

// Replaces arrays with dynamic dimensions by arrays of their bounds. The size given by set-dimension-size becomes a
// separate scalar, which replaces get-dimension-size, and instructions that combine elements of such a dimension mask
// those beyond it. Results of a computation keep their shape, by a set-dimension-size at the end. A module with an
// unsupported instruction does not change, and the error names the instruction.
class DynamicPadder : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_DYNAMIC_DYNAMIC_PADDER_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_CALLS_INLINE_H_
#define HLOKIT_PASSES_SIMPLIFY_CALLS_INLINE_H_

#include "passes/core/pass.h"

namespace hlokit {

// Puts the bodies of called computations in the place of `call` instructions, callees first, so that no call is left
// but those that must stay. Computations that nothing calls any more are removed. Linear in the size of the result,
// which is bounded by an option.
class Inline : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Gives every call, while and conditional computations of its own.
class FlattenCallGraph : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Makes callers of equal computations call one of them.
class DeduplicateComputations : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_CALLS_INLINE_H_

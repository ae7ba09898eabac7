// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_CALLS_INLINE_H_
#define HLOKIT_PASSES_SIMPLIFY_CALLS_INLINE_H_

#include "passes/core/pass.h"

namespace hlokit {

// Replaces `call` instructions by the bodies of the called computations, except calls that must stay. Removes
// computations that lose their last caller. Linear in the size of the result, which is bounded by an option.
class Inline : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Gives every call, while and conditional its own copy of its computations.
class FlattenCallGraph : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Redirects the callers of equal computations to one of them.
class DeduplicateComputations : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_CALLS_INLINE_H_

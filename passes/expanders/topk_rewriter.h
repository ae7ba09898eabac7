// SPDX-License-Identifier: Apache-2.0
// Top-k in place of sorts of which only the first elements are used.
#ifndef HLOKIT_PASSES_EXPANDERS_TOPK_REWRITER_H_
#define HLOKIT_PASSES_EXPANDERS_TOPK_REWRITER_H_

#include "passes/core/pass.h"

namespace hlokit {

// Replaces descending sorts, alone or with an iota, whose users are slices of the first k elements by the custom-call
// TopK. As XLA's, for the types of its kernels, f32 and bf16, along the first or last dimension.
class TopkRewriter : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_EXPANDERS_TOPK_REWRITER_H_

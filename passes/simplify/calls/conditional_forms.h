// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_CALLS_CONDITIONAL_FORMS_H_
#define HLOKIT_PASSES_SIMPLIFY_CALLS_CONDITIONAL_FORMS_H_

#include "passes/core/pass.h"

namespace hlokit {

// Gives conditionals that return an array a tuple as result.
class ConditionalCanonicalizer : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Replaces conditionals in computations that are applied to elements, as those of maps, by selects.
class ConditionalToSelect : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_CALLS_CONDITIONAL_FORMS_H_

// SPDX-License-Identifier: Apache-2.0
// Passes that edit what a query finds.
#ifndef HLOKIT_PASSES_QUERY_REPLACE_H_
#define HLOKIT_PASSES_QUERY_REPLACE_H_

#include "passes/core/pass.h"

namespace hlokit::query {

// Replaces each match of the option `match`, under the condition `where`, by what `with` says: a variable of the match,
// a number, or an instruction of these. Attributes come from the matched instruction of the same opcode.
class ReplacePass : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Sets, or removes, an attribute of each match.
class SetAttributePass : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit::query

#endif  // HLOKIT_PASSES_QUERY_REPLACE_H_

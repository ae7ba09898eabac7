// SPDX-License-Identifier: Apache-2.0
// Registers the annotation passes.
#include "passes/annotations/propagate.h"
#include "passes/core/register_passes.h"

namespace hlokit {

void RegisterAnnotationPasses(PassRegistry* registry) {
  registry->Add({.name = "propagate-annotations",
                 .category = "annotations",
                 .summary = "copy metadata from neighbors to instructions without any",
                 .doc = "An instruction without metadata gets the op_name and source location of its nearest user with "
                        "metadata, or else of an operand, at any distance; in computations without metadata, of the "
                        "caller. Existing metadata does not change.",
                 .example = R"(ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] negate(x)
  ROOT z = f32[4] abs(y), metadata={op_name="model/abs"}
})",
                 .preserves = "the program: only metadata changes.",
                 .create = MakePass<PropagateAnnotations>});
}

}  // namespace hlokit

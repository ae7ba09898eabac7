// The pipelines that have a name.
#include "passes/rooms.h"

namespace hlokit {

void RegisterNamedPipelines(PassRegistry* registry) {
  registry->AddPipeline({.name = "simplify",
                         .summary = "what makes a program smaller without changing what it computes",
                         .text = "inline,clean(algsimp,reshape-mover,while-loop-invariant-code-motion,while-loop-"
                                 "constant-sinking,while-loop-simplifier,cse,dce,computation-deduplicator)*"});
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
// The pipelines that have a name.
#include "passes/core/register_passes.h"

namespace hlokit {

namespace {

// What comes after `simplify`, which `default` uses.
void RegisterFusingPipelines(PassRegistry* registry) {
  registry->AddPipeline({.name = "fuse",
                         .summary = "fewer passes over memory: fuses, without storing what is computed on the way",
                         .text = "tuple-simplifier,dce,fusion,tuple-simplifier,dce"});
  registry->AddPipeline({.name = "default",
                         .summary = "simplify, fuse, and name what came without a name",
                         .text = "simplify,fuse,propagate-annotations"});
}

}  // namespace

void RegisterNamedPipelines(PassRegistry* registry) {
  registry->AddPipeline({.name = "simplify",
                         .summary = "what makes a program smaller without changing what it computes",
                         .text = "inline,clean("
                                 "algsimp,sort-simplifier,zero-sized-hlo-elimination,dynamic-dimension-simplifier,"
                                 "while-loop-invariant-code-motion,tuple-simplifier,while-loop-constant-sinking,"
                                 "while-loop-simplifier,conditional-simplifier,reshape-mover,constant-folding,cse,dce,"
                                 "dead-parameter-removal,computation-deduplicator)*"});
  registry->AddPipeline({.name = "tpu-simplify",
                         .summary = "what the simulated TPU runs on a program that no compiler has seen",
                         .text = "inline,batchnorm-expander,clean(algsimp,cse,dce)*"});
  registry->AddPipeline({.name = "licm",
                         .summary = "short for the pass that moves code out of loops",
                         .text = "while-loop-invariant-code-motion"});
  RegisterFusingPipelines(registry);
  registry->AddPipeline(
      {.name = "tpu",
       .summary = "compiles for a TPU, down to a schedule with memory spaces; what has a schedule is left alone",
       .text = "tpu-simplify,layout-assignment{target=tpu},collective-pipeliner,fuse,all-reduce-combiner,"
               "all-gather-combiner,reduce-scatter-combiner,async-collective-creator,latency-hiding-scheduler,"
               "rematerialization,memory-space-assignment",
       .compiles = true});
}

}  // namespace hlokit

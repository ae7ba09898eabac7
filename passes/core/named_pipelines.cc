// SPDX-License-Identifier: Apache-2.0
// Registers the named pipelines.
#include "passes/core/register_passes.h"

namespace hlokit {

namespace {

// `simplify`; ALGSIMP: the algebraic simplification.
#define HLOKIT_SIMPLIFY(ALGSIMP)                                                                               \
  "clean(inline{max-added=20}," ALGSIMP                                                                        \
  ",sort-simplifier,zero-sized-hlo-elimination,dynamic-dimension-simplifier,while-loop-invariant-code-motion," \
  "tuple-simplifier,while-loop-constant-sinking,while-loop-simplifier,conditional-simplifier,reshape-mover,"   \
  "constant-folding,cse,dce,dead-parameter-removal,computation-deduplicator)*"

// Registers the pipelines that follow `simplify`, which `default` uses.
void RegisterFusingPipelines(PassRegistry* registry) {
  registry->AddPipeline({.name = "fuse",
                         .summary = "fuse, to reduce memory traffic",
                         .text = "tuple-simplifier,dce,fusion,tuple-simplifier,dce"});
  registry->AddPipeline({.name = "default",
                         .summary = "simplify, fuse and propagate metadata",
                         .text = "inline,simplify,fuse,propagate-annotations"});
  registry->AddPipeline(
      {.name = "cpu",
       .summary = "prepare a program for the fast engine, which fuses by itself, bit for bit",
       .text = "inline," HLOKIT_SIMPLIFY("algsimp{signed-zeros},topk-rewriter") ",propagate-annotations"});
}

}  // namespace

void RegisterNamedPipelines(PassRegistry* registry) {
  registry->AddPipeline({.name = "simplify",
                         .summary = "simplify without changing results but for the signs of zeros",
                         .text = HLOKIT_SIMPLIFY("algsimp")});
  registry->AddPipeline(
      {.name = "tpu-simplify",
       .summary = "prepare an uncompiled program for the simulated TPU",
       .text = "inline,batchnorm-expander{one-pass},clean(algsimp,while-loop-invariant-code-motion,tuple-simplifier,"
               "while-loop-simplifier,conditional-simplifier,cse,dce)*"});
  registry->AddPipeline({.name = "licm",
                         .summary = "short for while-loop-invariant-code-motion",
                         .text = "while-loop-invariant-code-motion"});
  registry->AddPipeline({.name = "collective-pipeliner-backward",
                         .summary = "short for the collective pipeliner in its backward direction",
                         .text = "collective-pipeliner{direction=backward}"});
  registry->AddPipeline({.name = "collective-pipeliner-forward",
                         .summary = "short for the collective pipeliner in its forward direction",
                         .text = "collective-pipeliner{direction=forward}"});
  registry->AddPipeline(
      {.name = "despecializer",
       .summary = "remove schedule, control edges and fusions; XLA's also removes mixed precision of bf16",
       .text = "hlo-descheduler,control-dep-remover,defuse"});
  RegisterFusingPipelines(registry);
  registry->AddPipeline({.name = "spmd-propagation",
                         .summary = "give every instruction of a program for several partitions its sharding",
                         .text = "shardy-import,defuse,inline,flatten-call-graph,batchnorm-expander,"
                                 "dot-dimension-splitter,sharding-propagation{is-spmd=true}",
                         .skip_if_partitioned = true});
  registry->AddPipeline(
      {.name = "spmd",
       .summary = "write a program with shardings for one of its partitions; partitioned modules are not changed",
       .text = "spmd-propagation,spmd-partitioner,dce,reduce-scatter-creator,all-gather-cse,dce",
       .skip_if_partitioned = true});
  registry->AddPipeline(
      {.name = "tpu",
       .summary = "compile for a TPU, to a schedule with memory spaces; scheduled modules are not changed",
       .text = "spmd{one-pass},tpu-simplify,layout-assignment{target=tpu},collective-pipeliner,tuple-simplifier,dce,"
               "fusion{reduction-epilogues},tuple-simplifier,dce,copy-insertion{arguments-only},all-reduce-combiner,"
               "all-gather-combiner,reduce-scatter-combiner,async-collective-creator{reduce-scatters=false},"
               "convert-memory-placement-to-internal-annotations,host-offload-legalize,host-offloader,"
               "host-memory-transfer-asyncifier,latency-hiding-scheduler,rematerialization,memory-space-assignment",
       .skip_if_scheduled = true});
}

}  // namespace hlokit

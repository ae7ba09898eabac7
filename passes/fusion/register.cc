// SPDX-License-Identifier: Apache-2.0
// Registers the fusion passes.
#include "passes/core/register_passes.h"
#include "passes/fusion/fuse.h"

namespace hlokit {
namespace {

class Fusion : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    FusionLimits limits;
    limits.max_operands = options().Int("max-operands");
    limits.max_instructions = options().Int("max-instructions");
    limits.max_recompute = static_cast<double>(options().Int("max-recompute"));
    limits.operand_reload_factor = static_cast<double>(options().Int("operand-loads"));
    limits.multi_output = options().Bool("multi-output");
    limits.output_fusion = options().Bool("output-fusion");
    limits.reduction_epilogues = options().Bool("reduction-epilogues");
    const FusionCounts counts = FuseModule(module, limits);
    if (counts.fusions() == 0) return false;
    Count("loop fusions", counts.loop);
    Count("input fusions", counts.input);
    Count("output fusions", counts.output);
    Count("fusions with several results", counts.multi_output);
    Count("instructions fused", counts.instructions);
    Count("instructions copied", counts.copies);
    return true;
  }
};

class Defuse : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const int64_t fusions = DefuseModule(module);
    if (fusions > 0) Count("fusions taken apart", fusions);
    return fusions > 0;
  }
};

constexpr char kFusionExample[] = R"(HloModule normalize

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = bf16[64,256]{1,0} parameter(0)
  scale = f32[256]{0} parameter(1)
  wide = f32[64,256]{1,0} convert(x)
  square = f32[64,256]{1,0} multiply(wide, wide)
  zero = f32[] constant(0)
  total = f32[64]{0} reduce(square, zero), dimensions={1}, to_apply=sum
  root = f32[64]{0} sqrt(total)
  all = f32[64,256]{1,0} broadcast(root), dimensions={0}
  quotient = f32[64,256]{1,0} divide(wide, all)
  scales = f32[64,256]{1,0} broadcast(scale), dimensions={1}
  ROOT result = f32[64,256]{1,0} multiply(quotient, scales)
}
)";

constexpr char kDefuseExample[] = R"(HloModule fused

f {
  a = f32[8]{0} parameter(0)
  b = f32[8]{0} exponential(a)
  ROOT c = f32[8]{0} negate(b)
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  ROOT y = f32[8]{0} fusion(x), kind=kLoop, calls=f
}
)";

}  // namespace

void RegisterFusionPasses(PassRegistry* registry) {
  registry->Add(
      {.name = "fusion",
       .category = "fusion",
       .summary = "fuse instructions so that intermediate values are not stored",
       .doc = "Creates loop fusions, input fusions around reductions and output fusions around dots and convolutions, "
              "with one or several results, of producers with consumers and of consumers of the same value. A fusion "
              "is one loop nest; expensive operations are computed once, cheap ones may be duplicated if that saves "
              "memory traffic; updates in place stay in place. Each decision takes the largest saving in bytes. "
              "Instructions of fused computations keep their metadata, and the fusion carries that of all of them.",
       .example = kFusionExample,
       .options = {{.name = "max-operands",
                    .type = OptionInfo::Type::kInt,
                    .default_text = "64",
                    .doc = "maximum number of operands and results of a fusion",
                    .min = 1},
                   {.name = "max-instructions",
                    .type = OptionInfo::Type::kInt,
                    .default_text = "512",
                    .doc = "maximum number of instructions of a fusion",
                    .min = 2},
                   {.name = "max-recompute",
                    .type = OptionInfo::Type::kInt,
                    .default_text = "16",
                    .doc = "maximum recomputed operations per loop element"},
                   {.name = "operand-loads",
                    .type = OptionInfo::Type::kInt,
                    .default_text = "4",
                    .doc = "number of loads of an element of a dot operand, which multiplies the cost of fused "
                           "producers; 1 on a TPU",
                    .min = 1},
                   {.name = "multi-output",
                    .type = OptionInfo::Type::kBool,
                    .default_text = "true",
                    .doc = "create fusions with several results"},
                   {.name = "output-fusion",
                    .type = OptionInfo::Type::kBool,
                    .default_text = "true",
                    .doc = "create fusions around dots and convolutions"},
                   {.name = "reduction-epilogues",
                    .type = OptionInfo::Type::kBool,
                    .default_text = "false",
                    .doc = "reduce the result of a dot or convolution in its fusion, as TPUs do"}},
       .preconditions = "No schedule: a module that has one is left alone.",
       .create = MakePass<Fusion>});
  registry->Add({.name = "defuse",
                 .category = "fusion",
                 .summary = "replace fusions by their instructions",
                 .doc = "The inverse of `fusion`: after `cse` and `dce` the program is the original one. Custom "
                        "fusions and those with control edges stay.",
                 .example = kDefuseExample,
                 .preconditions = "No schedule: a module that has one is left alone.",
                 .create = MakePass<Defuse>});
}

}  // namespace hlokit

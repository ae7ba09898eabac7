// SPDX-License-Identifier: Apache-2.0
// Registers the collective passes.
#include <deque>
#include <string>

#include "ir/core/str_cat.h"
#include "passes/collective/collective_rules.h"
#include "passes/collective/collectives.h"
#include "passes/collective/examples.h"
#include "passes/core/register_passes.h"

namespace hlokit {
namespace {

template <Opcode opcode>
class Combine : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<CombineCounts> counts =
        CombineCollectives(module, opcode, {options().Int("max-bytes"), options().Int("max-count")});
    if (!counts.ok()) return counts.status();
    if (counts->made == 0) return false;
    Count("collectives merged", counts->merged);
    Count("collectives made", counts->made);
    return true;
  }
};

// A pass that counts its rewrites.
template <absl::StatusOr<int64_t> (*run)(Module&)>
class Counted : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = run(module);
    if (!count.ok()) return count.status();
    if (*count > 0) Count("collectives changed", *count);
    return *count > 0;
  }
};

class AsyncCollectiveCreator : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = MakeCollectivesAsync(module, options().Bool("reduce-scatters"));
    if (!count.ok()) return count.status();
    if (*count > 0) Count("collectives changed", *count);
    return *count > 0;
  }
};

class AllReduceSimplifier : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<AllReduceSimplifierCounts> counts = SimplifyAllReduces(module);
    if (!counts.ok()) return counts.status();
    if (counts->alone > 0) Count("collectives of one device removed", counts->alone);
    if (counts->uniform > 0) Count("all-reduces of equal values removed", counts->uniform);
    return counts->alone + counts->uniform > 0;
  }
};

class AllGatherCse : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = MergeAllGathers(module);
    if (!count.ok()) return count.status();
    if (*count > 0) Count("all-gathers merged", *count);
    return *count > 0;
  }
};

class PermuteDecomposer : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = DecomposeCollectivePermutes(module, options().Int("min-bytes"));
    if (!count.ok()) return count.status();
    if (*count > 0) Count("collective-permutes decomposed", *count);
    return *count > 0;
  }
};

class LoopAllReduceMotion : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = MoveAllReducesOutOfLoops(module);
    if (!count.ok()) return count.status();
    if (*count > 0) Count("all-reduces moved out of loops", *count);
    return *count > 0;
  }
};

class CollectiveQuantizer : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = QuantizeCollectives(module);
    if (!count.ok()) return count.status();
    if (*count > 0) Count("collectives narrowed", *count);
    return *count > 0;
  }
};

class WindowedEinsumHandler : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<WindowedEinsumCounts> counts =
        MakeWindowedEinsums(module, {options().Int("min-bytes"), options().Int("max-group-size")});
    if (!counts.ok()) return counts.status();
    if (counts->gathered > 0) Count("dots of gathered operands divided", counts->gathered);
    if (counts->scattered > 0) Count("dots with scattered results divided", counts->scattered);
    return counts->gathered + counts->scattered > 0;
  }
};

class ReassociateScatters : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = ReassociateReduceScatters(module, options().Bool("reassociate-floats"));
    if (!count.ok()) return count.status();
    if (*count > 0) Count("reduce-scatters removed", *count);
    return *count > 0;
  }
};

class Reassociate : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = ReassociateAllReduces(module, options().Bool("reassociate-floats"));
    if (!count.ok()) return count.status();
    if (*count > 0) Count("all-reduces removed", *count);
    return *count > 0;
  }
};

// Returns a module whose entry reduces over devices with `sum`. Lives as long as the registry.
std::string_view AllReduceExample(std::string_view name, std::string_view type, std::string_view entry) {
  static auto* const kTexts = new std::deque<std::string>();
  return kTexts->emplace_back(StrCat("HloModule ", name, "\n\nsum {\n  a = ", type, "[] parameter(0)\n  b = ", type,
                                     "[] parameter(1)\n  ROOT c = ", type, "[] add(a, b)\n}\n\nENTRY main {\n", entry,
                                     "}\n"));
}

std::string_view TwoGradients() {
  return AllReduceExample("gradients", "f32", R"(  x = f32[128]{0} parameter(0)
  y = f32[64]{0} parameter(1)
  dx = f32[128]{0} all-reduce(x), replica_groups={{0,1}}, to_apply=sum
  dy = f32[64]{0} all-reduce(y), replica_groups={{0,1}}, to_apply=sum
  ROOT t = (f32[128]{0}, f32[64]{0}) tuple(dx, dy)
)");
}

std::string_view TwoAxes() {
  return AllReduceExample("axes", "f32", R"(  x = f32[128]{0} parameter(0)
  rows = f32[128]{0} all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=sum
  ROOT all = f32[128]{0} all-reduce(rows), replica_groups={{0,2},{1,3}}, to_apply=sum
)");
}

std::string_view Total() {
  return AllReduceExample("total", "s32", R"(  x = s32[128]{0} parameter(0)
  y = s32[128]{0} parameter(1)
  rx = s32[128]{0} all-reduce(x), replica_groups={{0,1}}, to_apply=sum
  ry = s32[128]{0} all-reduce(y), replica_groups={{0,1}}, to_apply=sum
  ROOT s = s32[128]{0} add(rx, ry)
)");
}

constexpr char kNoSchedule[] = "No schedule: a module that has one is left alone.";

template <Opcode opcode>
PassInfo CombinerInfo(std::string_view name, std::string_view summary, std::string_view max_bytes,
                      std::string_view example) {
  return {.name = name,
          .category = "collective",
          .summary = summary,
          .doc =
              "Merges independent collectives with the same groups and reduction into one with several operands, in "
              "program order, up to a size. The merged collective keeps the channel of the first one.",
          .example = example,
          .options = {{.name = "max-bytes",
                       .type = OptionInfo::Type::kInt,
                       .default_text = max_bytes,
                       .doc = "maximum bytes of the operands of one collective"},
                      {.name = "max-count",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "256",
                       .doc = "maximum number of operands",
                       .min = 1}},
          .preconditions = kNoSchedule,
          .create = MakePass<Combine<opcode>>};
}

// Passes on collectives of known groups, and of values of which it is known how they differ between devices.
void RegisterDeviceAwarePasses(PassRegistry* registry) {
  registry->Add({.name = "reduce-scatter-creator",
                 .category = "collective",
                 .summary = "make reduce-scatters of all-reduces of which each device takes its shard",
                 .doc = "A dynamic-slice of an all-reduce becomes a reduce-scatter if each device takes the shard with "
                        "its number in its group. A reshape between them may keep the sliced dimension. XLA matches "
                        "forms of the start index; here its value is computed for each device.",
                 .example = CollectiveExample("reduce-scatter-creator"),
                 .preconditions = kNoSchedule,
                 .tolerance = 1e-5,
                 .create = MakePass<CollectiveRules<AddReduceScatterCreatorRules>>});
  registry->Add({.name = "all-reduce-simplifier",
                 .category = "collective",
                 .summary = "remove all-reduces whose result a device knows without the others",
                 .doc =
                     "In groups of one device all-reduces, all-gathers and reduce-scatters are removed. An all-reduce "
                     "of values that are equal in each group becomes the operand, or for sums its product with the "
                     "size of the group. XLA requires equal values on all replicas, and multiplies narrow floats "
                     "too, which rounds differently.",
                 .example = CollectiveExample("all-reduce-simplifier"),
                 .preconditions = kNoSchedule,
                 .tolerance = 1e-5,
                 .create = MakePass<AllReduceSimplifier>});
  registry->Add({.name = "all-gather-dynamic-slice-simplifier",
                 .category = "collective",
                 .summary = "replace the own shard of an all-gather by its operand",
                 .doc = "A dynamic-slice of an all-gather of which each device takes the shard that it contributed is "
                        "the operand. XLA also looks through a reshape, but leaves an all-gather with other users "
                        "alone.",
                 .example = CollectiveExample("all-gather-dynamic-slice-simplifier"),
                 .preconditions = kNoSchedule,
                 .create = MakePass<CollectiveRules<AddAllGatherDynamicSliceSimplifierRules>>});
}

// Passes that express collectives by others, or run them less often.
void RegisterRestructuringPasses(PassRegistry* registry) {
  registry->Add({.name = "while-loop-all-reduce-code-motion",
                 .category = "collective",
                 .summary = "reduce once after a loop what it reduces and adds up",
                 .doc = "If a loop adds the result of an all-reduce to an element of its state and does not use the "
                        "element otherwise, it adds up the operand instead, and the sum is reduced after it. XLA also "
                        "follows reduce-scatters, conversions, slices and selections.",
                 .example = CollectiveExample("while-loop-all-reduce-code-motion"),
                 .preconditions = kNoSchedule,
                 .tolerance = 1e-5,
                 .create = MakePass<LoopAllReduceMotion>});
  registry->Add({.name = "collective-permute-decomposer",
                 .category = "collective",
                 .summary = "replace collective-permutes in loops by send and recv",
                 .doc =
                     "A collective-permute of one array in a loop body, whose pairs have no cycle, becomes recv, send "
                     "and their done instructions, ordered by control edges. XLA also marks one or two of them for "
                     "its pipeliner.",
                 .example = CollectiveExample("collective-permute-decomposer"),
                 .options = {{.name = "min-bytes",
                              .type = OptionInfo::Type::kInt,
                              .default_text = "0",
                              .doc = "minimum bytes of the array"}},
                 .preconditions = kNoSchedule,
                 .create = MakePass<PermuteDecomposer>});
  registry->Add({.name = "all-to-all-decomposer",
                 .category = "collective",
                 .summary = "exchange slices instead of an array",
                 .doc = "An all-to-all that splits an array becomes an all-to-all of its slices and a concatenation of "
                        "what is received; or, with min-array-rank, one of an array with more dimensions. As XLA's, "
                        "which also reshapes ragged-all-to-alls, and puts the added dimensions after the pieces.",
                 .example = CollectiveExample("all-to-all-decomposer"),
                 .options = {{.name = "min-array-rank",
                              .type = OptionInfo::Type::kInt,
                              .default_text = "0",
                              .doc = "split the dimension in two, and add dimensions of size 1 up to this rank; 0: "
                                     "exchange slices"}},
                 .preconditions = kNoSchedule,
                 .create = MakePass<CollectiveRules<AddAllToAllDecomposerRules>>});
  registry->Add({.name = "windowed-einsum-handler",
                 .category = "collective",
                 .summary = "divide dots of gathered operands and with scattered results into steps",
                 .doc = "A dot of an all-gather, or a reduce-scatter of a dot, becomes one dot for each device of the "
                        "group, and collective-permutes that pass shards on meanwhile. XLA's partitioner makes loops "
                        "of this form, which its pass prepares for several streams; here the steps are made, unrolled.",
                 .example = CollectiveExample("windowed-einsum-handler"),
                 .options = {{.name = "min-bytes",
                              .type = OptionInfo::Type::kInt,
                              .default_text = "0",
                              .doc = "minimum bytes of the gathered operand or of the result before it is scattered"},
                             {.name = "max-group-size",
                              .type = OptionInfo::Type::kInt,
                              .default_text = "16",
                              .doc = "maximum number of devices of a group, which is the number of steps",
                              .min = 2}},
                 .preconditions = kNoSchedule,
                 .tolerance = 1e-5,
                 .create = MakePass<WindowedEinsumHandler>});
  registry->Add({.name = "collective-quantizer",
                 .category = "collective",
                 .summary = "move data between devices in the narrower type",
                 .doc = "A widening conversion before an all-gather, all-to-all, collective-broadcast or "
                        "collective-permute moves behind it, a narrowing one after it before it; for all-gather and "
                        "all-to-all also with the product or quotient by a scale that is equal in each group. Between "
                        "them may be bitcasts, copies, reshapes and slices. XLA's also moves the scale across the "
                        "other two, and takes only modules with one replica.",
                 .example = CollectiveExample("collective-quantizer"),
                 .preconditions = kNoSchedule,
                 .create = MakePass<CollectiveQuantizer>});
}

// Passes that merge collectives or move them.
void RegisterMergingPasses(PassRegistry* registry) {
  registry->Add({.name = "all-gather-cse",
                 .category = "collective",
                 .summary = "merge all-gathers of equal values",
                 .doc = "All-gathers with the same groups become one if their operands are equal behind optimization "
                        "barriers, tuples and conversions. XLA merges those of parameters, with equal channels; here "
                        "the values may be any, and the channels may differ.",
                 .example = CollectiveExample("all-gather-cse"),
                 .preconditions = kNoSchedule,
                 .create = MakePass<AllGatherCse>});
  registry->Add({.name = "all-gather-broadcast-reorder",
                 .category = "collective",
                 .summary = "gather before broadcasting",
                 .doc =
                     "An all-gather of a broadcast becomes a broadcast of an all-gather, which sends less. As in XLA, "
                     "except that a repeated gathered dimension suffices.",
                 .example = CollectiveExample("all-gather-broadcast-reorder"),
                 .preconditions = kNoSchedule,
                 .create = MakePass<CollectiveRules<AddAllGatherBroadcastReorderRules>>});
  registry->Add({.name = "reduce-scatter-reassociate",
                 .category = "collective",
                 .summary = "reassociate operations on the results of reduce-scatters",
                 .doc = "The sum of two reduce-scatters with addition becomes the reduce-scatter of the sum, and "
                        "likewise for the other reductions. XLA reassociates floats too, here on request.",
                 .example = CollectiveExample("reduce-scatter-reassociate"),
                 .options = {{.name = "reassociate-floats",
                              .type = OptionInfo::Type::kBool,
                              .default_text = "false",
                              .doc = "sums and products of floats too, which changes the order of operations"}},
                 .preconditions = kNoSchedule,
                 .tolerance = 1e-5,
                 .create = MakePass<ReassociateScatters>});
}

}  // namespace

void RegisterCollectivePasses(PassRegistry* registry) {
  registry->Add(CombinerInfo<Opcode::kAllReduce>("all-reduce-combiner", "merge small all-reduces into large ones",
                                                 "31457280", TwoGradients()));
  registry->Add(CombinerInfo<Opcode::kAllGather>("all-gather-combiner", "merge small all-gathers into large ones",
                                                 "31457280", ""));
  registry->Add(CombinerInfo<Opcode::kReduceScatter>("reduce-scatter-combiner",
                                                     "merge small reduce-scatters into large ones", "31457280", ""));
  registry->Add(CombinerInfo<Opcode::kCollectivePermute>("collective-permute-combiner",
                                                         "merge small collective-permutes into large ones", "31457280",
                                                         CollectiveExample("collective-permute-combiner")));
  registry->Add(
      {.name = "all-reduce-folder",
       .category = "collective",
       .summary = "merge an all-reduce of an all-reduce into one",
       .doc =
           "Two consecutive all-reduces become one over the combined groups, if each of these has every device once.",
       .example = TwoAxes(),
       .preconditions = kNoSchedule,
       .tolerance = 1e-5,
       .create = MakePass<Counted<FoldAllReduces>>});
  registry->Add({.name = "all-reduce-reassociate",
                 .category = "collective",
                 .summary = "reassociate operations on the results of all-reduces",
                 .doc = "The sum of two all-reduces with addition becomes the all-reduce of the sum, and likewise for "
                        "the other reductions.",
                 .example = Total(),
                 .options = {{.name = "reassociate-floats",
                              .type = OptionInfo::Type::kBool,
                              .default_text = "false",
                              .doc = "sums and products of floats too, which changes the order of operations"}},
                 .preconditions = kNoSchedule,
                 .tolerance = 1e-5,
                 .create = MakePass<Reassociate>});
  registry->Add(
      {.name = "async-collective-creator",
       .category = "collective",
       .summary = "split collectives into start and done",
       .doc = "all-reduce, all-gather and collective-permute become their own start and done opcodes, the others an "
              "async-start of a computation and an async-done. `schedule` overlaps other work with them.",
       .example = TwoAxes(),
       .options = {{.name = "reduce-scatters",
                    .type = OptionInfo::Type::kBool,
                    .default_text = "true",
                    .doc =
                        "reduce-scatters too; those of a TPU run on its core, which adds, so that `tpu` leaves them"}},
       .preconditions = kNoSchedule,
       .create = MakePass<AsyncCollectiveCreator>});
  RegisterDeviceAwarePasses(registry);
  RegisterMergingPasses(registry);
  RegisterRestructuringPasses(registry);
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
// Registers the collective passes.
#include <deque>
#include <string>

#include "ir/core/str_cat.h"
#include "passes/collective/collectives.h"
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

}  // namespace

void RegisterCollectivePasses(PassRegistry* registry) {
  registry->Add(CombinerInfo<Opcode::kAllReduce>("all-reduce-combiner", "merge small all-reduces into large ones",
                                                 "31457280", TwoGradients()));
  registry->Add(CombinerInfo<Opcode::kAllGather>("all-gather-combiner", "merge small all-gathers into large ones",
                                                 "31457280", ""));
  registry->Add(CombinerInfo<Opcode::kReduceScatter>("reduce-scatter-combiner",
                                                     "merge small reduce-scatters into large ones", "31457280", ""));
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
       .preconditions = kNoSchedule,
       .create = MakePass<Counted<MakeCollectivesAsync>>});
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
// Removes collectives whose result a device knows without the others.
#include <optional>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/call_graph.h"
#include "passes/annotations/annotations.h"
#include "passes/collective/collective_key.h"
#include "passes/collective/collectives.h"
#include "passes/collective/device_values.h"
#include "passes/core/pass_row.h"

namespace hlokit {
namespace {

// A removal may make values equal that differed, as far as is known; few modules need a second round.
constexpr int kMaxRounds = 16;

struct Replacement {
  InstructionId collective;
  int64_t factor;  // the result is the operand times this
  bool alone;      // groups of one device
};

// Returns the number by which a sum of `count` equal elements differs from one of them; nullopt if the product is
// rounded differently from the sum.
std::optional<int64_t> FactorOfSum(ElementType type, int64_t count) {
  if (type == ElementType::kF32 || type == ElementType::kF64 || IsInteger(type)) return count;
  return std::nullopt;
}

std::optional<Replacement> ReplacementOf(Instruction i, UniformValues& uniform) {
  const Opcode opcode = i.opcode();
  const bool reduces = opcode == Opcode::kAllReduce;
  if (!reduces && !OpcodeSet{Opcode::kAllGather, Opcode::kReduceScatter}.Contains(opcode)) return std::nullopt;
  if (i.operand_count() != 1 || !i.shape().IsArray() || i.shape() != i.operand(0).shape() || !CollectiveKey(i)) {
    return std::nullopt;
  }
  // An all-gather or reduce-scatter that keeps the shape has groups of one.
  if (!reduces) return Replacement{i.id(), 1, true};
  const std::optional<DeviceGroups> groups = DeviceGroupsOf(i);
  if (!groups) return std::nullopt;
  if (groups->group_size() == 1) return Replacement{i.id(), 1, true};
  if (!uniform.IsUniform(i.operand(0), i)) return std::nullopt;
  const Opcode reducer = *ReducerOpcode(i.computation_attr(Attr::kToApply));
  if (reducer == Opcode::kAdd) {
    const std::optional<int64_t> factor = FactorOfSum(i.shape().element_type(), groups->group_size());
    return factor ? std::optional<Replacement>({i.id(), *factor, false}) : std::nullopt;
  }
  const bool idempotent = HasTrait(reducer, kIdempotent);
  return idempotent ? std::optional<Replacement>({i.id(), 1, false}) : std::nullopt;
}

void Apply(Module& module, const Replacement& replacement) {
  const Instruction i = module.instruction(replacement.collective);
  InstructionId by = i.operand(0).id();
  if (replacement.factor != 1) {
    Builder builder(&module, i.id());
    const MetadataScope scope(&builder, i.metadata_id());
    const InstructionId factor =
        builder.MakeScalarConstant(i.shape().element_type(), static_cast<double>(replacement.factor));
    by = builder.MakeLike(Opcode::kMultiply, {by, builder.MakeSplat(i.shape(), factor)});
  }
  MergeMetadataOfComputations(module, i.called_computations(), by);
  Replace(module, i.id(), by);
}

}  // namespace

absl::StatusOr<AllReduceSimplifierCounts> SimplifyAllReduces(Module& module) {
  AllReduceSimplifierCounts counts;
  if (module.header().is_scheduled || !module.entry().valid()) return counts;
  for (int round = 0; round < kMaxRounds; ++round) {
    UniformValues uniform(&module);
    const CallGraph calls(module);
    const ComputationRoles roles = RolesOf(module);
    std::vector<Replacement> replacements;
    for (Computation c : module.computations()) {
      if (!calls.IsSequential(c) || roles.async[c.id().value] != 0) continue;
      for (InstructionId id : PostOrder(c)) {
        const std::optional<Replacement> replacement = ReplacementOf(module.instruction(id), uniform);
        if (replacement) replacements.push_back(*replacement);
      }
    }
    if (replacements.empty()) break;
    for (const Replacement& replacement : replacements) {
      Apply(module, replacement);
      ++(replacement.alone ? counts.alone : counts.uniform);
    }
  }
  return counts;
}

namespace {

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

}  // namespace

HLOKIT_PASS(AllReduceSimplifier) {
  return {.name = "all-reduce-simplifier",
          .category = "collective",
          .summary = "remove all-reduces whose result a device knows without the others",
          .doc =
              "In groups of one device all-reduces, all-gathers and reduce-scatters are removed. An all-reduce "
              "of values that are equal in each group becomes the operand, or for sums its product with the "
              "size of the group. XLA requires equal values on all replicas, and multiplies narrow floats "
              "too, which rounds differently.",
          .example = R"(HloModule equal, replica_count=2

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[8] parameter(0)
  total = f32[8] all-reduce(x), replica_groups={{0,1}}, to_apply=sum
  scaled = f32[8] negate(total)
  twice = f32[8] all-reduce(scaled), replica_groups={{0,1}}, to_apply=sum
  ROOT alone = f32[8] all-reduce(twice), replica_groups={{0},{1}}, to_apply=sum
})",
          .preconditions = kNoSchedule,
          .tolerance = 1e-5,
          .create = MakePass<AllReduceSimplifier>};
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/cleanup.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/text/frontend_attributes.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {
namespace {

bool CarriesOnlySharding(Instruction i) {
  if (i.opcode() != Opcode::kCustomCall || i.operand_count() != 1 || i.operand(0).shape() != i.shape()) return false;
  const std::string_view target = i.string_attr(Attr::kCustomCallTarget);
  return target == "Sharding" || target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape";
}

// Returns the instructions of the module for which `matches` returns true, callees after their callers.
template <typename Matches>
std::vector<InstructionId> Collect(const Module& module, Matches matches) {
  std::vector<InstructionId> found;
  std::vector<Computation> computations = module.computations();
  std::reverse(computations.begin(), computations.end());
  for (Computation c : computations) {
    for (Instruction i : c.instructions()) {
      if (matches(i)) found.push_back(i.id());
    }
  }
  return found;
}

// Moves the constants of `c` to just before their first users, in their order. Returns the number of those that moved.
int64_t DeferConstants(Module& module, Computation c) {
  struct Deferred {
    InstructionId user;
    std::vector<InstructionId> constants;
  };
  std::vector<Deferred> deferred;
  std::vector<InstructionId> order;
  for (Instruction i : c.instructions()) order.push_back(i.id());
  std::vector<uint8_t> placed(module.instruction_id_bound(), 0);
  for (InstructionId id : order) {
    const Instruction user = module.instruction(id);
    if (user.opcode() == Opcode::kConstant) continue;
    Deferred at = {id, {}};
    for (Instruction operand : user.operands()) {
      if (operand.opcode() != Opcode::kConstant || operand.has_control_edges()) continue;
      if (placed[operand.id().value]++ == 0) at.constants.push_back(operand.id());
      placed[operand.id().value] = 1;
    }
    if (!at.constants.empty()) deferred.push_back(std::move(at));
  }
  int64_t moved = 0;
  for (const Deferred& at : deferred) {
    // Those that are directly before the user, in any order, stay.
    std::vector<InstructionId> away = at.constants;
    for (InstructionId id = module.record(at.user).previous; id.valid(); id = module.record(id).previous) {
      const auto found = std::find(away.begin(), away.end(), id);
      if (found == away.end()) break;
      away.erase(found);
    }
    if (away.empty()) continue;
    for (InstructionId constant : at.constants) module.MoveBefore(constant, at.user);
    moved += static_cast<int64_t>(away.size());
  }
  return moved;
}

// Removes the shardings that Shardy left in frontend attributes. Returns their number.
int64_t RemoveShardyShardings(Module& module) {
  constexpr std::string_view kKey = "xla.sdy.sharding";
  Context& context = module.context();
  const std::vector<InstructionId> sharded =
      Collect(module, [&](Instruction i) { return FindFrontendAttribute(i, kKey).valid(); });
  for (InstructionId id : sharded) {
    const ListId list(*module.instruction(id).payload(Attr::kFrontendAttributes));
    const ListId rest = WithoutFrontendAttribute(&context, list, kKey);
    if (rest.valid() && !context.list(rest).empty()) {
      module.SetAttr(id, Attr::kFrontendAttributes, rest.value);
    } else {
      module.RemoveAttr(id, Attr::kFrontendAttributes);
    }
  }
  return static_cast<int64_t>(sharded.size());
}

}  // namespace

absl::StatusOr<bool> ShardingRemover::Run(Module& module) {
  const std::vector<InstructionId> calls = Collect(module, CarriesOnlySharding);
  for (InstructionId id : calls) Replace(module, id, module.instruction(id).operand(0).id());
  if (!calls.empty()) Count("sharding custom-calls removed", static_cast<int64_t>(calls.size()));
  const std::vector<InstructionId> sharded = Collect(module, [](Instruction i) { return i.has(Attr::kSharding); });
  for (InstructionId id : sharded) module.RemoveAttr(id, Attr::kSharding);
  const int64_t removed = static_cast<int64_t>(sharded.size()) + RemoveShardyShardings(module);
  if (removed != 0) Count("shardings removed", removed);
  return !calls.empty() || removed != 0;
}

absl::StatusOr<bool> ControlDepRemover::Run(Module& module) {
  const std::vector<InstructionId> ordered =
      Collect(module, [](Instruction i) { return i.has(Attr::kControlPredecessors); });
  for (InstructionId id : ordered) module.RemoveAttr(id, Attr::kControlPredecessors);
  if (!ordered.empty()) Count("control edges removed", static_cast<int64_t>(ordered.size()));
  return !ordered.empty();
}

absl::StatusOr<bool> HloDescheduler::Run(Module& module) {
  if (!module.header().is_scheduled) return false;
  module.header().is_scheduled = false;
  Count("schedules removed");
  return true;
}

absl::StatusOr<bool> LiteralCanonicalizer::Run(Module&) { return false; }

absl::StatusOr<bool> ConstantDeferring::Run(Module& module) {
  if (!module.header().is_scheduled) return false;
  int64_t moved = 0;
  for (Computation c : module.computations()) moved += DeferConstants(module, c);
  if (moved != 0) Count("constants deferred", moved);
  return moved != 0;
}

absl::StatusOr<bool> FusionConstantSinking::Run(Module& module) {
  const std::vector<InstructionId> fusions = Collect(module, [](Instruction i) {
    return i.opcode() == Opcode::kFusion && !i.has(Attr::kOutputToOperandAliasing) &&
           i.enum_attr(Attr::kFusionKind, FusionKind::kCustom) != FusionKind::kCustom;
  });
  int64_t sunk = 0;
  for (InstructionId fusion : fusions) {
    const Computation body = module.instruction(fusion).computation_attr(Attr::kCalls);
    for (int64_t k = body.parameter_count(); k-- > 0;) {
      const Instruction constant = module.instruction(fusion).operand(k);
      if (constant.opcode() != Opcode::kConstant || !constant.shape().IsScalar() || constant.literal().elided ||
          constant.has_control_edges()) {
        continue;
      }
      const InstructionId source = constant.id(), parameter = body.parameter(k).id();
      Builder builder(&module, parameter);
      const InstructionId inside = builder.Make(Opcode::kConstant, constant.shape(), {}, {}, constant.record().payload);
      SetMetadataFrom(module, inside, {source, parameter});
      module.ReplaceAllUses(parameter, inside);
      module.RemoveParameter(parameter);
      std::vector<InstructionId> operands;
      for (Instruction operand : module.instruction(fusion).operands()) operands.push_back(operand.id());
      operands.erase(operands.begin() + k);
      module.SetOperands(fusion, operands);
      const Instruction old = module.instruction(source);
      if (!old.has_users() && !old.is_root()) module.Erase(source);
      ++sunk;
    }
  }
  if (sunk != 0) Count("constants moved into fusions", sunk);
  return sunk != 0;
}

HLOKIT_PASS(ShardingRemover) {
  return {.name = "sharding-remover",
          .category = "simplify",
          .summary = "remove shardings and the custom-calls that carry them",
          .doc =
              "Custom-calls Sharding, SPMDFullToShardShape and SPMDShardToFullShape are replaced by their "
              "operands. Unlike XLA's, the attributes of all other instructions are removed too, also those of "
              "Shardy in frontend attributes, and a custom-call that changes the shape stays.",
          .example = R"(ENTRY e {
  p = f32[4,2] parameter(0), sharding={devices=[2,1]<=[2]}, metadata={op_name="f/p"}
  x = f32[4,2] exponential(p), sharding={replicated}, metadata={op_name="f/exp"}
  s = f32[4,2] custom-call(x), custom_call_target="Sharding", sharding={devices=[1,2]<=[2]}, metadata={op_name="f/constraint"}
  m = f32[4,2] custom-call(s), custom_call_target="SPMDFullToShardShape", sharding={manual}, metadata={op_name="f/shard"}
  y = f32[4,2] negate(m), metadata={op_name="f/neg"}
  ROOT r = f32[4,2] custom-call(y), custom_call_target="SPMDShardToFullShape", sharding={replicated}, metadata={op_name="f/full"}
})",
          .create = MakePass<ShardingRemover>};
}

HLOKIT_PASS(ControlDepRemover) {
  return {.name = "control-dep-remover",
          .category = "simplify",
          .summary = "remove control edges",
          .doc = "As XLA's, a part of its despecializer: all of them, in every computation.",
          .example = R"(ENTRY e {
  p = f32[4] parameter(0)
  a = f32[4] exponential(p), metadata={op_name="f/exp"}
  b = f32[4] negate(p), control-predecessors={a}, metadata={op_name="f/neg"}
  c = f32[4] cosine(p), control-predecessors={a, b}, metadata={op_name="f/cos"}
  s = f32[4] subtract(a, b)
  ROOT r = f32[4] multiply(s, c), metadata={op_name="f/mul"}
})",
          .create = MakePass<ControlDepRemover>};
}

HLOKIT_PASS(HloDescheduler) {
  return {.name = "hlo-descheduler",
          .category = "simplify",
          .summary = "mark the module as not scheduled",
          .doc = "As XLA's, which clears the schedule. Here instructions keep their order in the text.",
          .example = R"(HloModule scheduled, is_scheduled=true
ENTRY e {
  p = f32[4] parameter(0)
  k = f32[4] constant({1, 2, 3, 4})
  a = f32[4] exponential(p), metadata={op_name="f/exp"}
  ROOT r = f32[4] subtract(a, k), metadata={op_name="f/sub"}
})",
          .create = MakePass<HloDescheduler>};
}

HLOKIT_PASS(LiteralCanonicalizer) {
  return {.name = "literal-canonicalizer",
          .category = "simplify",
          .summary = "accepted for pipelines of XLA; changes nothing",
          .doc =
              "XLA's lets constants of the entry computation with at least a given number of bytes (on CPUs "
              "1024) share equal literals with other modules. Here all literals of a context always do.",
          .create = MakePass<LiteralCanonicalizer>};
}

HLOKIT_PASS(ConstantDeferring) {
  return {.name = "constant-deferring",
          .category = "simplify",
          .summary = "schedule constants just before their first users",
          .doc =
              "XLA's defers broadcasts of constants too, and constants with control edges, which stay here. "
              "Modules without a schedule do not change.",
          .example = R"(HloModule deferred, is_scheduled=true
ENTRY e {
  k = f32[2] constant({3, 5}), metadata={op_name="f/k"}
  l = f32[2] constant({7, 11}), metadata={op_name="f/l"}
  p = f32[2] parameter(0)
  a = f32[2] exponential(p), metadata={op_name="f/exp"}
  b = f32[2] negate(a), metadata={op_name="f/neg"}
  m = f32[2] constant({-1, -4})
  c = f32[2] multiply(b, m)
  d = f32[2] clamp(k, c, l), metadata={op_name="f/clamp"}
  ROOT r = f32[2] subtract(d, k), metadata={op_name="f/sub"}
})",
          .create = MakePass<ConstantDeferring>};
}

HLOKIT_PASS(FusionConstantSinking) {
  return {.name = "fusion-constant-sinking",
          .category = "simplify",
          .summary = "sink scalar constants into fusions",
          .doc =
              "Into all fusions but custom ones and those whose results alias operands. XLA's leaves out input "
              "fusions too, and fusions with one operand.",
          .example = R"(fused {
  x = f32[3] parameter(0)
  k = f32[] parameter(1), metadata={op_name="f/k"}
  l = f32[] parameter(2)
  ks = f32[3] broadcast(k), dimensions={}
  ls = f32[3] broadcast(l), dimensions={}
  y = f32[3] multiply(x, ks), metadata={op_name="f/mul"}
  ROOT z = f32[3] subtract(y, ls), metadata={op_name="f/sub"}
}
ENTRY e {
  p = f32[3] parameter(0)
  three = f32[] constant(3), metadata={op_name="f/three"}
  five = f32[] constant(5)
  f = f32[3] fusion(p, three, five), kind=kLoop, calls=fused, metadata={op_name="f/fusion"}
  fives = f32[3] broadcast(five), dimensions={}
  ROOT r = f32[3] divide(f, fives)
})",
          .create = MakePass<FusionConstantSinking>};
}

}  // namespace hlokit

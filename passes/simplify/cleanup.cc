// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/cleanup.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/text/frontend_attributes.h"
#include "passes/annotations/annotations.h"
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

}  // namespace hlokit

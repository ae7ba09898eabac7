// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/dce.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ir/graph/instruction_queries.h"
#include "ir/graph/potential_callers.h"
#include "ir/graph/side_effects.h"
#include "passes/core/pass_row.h"
#include "passes/simplify/dead_code.h"

namespace hlokit {

absl::StatusOr<bool> Dce::Run(Module& module) {
  // Most modules have little dead code: side effects are computed on demand.
  std::optional<SideEffects> effects;
  const auto dead = [&](Instruction i) {
    if (!IsUnused(i)) return false;
    if (i.has_control_edges() || HasSideEffectNoRecurse(i)) return false;
    if (!MightHaveCalledComputations(i.opcode())) return true;
    if (!effects) effects.emplace(module);
    return !effects->Of(i);
  };
  std::vector<InstructionId> work;
  const PotentialCallers callers(module, [&](InstructionId id, const InstructionRecord& r) {
    if (!r.first_use.valid() && dead(module.instruction(id))) work.push_back(id);
  });
  if (!work.empty()) {
    // Bodies of fusions and asynchronous operations are final.
    std::vector<uint8_t> is_final(module.computation_id_bound(), 0);
    for (InstructionId caller : callers.all()) {
      const Instruction i = module.instruction(caller);
      if (!HasTrait(i.opcode(), kOwnsCallee)) continue;
      if (const Computation body = i.computation_attr(Attr::kCalls); body.valid()) is_final[body.id().value] = 1;
    }
    const auto in_final_body = [&](InstructionId id) { return is_final[module.record(id).parent.value] != 0; };
    work.erase(std::remove_if(work.begin(), work.end(), in_final_body), work.end());
  }
  int64_t removed = 0;
  while (!work.empty()) {
    const Instruction i = module.instruction(work.back());
    work.pop_back();
    if (!i.record().parent.valid()) continue;
    absl::InlinedVector<InstructionId, 8> operands;
    for (Instruction operand : i.operands()) operands.push_back(operand.id());
    module.Erase(i.id());
    ++removed;
    for (InstructionId operand : operands) {
      const Instruction o = module.instruction(operand);
      if (o.record().parent.valid() && dead(o)) work.push_back(operand);
    }
  }
  bool changed = removed != 0;
  if (changed) Count("instructions removed", removed);
  if (const int64_t erased = EraseUnreachable(module, callers); erased != 0) {
    Count("computations removed", erased);
    changed = true;
  }
  return changed;
}

HLOKIT_PASS(Dce) {
  return {.name = "dce",
          .category = "simplify",
          .summary = "remove unused instructions and computations",
          .doc =
              "Removes unused instructions without side effects, then computations without callers. "
              "Parameters stay, since callers bind them.",
          .example = R"(add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  a = f32[4] negate(p)
  b = f32[4] abs(a)
  ROOT r = f32[4] negate(p)
})",
          .create = MakePass<Dce>};
}

}  // namespace hlokit

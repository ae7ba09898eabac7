// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/graph/traversal.h"
#include "passes/analysis/call_graph.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/fusion/fuse.h"

namespace hlokit {
namespace {

// Adds to `heir` the metadata sources of the fusion that no body instruction carries.
void MergeRemainingMetadata(Module& module, Instruction fusion, Computation body, InstructionId heir) {
  MetadataPool& pool = module.context().metadata;
  absl::flat_hash_set<uint32_t> carried;
  for (Instruction i : body.instructions()) {
    for (MetadataId origin : pool.Sources(i.metadata_id())) carried.insert(origin.value);
  }
  MetadataId merged = module.record(heir).metadata;
  for (MetadataId origin : pool.Sources(fusion.metadata_id())) {
    if (!carried.contains(origin.value)) merged = pool.Merge(merged, origin);
  }
  module.SetMetadata(heir, merged);
}

// Clones the body before the fusion's users, and erases the fusion.
void Inline(Module& module, Instruction fusion, Computation body) {
  const ComputationId caller = fusion.record().parent;
  const InstructionId place = fusion.record().next;
  const std::vector<InstructionId> order = PostOrder(body);
  absl::flat_hash_map<uint32_t, InstructionId> made;
  const auto copy_of = [&](InstructionId id) { return made.at(id.value); };
  for (InstructionId id : order) {
    const Instruction i = module.instruction(id);
    if (i.opcode() == Opcode::kParameter) {
      made[id.value] = fusion.operand(i.parameter_number()).id();
      MergeMetadata(module, id, made[id.value]);
      continue;
    }
    std::vector<InstructionId> operands;
    for (Instruction operand : i.operands()) operands.push_back(copy_of(operand.id()));
    const InstructionId copy = module.CloneInstruction(caller, id, i.record().name, operands);
    if (place.valid()) module.MoveBefore(copy, place);
    made[id.value] = copy;
    std::vector<int64_t> predecessors;
    for (Instruction p : i.control_predecessors()) {
      const int64_t before = copy_of(p.id()).value;  // two parameters may be one operand
      if (std::find(predecessors.begin(), predecessors.end(), before) == predecessors.end()) {
        predecessors.push_back(before);
      }
    }
    if (!predecessors.empty()) module.SetAttr(copy, Attr::kControlPredecessors, module.ListPayload(predecessors));
  }
  const Instruction root = body.root();
  if (root.opcode() == Opcode::kTuple) {
    for (Instruction user : fusion.users()) {
      if (user.opcode() != Opcode::kGetTupleElement || user.is_root()) continue;
      const InstructionId part = copy_of(root.operand(user.int_attr(Attr::kIndex)).id());
      MergeMetadata(module, user.id(), part);
      module.ReplaceAllUses(user.id(), part);
      module.Erase(user.id());
    }
  }
  const InstructionId result = copy_of(root.id());
  const bool parts = root.opcode() == Opcode::kTuple && root.operand_count() > 0;  // the tuple itself is erased
  MergeRemainingMetadata(module, fusion, body, parts ? copy_of(root.operand(0).id()) : result);
  if (const std::optional<uint32_t> sharding = fusion.payload(Attr::kSharding)) {
    const Instruction by = module.instruction(result);
    if (!by.has(Attr::kSharding) && by.opcode() != Opcode::kParameter) {
      module.SetAttr(result, Attr::kSharding, *sharding);
    }
  }
  module.ReplaceAllUses(fusion.id(), result);
  module.Erase(fusion.id());
  const Instruction by = module.instruction(result);
  if (by.opcode() == Opcode::kTuple && !by.has_users() && !by.is_root()) module.Erase(result);
}

}  // namespace

int64_t DefuseModule(Module& module) {
  if (module.header().is_scheduled || !module.entry().valid()) return 0;
  int64_t count = 0;
  const CallGraph calls(module);
  for (ComputationId id : calls.PostOrder()) {
    std::vector<InstructionId> fusions;
    for (const CallSite& site : calls.callsites(module.computation(id))) {
      if (site.context != CallContext::kFused || calls.caller_callsites(module.computation(site.callee)).size() != 1)
        continue;
      const Instruction fusion = module.instruction(site.caller);
      if (fusion.enum_attr(Attr::kFusionKind, FusionKind::kLoop) == FusionKind::kCustom) continue;
      if (fusion.has_control_edges()) continue;
      fusions.push_back(site.caller);
    }
    for (InstructionId fusion_id : fusions) {
      const Instruction fusion = module.instruction(fusion_id);
      const Computation body = fusion.computation_attr(Attr::kCalls);
      if (!body.root().valid()) continue;
      Inline(module, fusion, body);
      module.EraseComputation(body.id());
      ++count;
    }
  }
  return count;
}

int64_t InlineFusions(Module& module) {
  if (module.header().is_scheduled || !module.entry().valid()) return 0;
  const CallGraph calls(module);
  int64_t count = 0;
  for (ComputationId id : calls.PostOrder()) {
    // The wrapped instruction of an asynchronous operation stays one instruction.
    bool is_async = false;
    for (const CallSite& site : calls.caller_callsites(module.computation(id))) {
      is_async |= module.record(site.caller).opcode == Opcode::kAsyncStart;
    }
    if (is_async) continue;
    std::vector<CallSite> fusions;
    for (const CallSite& site : calls.callsites(module.computation(id))) {
      if (site.context == CallContext::kFused) fusions.push_back(site);
    }
    for (const CallSite& site : fusions) {
      const Instruction fusion = module.instruction(site.caller);
      const Computation body = module.computation(site.callee);
      if (!body.root().valid() || fusion.has_control_edges() || calls.caller_callsites(body).size() != 1) {
        continue;
      }
      Inline(module, fusion, body);
      module.EraseComputation(body.id());
      ++count;
    }
  }
  return count;
}

namespace {

class Defuse : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const int64_t fusions = DefuseModule(module);
    if (fusions > 0) Count("fusions taken apart", fusions);
    return fusions > 0;
  }
};

}  // namespace

HLOKIT_PASS(Defuse) {
  return {.name = "defuse",
          .category = "fusion",
          .summary = "replace fusions by their instructions",
          .doc =
              "The inverse of `fusion`: after `cse` and `dce` the program is the original one. Custom "
              "fusions and those with control edges stay.",
          .example = R"(HloModule fused

f {
  a = f32[8]{0} parameter(0)
  b = f32[8]{0} exponential(a)
  ROOT c = f32[8]{0} negate(b)
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  ROOT y = f32[8]{0} fusion(x), kind=kLoop, calls=f
}
)",
          .preconditions = kNoSchedule,
          .create = MakePass<Defuse>};
}

}  // namespace hlokit

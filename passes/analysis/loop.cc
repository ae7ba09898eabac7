// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/loop.h"

#include "passes/analysis/call_graph.h"

namespace hlokit {
namespace {

bool UsedByElementOnly(Instruction state) {
  for (const auto& use : state.uses()) {
    if (use.user.opcode() != Opcode::kGetTupleElement) return false;
  }
  return true;
}

}  // namespace

std::vector<uint32_t> CountCallers(const Module& module) {
  std::vector<uint32_t> callers(module.computation_id_bound(), 0);
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      i.ForEachCallee([&](Computation callee) { ++callers[callee.id().value]; });
    }
  }
  return callers;
}

std::optional<CanonicalLoop> MatchCanonicalLoop(Instruction loop, const std::vector<uint32_t>& callers) {
  CanonicalLoop plain;
  plain.loop = loop;
  plain.condition = loop.computation_attr(Attr::kCondition);
  plain.body = loop.computation_attr(Attr::kBody);
  if (!loop.shape().IsTuple() || callers[plain.condition.id().value] != 1 || callers[plain.body.id().value] != 1) {
    return std::nullopt;
  }
  const Instruction root = plain.body.root(), state = plain.body.parameter(0), seen = plain.condition.parameter(0);
  plain.init = loop.operand(0);
  plain.size = loop.shape().tuple_size();
  if (root.opcode() != Opcode::kTuple || root.has_users() || plain.condition.root() == seen) return std::nullopt;
  for (Instruction i : {loop, root, state, seen}) {
    if (i.has(Attr::kSharding) || i.shape() != loop.shape()) return std::nullopt;
  }
  if (plain.init.shape() != loop.shape() || !UsedByElementOnly(state) || !UsedByElementOnly(seen)) return std::nullopt;
  for (int64_t k = 0; k < plain.size; ++k) {
    plain.unchanged.push_back(IsStateElement(root.operand(k), plain.body, k));
  }
  return plain;
}

std::vector<InstructionId> WhileLoops(const Module& module) {
  std::vector<InstructionId> loops;
  const CallGraph graph(module);
  for (ComputationId c : graph.PostOrder()) {
    for (Instruction i : module.computation(c).instructions()) {
      if (i.opcode() == Opcode::kWhile) loops.push_back(i.id());
    }
  }
  return loops;
}

}  // namespace hlokit

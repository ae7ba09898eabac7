// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/async.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/ops/opcode_set.h"

namespace hlokit {
namespace {

bool IsAnnotationCustomCall(Instruction i) {
  return i.opcode() == Opcode::kCustomCall && i.operand_count() == 1 && i.shape() == i.operand(0).shape() &&
         i.string_attr(Attr::kCustomCallTarget) == "Sharding";
}

}  // namespace

Instruction AsyncStarts::Find(Instruction instruction) {
  // Each step visits one instruction with a path of remaining tuple indices; a visited set stops at cycles.
  std::vector<int64_t> path;
  std::vector<uint32_t> chain;  // visited members, which share the result
  Instruction at = instruction;
  InstructionId start;
  absl::flat_hash_set<std::pair<uint32_t, size_t>> seen;
  while (at.valid() && seen.insert({at.id().value, path.size()}).second) {
    const Opcode opcode = at.opcode();
    if (opcode == Opcode::kAsyncStart) {
      start = at.id();
      break;
    }
    if (OpcodeSet{Opcode::kAsyncUpdate, Opcode::kAsyncDone}.Contains(opcode)) {
      if (path.empty()) {
        if (const auto known = found_.find(at.id().value); known != found_.end()) {
          start = known->second;
          break;
        }
        chain.push_back(at.id().value);
      }
      if (at.operand_count() == 0) break;
      at = at.operand(0);
    } else if (opcode == Opcode::kGetTupleElement && at.operand_count() == 1) {
      path.push_back(at.int_attr(Attr::kIndex));
      at = at.operand(0);
    } else if (opcode == Opcode::kTuple && !path.empty()) {
      const int64_t index = path.back();
      if (index < 0 || index >= at.operand_count()) break;
      path.pop_back();
      at = at.operand(index);
    } else if ((OpcodeSet{Opcode::kWhile, Opcode::kOptimizationBarrier, Opcode::kCopy}.Contains(opcode) &&
                at.operand_count() == 1) ||
               IsAnnotationCustomCall(at)) {
      at = at.operand(0);
    } else if (opcode == Opcode::kParameter) {
      at = LoopInit(at.parent());
    } else {
      break;
    }
  }
  for (uint32_t id : chain) found_[id] = start;
  return start.valid() ? instruction.module().instruction(start) : Instruction();
}

Instruction AsyncStarts::LoopInit(Computation computation) {
  const Module& module = computation.module();
  if (!has_loop_init_) {
    has_loop_init_ = true;
    for (Computation c : module.computations()) {
      for (Instruction i : c.instructions()) {
        if (i.opcode() != Opcode::kWhile || i.operand_count() != 1) continue;
        for (Attr attr : {Attr::kBody, Attr::kCondition}) {
          const Computation callee = i.computation_attr(attr);
          if (callee.valid()) loop_init_[callee.id().value] = i.operand(0).id();
        }
      }
    }
  }
  const auto init = loop_init_.find(computation.id().value);
  return init == loop_init_.end() ? Instruction() : module.instruction(init->second);
}

bool IsSingleInstructionWrapper(Computation computation) {
  if (!computation.record().root.valid()) return false;
  const Opcode wrapped = computation.root().opcode();
  if (HasTrait(wrapped, kTransfers) && HasTrait(wrapped, kStartsAsync)) return false;
  for (Instruction i : computation.instructions()) {
    if (i.opcode() != Opcode::kParameter && !i.is_root()) return false;
  }
  return true;
}

}  // namespace hlokit

#include "ir/async.h"

#include <vector>

#include "absl/container/flat_hash_set.h"

namespace hlokit {

Instruction FindAsyncStart(Instruction instruction) {
  // Each step looks at one instruction with a path of tuple indices still to be taken; a visited set stops loops.
  std::vector<int64_t> path;
  Instruction at = instruction;
  absl::flat_hash_set<std::pair<uint32_t, size_t>> seen;
  while (at.valid() && seen.insert({at.id().value, path.size()}).second) {
    if (at.opcode() == Opcode::kAsyncStart) return at;
    if (at.opcode() == Opcode::kAsyncUpdate || at.opcode() == Opcode::kAsyncDone) {
      if (at.operand_count() == 0) break;
      at = at.operand(0);
    } else if (at.opcode() == Opcode::kGetTupleElement && at.operand_count() == 1) {
      path.push_back(at.int_attr(Attr::kIndex));
      at = at.operand(0);
    } else if (at.opcode() == Opcode::kTuple && !path.empty()) {
      const int64_t index = path.back();
      if (index < 0 || index >= at.operand_count()) break;
      path.pop_back();
      at = at.operand(index);
    } else if ((at.opcode() == Opcode::kWhile || at.opcode() == Opcode::kOptimizationBarrier ||
                at.opcode() == Opcode::kCopy) &&
               at.operand_count() == 1) {
      at = at.operand(0);
    } else if (at.opcode() == Opcode::kParameter) {
      // The parameter of a loop body or condition: what the loop starts with. One pass over the module, only when met.
      Instruction init;
      for (Computation c : at.module().computations()) {
        for (Instruction i : c.instructions()) {
          if (i.opcode() != Opcode::kWhile || i.operand_count() != 1) continue;
          if (i.computation_attr(Attr::kBody) == at.parent() || i.computation_attr(Attr::kCondition) == at.parent()) {
            init = i.operand(0);
          }
        }
      }
      at = init;
    } else {
      break;
    }
  }
  return Instruction();
}

std::optional<Opcode> AsyncWrappedOpcode(Instruction instruction) {
  const Instruction start = FindAsyncStart(instruction);
  if (start.valid()) {
    const Computation wrapper = start.computation_attr(Attr::kCalls);
    if (wrapper.valid() && wrapper.record().root.valid()) return wrapper.root().opcode();
  }
  return std::nullopt;
}

bool IsSingleInstructionWrapper(Computation computation) {
  if (!computation.record().root.valid()) return false;
  const Opcode wrapped = computation.root().opcode();
  if (wrapped == Opcode::kSend || wrapped == Opcode::kRecv) return false;
  for (Instruction i : computation.instructions()) {
    if (i.opcode() != Opcode::kParameter && !i.is_root()) return false;
  }
  return true;
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
// Loop-invariant code motion.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/side_effects.h"
#include "passes/analysis/loop.h"
#include "passes/annotations/annotations.h"
#include "passes/rewrite/change_loop.h"
#include "passes/rewrite/loop_body_cloner.h"
#include "passes/simplify/loops/while_simplifier.h"

namespace hlokit {
namespace {

// Returns true if recomputation is as cheap as carrying the value; such operations move only along with a user that is
// worth it.
bool IsCheap(Opcode opcode) {
  return opcode == Opcode::kBitcast || opcode == Opcode::kBroadcast || opcode == Opcode::kConstant ||
         opcode == Opcode::kIota || opcode == Opcode::kReshape || opcode == Opcode::kReverse ||
         opcode == Opcode::kSlice || opcode == Opcode::kTranspose || opcode == Opcode::kTuple ||
         opcode == Opcode::kGetTupleElement;
}

bool MayMove(Instruction i, const SideEffects& effects) {
  return i.opcode() != Opcode::kParameter && !effects.Of(i) && !HasTrait(i.opcode(), kCollective) &&
         !HasTrait(i.opcode(), kControlFlow) && !HasTrait(i.opcode(), kAsyncChain) &&
         i.opcode() != Opcode::kCustomCall && i.opcode() != Opcode::kOptimizationBarrier &&
         i.opcode() != Opcode::kCopy && !i.is_root() && !i.has_control_edges() && !i.has(Attr::kSharding);
}

// Returns true if the result is no larger than the operands, so that carrying it takes no more memory.
bool IsNoLarger(Instruction i) {
  int64_t inputs = 0;
  for (Instruction operand : i.operands()) {
    const int64_t bytes = ByteSize(operand.shape());
    inputs = bytes > INT64_MAX - inputs ? INT64_MAX : inputs + bytes;
  }
  return ByteSize(i.shape()) <= inputs;
}

// Returns true if recomputation costs much more than carrying the result.
bool IsExpensive(Opcode opcode) {
  return opcode == Opcode::kDot || opcode == Opcode::kConvolution || opcode == Opcode::kRaggedDot ||
         opcode == Opcode::kSort || opcode == Opcode::kFft || opcode == Opcode::kCholesky ||
         opcode == Opcode::kTriangularSolve;
}

// Returns true if a loop-invariant instruction of this kind is worth moving by itself.
using IsWorthMoving = bool (*)(Instruction);

class Hoister {
 public:
  Hoister(Module& module, const CanonicalLoop& plain, const SideEffects& effects, IsWorthMoving is_worth_moving)
      : module_(module), plain_(plain), effects_(effects), is_worth_moving_(is_worth_moving) {}

  // Returns the number of instructions moved.
  int64_t Run() {
    // Invariant instructions in order; of these, the ones worth moving and their operands.
    std::vector<InstructionId> worth;
    for (Instruction i : plain_.body.instructions()) {
      if (IsStateElement(i, plain_.body)) {
        if (plain_.unchanged[static_cast<size_t>(i.int_attr(Attr::kIndex))]) invariant_[i.id().value] = true;
        continue;
      }
      if (!MayMove(i, effects_)) continue;
      const Instruction::OperandRange operands = i.operands();
      bool all = true;
      for (Instruction operand : operands) all &= invariant_.contains(operand.id().value);
      if (!all) continue;
      invariant_[i.id().value] = true;
      if (i.shape().IsArray() && is_worth_moving_(i)) worth.push_back(i.id());
    }
    if (worth.empty()) return 0;
    // Clone each with its operands before the loop.
    const auto outside = [this](Instruction element) {
      const InstructionId before = InitElement(module_, plain_, element.int_attr(Attr::kIndex));
      MergeMetadata(module_, element.id(), before);
      return before;
    };
    LoopBodyCloner copier(&module_, plain_.body, plain_.loop.record().parent, plain_.loop.id(), outside, nullptr);
    for (InstructionId id : worth) copier.Clone(id);
    // Values still used in the body become loop state.
    std::vector<InstructionId> added, inside;
    for (InstructionId id : worth) {
      bool used = false;
      for (const auto& use : module_.instruction(id).uses()) used |= !copier.LookupClone(use.user.id()).valid();
      if (!used) continue;
      inside.push_back(id);
      added.push_back(copier.LookupClone(id));
    }
    const int64_t size = plain_.size;
    RewriteLoopState(module_, plain_, std::vector<uint8_t>(static_cast<size_t>(size), 1), added);
    for (size_t k = 0; k < inside.size(); ++k) {
      const Instruction root = plain_.body.root();
      const InstructionId read = root.operand(size + static_cast<int64_t>(k)).id();
      // The new reads are at the end of the body; move them before their users.
      module_.MoveBefore(read, inside[k]);
      Replace(module_, inside[k], read);
    }
    for (size_t k = copier.cloned().size(); k-- > 0;) {
      const Instruction i = module_.instruction(copier.cloned()[k]);
      if (i.record().parent.valid() && !i.has_users() && !i.is_root()) module_.Erase(i.id());
    }
    return static_cast<int64_t>(copier.cloned().size());
  }

 private:
  Module& module_;
  const CanonicalLoop& plain_;
  const SideEffects& effects_;
  const IsWorthMoving is_worth_moving_;
  absl::flat_hash_map<uint32_t, bool> invariant_;
};

// Returns the number of instructions moved out of the loops of the module.
int64_t HoistFromLoops(Module& module, IsWorthMoving is_worth_moving) {
  const std::vector<uint32_t> callers = CountCallers(module);
  const SideEffects effects(module);
  int64_t moved = 0;
  // Inner loops first: instructions moved out of one may move out of the next.
  for (InstructionId id : WhileLoops(module)) {
    const std::optional<CanonicalLoop> plain = MatchCanonicalLoop(module.instruction(id), callers);
    if (plain) moved += Hoister(module, *plain, effects, is_worth_moving).Run();
  }
  return moved;
}

}  // namespace

absl::StatusOr<bool> WhileLoopInvariantCodeMotion::Run(Module& module) {
  const int64_t moved = HoistFromLoops(module, [](Instruction i) { return !IsCheap(i.opcode()) && IsNoLarger(i); });
  if (moved != 0) Count("instructions moved out of loops", moved);
  return moved != 0;
}

absl::StatusOr<bool> WhileLoopExpensiveInvariantCodeMotion::Run(Module& module) {
  const int64_t moved = HoistFromLoops(module, [](Instruction i) { return IsExpensive(i.opcode()); });
  if (moved != 0) Count("expensive instructions moved out of loops", moved);
  return moved != 0;
}

}  // namespace hlokit

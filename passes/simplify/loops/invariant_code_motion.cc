// SPDX-License-Identifier: Apache-2.0
// Loop-invariant code motion.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/side_effects.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/loop.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/change_loop.h"
#include "passes/rewrite/loop_body_cloner.h"
#include "passes/simplify/loops/while_simplifier.h"

namespace hlokit {
namespace {

// Returns true if recomputation is as cheap as carrying the value; such operations move only along with a user that is
// worth it.
bool IsCheap(Opcode opcode) {
  static constexpr OpcodeSet kCheap = {Opcode::kBitcast, Opcode::kBroadcast,      Opcode::kConstant, Opcode::kIota,
                                       Opcode::kReshape, Opcode::kReverse,        Opcode::kSlice,    Opcode::kTranspose,
                                       Opcode::kTuple,   Opcode::kGetTupleElement};
  return kCheap.Contains(opcode);
}

bool MayMove(Instruction i, const SideEffects& effects) {
  return i.opcode() != Opcode::kParameter && !effects.Of(i) && !HasTrait(i.opcode(), kCollective) &&
         !HasTrait(i.opcode(), kControlFlow) && !HasTrait(i.opcode(), kAsyncChain) &&
         !OpcodeSet{Opcode::kCustomCall, Opcode::kOptimizationBarrier, Opcode::kCopy}.Contains(i.opcode()) &&
         !i.is_root() && !i.has_control_edges() && !i.has(Attr::kSharding);
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
  static constexpr OpcodeSet kExpensive = {Opcode::kDot, Opcode::kConvolution, Opcode::kRaggedDot,      Opcode::kSort,
                                           Opcode::kFft, Opcode::kCholesky,    Opcode::kTriangularSolve};
  return kExpensive.Contains(opcode);
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

HLOKIT_PASS(WhileLoopInvariantCodeMotion) {
  return {.name = "while-loop-invariant-code-motion",
          .category = "simplify",
          .summary = "hoist loop-invariant instructions",
          .doc =
              "Instructions of the body that depend only on loop-invariant state are computed once before the loop and "
              "carried in the state, if the results are no larger than the operands. Instructions that are as cheap to "
              "recompute as to carry move only along with a user that moves.",
          .example = R"(cond {
  cs = (s32[], f32[4], f32[4]) parameter(0)
  ci = s32[] get-tuple-element(cs), index=0
  lim = s32[] constant(10)
  ROOT lt = pred[] compare(ci, lim), direction=LT
}
body {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[4] get-tuple-element(s), index=1
  b = f32[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ex = f32[4] exponential(b), metadata={op_name="main/while/exp"}
  sum = f32[4] add(a, ex)
  ROOT out = (s32[], f32[4], f32[4]) tuple(next, sum, b)
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[4], f32[4]) tuple(zero, p, q)
  w = (s32[], f32[4], f32[4]) while(init), condition=cond, body=body, metadata={op_name="main/while"}
  ROOT r = f32[4] get-tuple-element(w), index=1
})",
          .create = MakePass<WhileLoopInvariantCodeMotion>};
}

HLOKIT_PASS(WhileLoopExpensiveInvariantCodeMotion) {
  return {.name = "while-loop-expensive-invariant-code-motion",
          .category = "simplify",
          .summary = "hoist expensive loop-invariant instructions",
          .doc =
              "Dots, convolutions, sorts, FFTs and factorizations that depend only on loop-invariant state, "
              "with their operands, even if the results are larger than the operands. XLA's takes the "
              "instructions that a backend names, but not those whose results are larger than the state that "
              "they depend on, or that share an operand with instructions that stay, nor loops that run at "
              "most once.",
          .example = R"(cond {
  s = (s32[], f32[2], f32[2,2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[2], f32[2,2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[2] get-tuple-element(s), index=1
  b = f32[2,2] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  n = f32[2] negate(a), metadata={op_name="f/while/neg"}
  d = f32[2,2] dot(a, n), metadata={op_name="f/while/dot"}
  c = f32[2,2] subtract(d, b), metadata={op_name="f/while/sub"}
  ROOT t = (s32[], f32[2], f32[2,2]) tuple(next, a, c)
}
ENTRY e {
  a = f32[2] parameter(0)
  b = f32[2,2] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[2], f32[2,2]) tuple(zero, a, b)
  w = (s32[], f32[2], f32[2,2]) while(init), condition=cond, body=body, metadata={op_name="f/while"}
  ROOT r = f32[2,2] get-tuple-element(w), index=2
})",
          .create = MakePass<WhileLoopExpensiveInvariantCodeMotion>};
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
// A boundary is one instruction of each branch, with which the same result is computed. From the results on, a boundary
// moves if its instructions are equal but for their operands, all their users have moved, and the boundaries of
// operands that the conditional must return instead are no larger. Boundaries of a value that all branches get as an
// argument need no result.
#include "passes/simplify/calls/conditional_code_motion.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/builder/builder.h"
#include "ir/graph/side_effects.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/cost.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/clone.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/simplify/dead_code.h"
#include "passes/simplify/instruction_key.h"

namespace hlokit {
namespace {

// Levels of operands that are searched for values that all branches get.
constexpr int kMaxDepth = 3;

bool MayMove(Instruction i) {
  if (i.has_control_edges() || i.has(Attr::kSharding) || HasTrait(i.opcode(), kImpure) || HasSideEffectNoRecurse(i) ||
      !i.shape().IsArray() || (i.opcode() == Opcode::kConstant && i.literal().elided)) {
    return false;
  }
  constexpr Opcode kMoved[] = {
      Opcode::kBroadcast, Opcode::kConcatenate, Opcode::kConstant, Opcode::kDynamicSlice, Opcode::kDynamicUpdateSlice,
      Opcode::kGather,    Opcode::kIota,        Opcode::kPad,      Opcode::kReduce,       Opcode::kReshape,
      Opcode::kReverse,   Opcode::kScatter,     Opcode::kSlice,    Opcode::kTranspose};
  return HasTrait(i.opcode(), kElementwise) ||
         std::find(std::begin(kMoved), std::end(kMoved), i.opcode()) != std::end(kMoved);
}

class BranchEnds {
 public:
  BranchEnds(Module* module, Instruction conditional, const std::vector<uint32_t>& same)
      : module_(*module), conditional_(conditional), branches_(conditional.called_computations()), same_(same) {}

  // Returns the number of boundaries that move.
  int64_t FindBoundaries() {
    std::deque<size_t> candidates;
    for (int64_t k = 0; k < conditional_.shape().tuple_size(); ++k) {
      std::vector<InstructionId> boundary;
      for (Computation branch : branches_) boundary.push_back(branch.root().operand(k).id());
      results_.push_back(BoundaryOf(boundary));
      boundaries_[results_.back()].is_needed = true;
      candidates.push_back(results_.back());
    }
    int64_t moved = 0;
    while (!candidates.empty()) {
      const size_t boundary = candidates.front();
      candidates.pop_front();
      if (boundaries_[boundary].moves || !ShouldMove(boundary)) continue;
      boundaries_[boundary].moves = true;
      moved_.push_back(boundary);
      ++moved;
      for (InstructionId id : boundaries_[boundary].instructions) moved_instructions_.insert(id.value);
      for (size_t operand : OperandsOf(boundary)) {
        boundaries_[boundary].operands.push_back(operand);
        boundaries_[operand].is_needed = true;
        candidates.push_back(operand);
      }
    }
    return moved;
  }

  // Lets the conditional return the boundaries that are needed but do not move, and computes the others after it.
  void Move() {
    const InstructionId id = conditional_.id();
    const Shape old_shape = conditional_.shape();
    Builder after(&module_, module_.record(id).parent);
    after.SetInsertionPointAfter(id);
    std::vector<size_t> returned;
    std::vector<Shape> shapes;
    for (size_t k = 0; k < boundaries_.size(); ++k) {
      const Boundary& boundary = boundaries_[k];
      if (!boundary.is_needed || boundary.moves || boundary.argument.valid()) continue;
      returned.push_back(k);
      shapes.push_back(Instruction(&module_, boundary.instructions[0]).shape());
    }
    // The users as they are now.
    std::vector<std::pair<InstructionId, int64_t>> elements, others;
    for (const auto& [user, index] : conditional_.uses()) {
      const bool is_element = user.opcode() == Opcode::kGetTupleElement;
      (is_element ? elements : others).emplace_back(user.id(), is_element ? user.int_attr(Attr::kIndex) : index);
    }
    const bool is_root = conditional_.is_root();
    const Shape shape = module_.context().shapes.Tuple(shapes);
    for (size_t b = 0; b < branches_.size(); ++b) {
      const InstructionId root = branches_[b].root().id();
      std::vector<InstructionId> values;
      for (size_t boundary : returned) values.push_back(boundaries_[boundary].instructions[b]);
      module_.SetOperands(root, values);
      module_.SetShape(root, shape);
      module_.RemoveAttr(root, Attr::kOrigin);
    }
    module_.SetShape(id, shape);
    module_.RemoveAttr(id, Attr::kOrigin);
    {
      const AnnotationScope scope(&after, {id});
      for (size_t k = 0; k < returned.size(); ++k) {
        boundaries_[returned[k]].value = after.MakeElement(id, static_cast<int64_t>(k));
      }
    }
    for (size_t k = moved_.size(); k-- > 0;) MoveBoundary(after, moved_[k]);
    EraseMoved();
    for (const auto& [user, index] : elements) Replace(module_, user, ValueOf(results_[static_cast<size_t>(index)]));
    if (others.empty() && !is_root) return;
    std::vector<InstructionId> all;
    for (size_t boundary : results_) all.push_back(ValueOf(boundary));
    const AnnotationScope scope(&after, {id});
    const InstructionId tuple = after.Make(Opcode::kTuple, old_shape, all);
    for (const auto& [user, index] : others) module_.ReplaceOperand(user, index, tuple);
    if (is_root) module_.SetRoot(module_.record(id).parent, tuple);
  }

 private:
  struct Boundary {
    std::vector<InstructionId> instructions;  // by branch
    std::vector<size_t> operands;             // if it moves
    InstructionId argument;                   // the value that all branches get, if it is one, or a tuple with it
    int64_t element = -1;                     // of that tuple
    InstructionId value;                      // that replaces it after the conditional
    bool moves = false;
    bool is_needed = false;
  };

  // Returns the number of the boundary of these instructions.
  size_t BoundaryOf(const std::vector<InstructionId>& instructions) {
    std::vector<uint32_t> key;
    for (InstructionId id : instructions) key.push_back(id.value);
    const auto [at, is_new] = numbers_.emplace(key, boundaries_.size());
    if (is_new) {
      boundaries_.push_back({.instructions = instructions, .operands = {}, .argument = {}, .value = {}});
      FindArgument(&boundaries_.back());
      for (InstructionId id : instructions) boundaries_with_[id.value].push_back(at->second);
    }
    return at->second;
  }
  // Finds out whether the boundary is one value that all branches get.
  void FindArgument(Boundary* boundary) {
    for (size_t b = 0; b < branches_.size(); ++b) {
      Instruction i = module_.instruction(boundary->instructions[b]);
      int64_t element = -1;
      if (i.opcode() == Opcode::kGetTupleElement) {
        element = i.int_attr(Attr::kIndex);
        i = i.operand(0);
      }
      if (i.opcode() != Opcode::kParameter) return boundary->argument = InstructionId(), void();
      Instruction argument = conditional_.operand(static_cast<int64_t>(b) + 1);
      if (element >= 0 && argument.opcode() == Opcode::kTuple) {
        argument = argument.operand(element);
        element = -1;
      }
      if (b > 0 && (argument.id() != boundary->argument || element != boundary->element)) {
        return boundary->argument = InstructionId(), void();
      }
      boundary->argument = argument.id();
      boundary->element = element;
    }
  }

  std::vector<size_t> OperandsOf(size_t boundary) {
    const std::vector<InstructionId> instructions = boundaries_[boundary].instructions;
    std::vector<size_t> operands;
    for (int64_t k = 0; k < module_.instruction(instructions[0]).operand_count(); ++k) {
      std::vector<InstructionId> operand;
      for (InstructionId id : instructions) operand.push_back(module_.instruction(id).operand(k).id());
      operands.push_back(BoundaryOf(operand));
    }
    return operands;
  }

  // Returns true if the instructions may move and are equal, apart from their operands.
  bool AreEqual(size_t boundary) {
    KeySet keys;
    for (size_t b = 0; b < branches_.size(); ++b) {
      const Instruction i = module_.instruction(boundaries_[boundary].instructions[b]);
      if (!MayMove(i)) return false;
      keys.Add(static_cast<uint32_t>(i.opcode()));
      keys.Add(i.record().shape.value);
      keys.Add(i.opcode() == Opcode::kConstant ? i.record().payload : 0);
      for (Instruction operand : i.operands()) keys.Add(operand.record().shape.value);
      AddAttributes(&keys, i, same_);
      if (keys.Find(static_cast<uint32_t>(b)) != 0) return false;
    }
    return true;
  }
  // Returns true if all branches get the value, or the boundary will move because that holds for all its operands.
  bool IsFree(size_t boundary, int depth = 0) {
    if (boundaries_[boundary].argument.valid()) return true;
    if (depth == kMaxDepth || !AreEqual(boundary)) return false;
    for (InstructionId id : boundaries_[boundary].instructions) {
      if (!HasOneUser(module_.instruction(id))) return false;
    }
    for (size_t operand : OperandsOf(boundary)) {
      if (!IsFree(operand, depth + 1)) return false;
    }
    return true;
  }
  bool ShouldMove(size_t boundary) {
    if (boundaries_[boundary].argument.valid() || !AreEqual(boundary)) return false;
    for (size_t b = 0; b < branches_.size(); ++b) {
      for (Instruction user : module_.instruction(boundaries_[boundary].instructions[b]).users()) {
        if (user != branches_[b].root() && !moved_instructions_.contains(user.id().value)) return false;
      }
      // With another instruction of another branch, it is another value.
      for (size_t other : boundaries_with_[boundaries_[boundary].instructions[b].value]) {
        if (other != boundary && boundaries_[other].is_needed) return false;
      }
    }
    // Results that are needed instead of this one.
    int64_t bytes = 0;
    absl::flat_hash_set<size_t> counted;
    for (size_t operand : OperandsOf(boundary)) {
      const Shape shape = module_.instruction(boundaries_[operand].instructions[0]).shape();
      if (!shape.IsArray()) return false;
      const bool is_new = counted.insert(operand).second && !boundaries_[operand].is_needed;
      if (is_new && !IsFree(operand)) bytes += BufferBytes(shape);
    }
    return bytes <= BufferBytes(module_.instruction(boundaries_[boundary].instructions[0]).shape());
  }

  InstructionId ValueOf(size_t boundary) {
    Boundary& b = boundaries_[boundary];
    if (b.value.valid()) return b.value;
    b.value = b.argument;
    if (b.element >= 0) {
      Builder before(&module_, conditional_.id());
      const AnnotationScope scope(&before, {b.argument});
      b.value = before.MakeElement(b.argument, b.element);
    }
    return b.value;
  }
  void MoveBoundary(Builder& after, size_t boundary) {
    std::vector<InstructionId> operands;
    for (size_t operand : boundaries_[boundary].operands) operands.push_back(ValueOf(operand));
    const InstructionId made = after.MakeClone(boundaries_[boundary].instructions[0], operands);
    for (size_t b = 1; b < branches_.size(); ++b) MergeMetadata(module_, boundaries_[boundary].instructions[b], made);
    boundaries_[boundary].value = made;
  }
  // Erases what has moved, and reads of arguments that nothing else uses.
  void EraseMoved() {
    for (size_t boundary : moved_) {
      for (size_t b = 0; b < branches_.size(); ++b) module_.Erase(boundaries_[boundary].instructions[b]);
      for (size_t operand : boundaries_[boundary].operands) {
        if (!boundaries_[operand].argument.valid()) continue;
        for (InstructionId id : boundaries_[operand].instructions) {
          const Instruction i = module_.instruction(id);
          if (!i.record().parent.valid() || i.has_users() || i.opcode() == Opcode::kParameter ||
              i.has_control_edges()) {
            continue;
          }
          MergeMetadata(module_, id, boundaries_[boundary].value);
          module_.Erase(id);
        }
      }
    }
  }

  Module& module_;
  const Instruction conditional_;
  const std::vector<Computation> branches_;
  const std::vector<uint32_t>& same_;
  std::vector<Boundary> boundaries_;
  std::map<std::vector<uint32_t>, size_t> numbers_;
  absl::flat_hash_map<uint32_t, std::vector<size_t>> boundaries_with_;  // by instruction
  std::vector<size_t> results_;                                         // the boundary of each result
  std::vector<size_t> moved_;                                           // users before operands
  absl::flat_hash_set<uint32_t> moved_instructions_;
};

// Returns true if results of the branches can become others.
bool CanChangeResults(const CallGraph& calls, Instruction conditional) {
  if (!conditional.shape().IsTuple() || conditional.has(Attr::kSharding)) return false;
  for (Computation branch : conditional.called_computations()) {
    const Instruction root = branch.root();
    const auto callers = calls.caller_callsites(branch);
    const bool is_own = std::all_of(callers.begin(), callers.end(),
                                    [conditional](const CallSite& site) { return site.caller == conditional.id(); });
    if (!is_own || (callers.size() > 1 && !IsCloneable(branch)) || root.opcode() != Opcode::kTuple ||
        root.has_users() || root.has_control_edges() || root.has(Attr::kSharding) ||
        root.shape() != conditional.shape()) {
      return false;
    }
  }
  const std::vector<Instruction> users = conditional.users();
  return std::none_of(users.begin(), users.end(), [](Instruction user) {
    return user.opcode() == Opcode::kGetTupleElement && (user.has_control_edges() || user.has(Attr::kSharding));
  });
}

// Gives each branch a computation of its own. Returns true if two had the same.
bool SeparateBranches(Module& module, InstructionId conditional) {
  absl::flat_hash_set<uint32_t> seen;
  bool changed = false;
  module.ReplaceCallees(conditional, [&](ComputationId branch) {
    if (seen.insert(branch.value).second) return branch;
    changed = true;
    return CloneWithFusions(module, branch);
  });
  return changed;
}

}  // namespace

absl::StatusOr<bool> ConditionalCodeMotion::Run(Module& module) {
  if (module.header().is_scheduled) return false;
  const CallGraph calls(module);
  std::vector<InstructionId> conditionals;
  for (ComputationId c : calls.PostOrder()) {
    for (Instruction i : module.computation(c).instructions()) {
      if (i.opcode() == Opcode::kConditional && CanChangeResults(calls, i)) conditionals.push_back(i.id());
    }
  }
  if (conditionals.empty()) return false;
  const std::vector<uint32_t> same = EqualComputations(module);
  int64_t moved = 0;
  for (InstructionId id : conditionals) {
    std::optional<BranchEnds> ends(std::in_place, &module, module.instruction(id), same);
    int64_t boundaries = ends->FindBoundaries();
    if (boundaries > 0 && SeparateBranches(module, id)) {
      ends.emplace(&module, module.instruction(id), same);
      boundaries = ends->FindBoundaries();
    }
    if (boundaries > 0) ends->Move();
    moved += boundaries;
  }
  if (moved > 0) Count("instructions moved out of conditionals", moved);
  return moved > 0;
}

HLOKIT_PASS(ConditionalCodeMotion) {
  return {.name = "conditional-code-motion",
          .category = "simplify",
          .summary = "move what all branches of a conditional end with after it",
          .doc =
              "Elementwise operations, data movement and reductions that are equal in all branches, if the "
              "conditional then returns no more bytes. XLA's weighs how much data operations reuse, can also "
              "move all-reduces, and moves users of a conditional into its branches; these stay here. A computation "
              "that is several branches is cloned; branches with other callers stay, and so does a conditional "
              "that returns an array (`conditional-canonicalizer` makes it a tuple).",
          .example = R"(up {
  x = f32[2] parameter(0)
  e = f32[2] exponential(x), metadata={op_name="f/exp"}
  ROOT t = (f32[2]) tuple(e)
}
down {
  x = f32[2] parameter(0)
  n = f32[2] negate(x), metadata={op_name="f/down"}
  e = f32[2] exponential(n), metadata={op_name="f/exp"}
  ROOT t = (f32[2]) tuple(e)
}
ENTRY e {
  c = pred[] parameter(0)
  p = f32[2] parameter(1)
  w = (f32[2]) conditional(c, p, p), true_computation=up, false_computation=down
  ROOT r = f32[2] get-tuple-element(w), index=0
})",
          .preconditions = kNoSchedule,
          .create = MakePass<ConditionalCodeMotion>};
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
// A row is one instruction of each branch, with which the same result is computed. From the results on, a row moves if
// its instructions are equal but for their operands, all their users have moved, and the rows of operands that the
// conditional must return instead are no larger. Rows of a value that all branches get as an argument need no result.
#include "passes/simplify/calls/conditional_code_motion.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/builder/builder.h"
#include "ir/graph/side_effects.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/cost.h"
#include "passes/annotations/annotations.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/simplify/dead_code.h"
#include "passes/simplify/instruction_key.h"

namespace hlokit {
namespace {

// Levels of operands that are searched for values known outside.
constexpr int kMaxDepth = 3;

bool MayMove(Instruction i) {
  if (HasControlEdges(i) || i.has(Attr::kSharding) || HasTrait(i.opcode(), kImpure) || HasSideEffectNoRecurse(i) ||
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

  // Returns the number of rows that move.
  int64_t FindRows() {
    std::deque<size_t> candidates;
    for (int64_t k = 0; k < conditional_.shape().tuple_size(); ++k) {
      std::vector<InstructionId> row;
      for (Computation branch : branches_) row.push_back(branch.root().operand(k).id());
      results_.push_back(RowOf(row));
      rows_[results_.back()].is_needed = true;
      candidates.push_back(results_.back());
    }
    int64_t moved = 0;
    while (!candidates.empty()) {
      const size_t row = candidates.front();
      candidates.pop_front();
      if (rows_[row].moves || !ShouldMove(row)) continue;
      rows_[row].moves = true;
      moved_.push_back(row);
      ++moved;
      for (size_t b = 0; b < branches_.size(); ++b) moved_instructions_.insert(rows_[row].instructions[b].value);
      for (size_t operand : OperandsOf(row)) {
        rows_[row].operands.push_back(operand);
        rows_[operand].is_needed = true;
        candidates.push_back(operand);
      }
    }
    return moved;
  }

  // Lets the conditional return the rows that are needed but do not move, and computes the others after it.
  void Move() {
    const InstructionId id = conditional_.id();
    const Shape old_shape = conditional_.shape();
    Builder after(&module_, module_.record(id).parent);
    after.SetInsertionPointAfter(id);
    std::vector<size_t> returned;
    std::vector<Shape> shapes;
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (!rows_[row].is_needed || rows_[row].moves || rows_[row].argument.valid()) continue;
      returned.push_back(row);
      shapes.push_back(Instruction(&module_, rows_[row].instructions[0]).shape());
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
      for (size_t row : returned) values.push_back(rows_[row].instructions[b]);
      module_.SetOperands(root, values);
      module_.SetShape(root, shape);
      module_.RemoveAttr(root, Attr::kOrigin);
    }
    module_.SetShape(id, shape);
    module_.RemoveAttr(id, Attr::kOrigin);
    {
      const AnnotationScope scope(&after, {id});
      for (size_t k = 0; k < returned.size(); ++k) {
        rows_[returned[k]].outside = after.MakeElement(id, static_cast<int64_t>(k));
      }
    }
    for (size_t k = moved_.size(); k-- > 0;) MoveRow(after, moved_[k]);
    EraseRows();
    for (const auto& [user, index] : elements) Replace(module_, user, OutsideOf(results_[static_cast<size_t>(index)]));
    if (others.empty() && !is_root) return;
    std::vector<InstructionId> all;
    for (size_t row : results_) all.push_back(OutsideOf(row));
    const AnnotationScope scope(&after, {id});
    const InstructionId tuple = after.Make(Opcode::kTuple, old_shape, all);
    for (const auto& [user, index] : others) module_.ReplaceOperand(user, index, tuple);
    if (is_root) module_.SetRoot(module_.record(id).parent, tuple);
  }

 private:
  struct Row {
    std::vector<InstructionId> instructions;  // by branch
    std::vector<size_t> operands;             // if it moves
    InstructionId argument;                   // the value that all branches get, if it is one, or a tuple with it
    int64_t element = -1;                     // of that tuple
    InstructionId outside;                    // what it becomes
    bool moves = false;
    bool is_needed = false;
  };

  // Returns the number of the row of these instructions.
  size_t RowOf(const std::vector<InstructionId>& instructions) {
    std::vector<uint32_t> key;
    for (InstructionId id : instructions) key.push_back(id.value);
    const auto [at, is_new] = numbers_.emplace(key, rows_.size());
    if (is_new) {
      rows_.push_back({.instructions = instructions, .operands = {}, .argument = {}, .outside = {}});
      FindArgument(&rows_.back());
      for (InstructionId id : instructions) rows_with_[id.value].push_back(at->second);
    }
    return at->second;
  }
  // Finds out whether the row is one value outside.
  void FindArgument(Row* row) {
    for (size_t b = 0; b < branches_.size(); ++b) {
      Instruction i = module_.instruction(row->instructions[b]);
      int64_t element = -1;
      if (i.opcode() == Opcode::kGetTupleElement) {
        element = i.int_attr(Attr::kIndex);
        i = i.operand(0);
      }
      if (i.opcode() != Opcode::kParameter) return row->argument = InstructionId(), void();
      Instruction argument = conditional_.operand(static_cast<int64_t>(b) + 1);
      if (element >= 0 && argument.opcode() == Opcode::kTuple) {
        argument = argument.operand(element);
        element = -1;
      }
      if (b > 0 && (argument.id() != row->argument || element != row->element)) {
        return row->argument = InstructionId(), void();
      }
      row->argument = argument.id();
      row->element = element;
    }
  }

  std::vector<size_t> OperandsOf(size_t row) {
    const std::vector<InstructionId> instructions = rows_[row].instructions;
    std::vector<size_t> operands;
    for (int64_t k = 0; k < module_.instruction(instructions[0]).operand_count(); ++k) {
      std::vector<InstructionId> operand;
      for (InstructionId id : instructions) operand.push_back(module_.instruction(id).operand(k).id());
      operands.push_back(RowOf(operand));
    }
    return operands;
  }

  // Returns true if the instructions may move and are equal, apart from their operands.
  bool AreEqual(size_t row) {
    KeySet keys;
    for (size_t b = 0; b < branches_.size(); ++b) {
      const Instruction i = module_.instruction(rows_[row].instructions[b]);
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
  // Returns true if the row is known outside, or will move because all its operands are.
  bool IsFree(size_t row, int depth = 0) {
    if (rows_[row].argument.valid()) return true;
    if (depth == kMaxDepth || !AreEqual(row)) return false;
    for (InstructionId id : rows_[row].instructions) {
      if (!HasOneUser(module_.instruction(id))) return false;
    }
    for (size_t operand : OperandsOf(row)) {
      if (!IsFree(operand, depth + 1)) return false;
    }
    return true;
  }
  bool ShouldMove(size_t row) {
    if (rows_[row].argument.valid() || !AreEqual(row)) return false;
    for (size_t b = 0; b < branches_.size(); ++b) {
      for (Instruction user : module_.instruction(rows_[row].instructions[b]).users()) {
        if (user != branches_[b].root() && !moved_instructions_.contains(user.id().value)) return false;
      }
      // With another instruction of another branch, it is another value.
      for (size_t other : rows_with_[rows_[row].instructions[b].value]) {
        if (other != row && rows_[other].is_needed) return false;
      }
    }
    // Results that are needed instead of this one.
    int64_t bytes = 0;
    absl::flat_hash_set<size_t> counted;
    for (size_t operand : OperandsOf(row)) {
      const Shape shape = module_.instruction(rows_[operand].instructions[0]).shape();
      if (!shape.IsArray()) return false;
      const bool is_new = counted.insert(operand).second && !rows_[operand].is_needed;
      if (is_new && !IsFree(operand)) bytes += BufferBytes(shape);
    }
    return bytes <= BufferBytes(module_.instruction(rows_[row].instructions[0]).shape());
  }

  InstructionId OutsideOf(size_t row) {
    Row& r = rows_[row];
    if (r.outside.valid()) return r.outside;
    r.outside = r.argument;
    if (r.element >= 0) {
      Builder before(&module_, conditional_.id());
      const AnnotationScope scope(&before, {r.argument});
      r.outside = before.MakeElement(r.argument, r.element);
    }
    return r.outside;
  }
  void MoveRow(Builder& after, size_t row) {
    std::vector<InstructionId> operands;
    for (size_t operand : rows_[row].operands) operands.push_back(OutsideOf(operand));
    const InstructionId made = after.MakeClone(rows_[row].instructions[0], operands);
    for (size_t b = 1; b < branches_.size(); ++b) MergeMetadata(module_, rows_[row].instructions[b], made);
    rows_[row].outside = made;
  }
  // Erases what has moved, and reads of arguments that nothing else uses.
  void EraseRows() {
    for (size_t row : moved_) {
      for (size_t b = 0; b < branches_.size(); ++b) module_.Erase(rows_[row].instructions[b]);
      for (size_t operand : rows_[row].operands) {
        if (!rows_[operand].argument.valid()) continue;
        for (InstructionId id : rows_[operand].instructions) {
          const Instruction i = module_.instruction(id);
          if (!i.record().parent.valid() || i.has_users() || i.opcode() == Opcode::kParameter || HasControlEdges(i)) {
            continue;
          }
          MergeMetadata(module_, id, rows_[row].outside);
          module_.Erase(id);
        }
      }
    }
  }

  Module& module_;
  const Instruction conditional_;
  const std::vector<Computation> branches_;
  const std::vector<uint32_t>& same_;
  std::vector<Row> rows_;
  std::map<std::vector<uint32_t>, size_t> numbers_;
  absl::flat_hash_map<uint32_t, std::vector<size_t>> rows_with_;  // by instruction
  std::vector<size_t> results_;                                   // the row of each result
  std::vector<size_t> moved_;                                     // users before operands
  absl::flat_hash_set<uint32_t> moved_instructions_;
};

// Returns true if results of the branches can become others.
bool CanChangeResults(const CallGraph& calls, Instruction conditional) {
  if (!conditional.shape().IsTuple() || conditional.has(Attr::kSharding)) return false;
  for (Computation branch : conditional.called_computations()) {
    const Instruction root = branch.root();
    if (calls.caller_callsites(branch).size() != 1 || root.opcode() != Opcode::kTuple || root.has_users() ||
        HasControlEdges(root) || root.has(Attr::kSharding) || root.shape() != conditional.shape()) {
      return false;
    }
  }
  const std::vector<Instruction> users = conditional.users();
  return std::none_of(users.begin(), users.end(), [](Instruction user) {
    return user.opcode() == Opcode::kGetTupleElement && (HasControlEdges(user) || user.has(Attr::kSharding));
  });
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
    BranchEnds ends(&module, module.instruction(id), same);
    const int64_t rows = ends.FindRows();
    if (rows > 0) ends.Move();
    moved += rows;
  }
  if (moved > 0) Count("instructions moved out of conditionals", moved);
  return moved > 0;
}

}  // namespace hlokit

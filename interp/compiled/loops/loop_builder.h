// SPDX-License-Identifier: Apache-2.0
// Loop programs of instructions.
#ifndef HLOKIT_INTERP_COMPILED_LOOPS_LOOP_BUILDER_H_
#define HLOKIT_INTERP_COMPILED_LOOPS_LOOP_BUILDER_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "interp/compiled/programs/loop_program.h"
#include "interp/exact/program/element_op.h"
#include "ir/graph/module.h"

namespace hlokit::interp::compiled {

// Returns true for types of elements that loops read, compute and store.
bool IsLoopType(ElementType type);

// Returns true if an element of the instruction can be computed in a loop: it is elementwise, of types that loops have,
// or the same elements in other dimensions.
bool IsLoopInstruction(Instruction instruction);

// Returns true for functions that generated loops compute by other formulas than the exact engine.
bool IsApproximate(Opcode opcode);

// Returns the operation that combines elements, if the instruction reduces all minor dimensions, and not all, of one
// array with an operation and types that loops have.
std::optional<LoopOp> RowCombiner(Instruction instruction);
// Returns the operation and sets `reduced`, ascending, if the instruction reduces any dimensions of one array with an
// operation and types that loops have.
std::optional<LoopOp> ReduceCombiner(Instruction instruction, std::vector<int64_t>* reduced);
// Returns true for a broadcast of an array along new minor dimensions, of a type that loops have.
bool IsRowBroadcast(Instruction instruction);

// A batch normalization: its operands, which of them beside the first has all dimensions (-1: none), and whether it
// gives two values of each feature beside the elements.
struct NormForm {
  Opcode opcode;
  int64_t operands;
  int64_t gradient;
  bool has_sums;
};
// Returns null for other opcodes.
const NormForm* NormFormOf(Opcode opcode);
// Returns true for a batch normalization of f32 whose elements can be computed in a loop, once sums are known.
bool IsLoopNorm(Instruction instruction);
// Returns true for the result of a batch normalization that has the dimensions of its operand.
bool IsNormResult(Instruction instruction);

// Adds instructions to a program. Values that are not of the group become inputs.
class LoopBuilder {
 public:
  // Returns the number of the input with this instruction's value. `repeats`: along rows or columns.
  struct Repeats {
    bool row_value = false;
    bool column_value = false;
  };
  uint16_t Input(Instruction value, Repeats repeats);
  // Returns the number of a further input.
  uint16_t AddInput(ElementType type, Repeats repeats);
  uint16_t AddNode(LoopOp op, ElementType type, std::initializer_list<uint16_t> operands);
  // Adds a reduction of `element`, in the accumulator's type, without an initial value. `row_value`: along the row.
  uint16_t AddReduction(LoopOp combiner, uint16_t element, bool row_value);
  // Makes `node` the value of a member.
  void SetNode(Instruction member, uint16_t node) { node_of_[member.id().value] = node; }
  // Adds a member. Requires: its operands are members that were added, or inputs.
  uint16_t Add(Instruction member);
  // `by_element`: even if its value is the same in a row.
  void AddOutput(Instruction member, bool by_element);

  // Returns the number of a member's value or of an input.
  uint16_t ValueOf(Instruction value) const {
    return is_member(value) ? NodeOf(value) : input_node_of_.at(value.id().value);
  }
  bool is_member(Instruction i) const { return node_of_.contains(i.id().value); }
  uint16_t NodeOf(Instruction member) const { return node_of_.at(member.id().value); }

  LoopProgram& program() { return program_; }
  std::vector<ElementOp>& functions() { return functions_; }

 private:
  LoopProgram program_;
  std::vector<ElementOp> functions_;
  absl::flat_hash_map<uint32_t, uint16_t> node_of_;        // members, by instruction id
  absl::flat_hash_map<uint32_t, uint16_t> input_node_of_;  // by instruction id
};

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LOOPS_LOOP_BUILDER_H_

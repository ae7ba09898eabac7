// SPDX-License-Identifier: Apache-2.0
// Loop programs of instructions.
#ifndef HLOKIT_INTERP_COMPILED_LOOP_BUILDER_H_
#define HLOKIT_INTERP_COMPILED_LOOP_BUILDER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "interp/compiled/loop_program.h"
#include "interp/exact/element_op.h"
#include "ir/graph/module.h"

namespace hlokit::interp::compiled {

// Returns true if an element of the instruction can be computed in a loop: it is elementwise, of types that loops have,
// or the same elements in other dimensions.
bool IsLoopInstruction(Instruction instruction);

// Returns the operation that combines elements, if the instruction reduces all minor dimensions, and not all, of one
// array with an operation and types that loops have.
std::optional<LoopOp> RowCombiner(Instruction instruction);
// Returns true for a broadcast of an array along new minor dimensions, of a type that loops have.
bool IsRowBroadcast(Instruction instruction);

// Adds instructions to a program. Values that are not of the group become inputs.
class LoopBuilder {
 public:
  // Returns the number of the input with this instruction's value, read with `row_value` or without.
  uint16_t Input(Instruction value, bool row_value);
  // Adds a member. Requires: its operands are members that were added, or inputs.
  uint16_t Add(Instruction member);
  // `by_element`: even if its value is the same in a row.
  void AddOutput(Instruction member, bool by_element);

  bool is_member(Instruction i) const { return node_of_.contains(i.id().value); }
  uint16_t NodeOf(Instruction member) const { return node_of_.at(member.id().value); }

  LoopProgram& program() { return program_; }
  // Instructions whose values are inputs.
  const std::vector<Instruction>& inputs() const { return inputs_; }
  std::vector<ElementOp>& functions() { return functions_; }

 private:
  LoopProgram program_;
  std::vector<Instruction> inputs_;
  std::vector<ElementOp> functions_;
  absl::flat_hash_map<uint32_t, uint16_t> node_of_;        // members, by instruction id
  absl::flat_hash_map<uint32_t, uint16_t> input_node_of_;  // by instruction id
};

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LOOP_BUILDER_H_

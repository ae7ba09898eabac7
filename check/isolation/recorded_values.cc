// SPDX-License-Identifier: Apache-2.0
#include "check/isolation/recorded_values.h"

#include <utility>

#include "check/isolation/instruction_runner.h"

namespace hlokit::interp {

absl::Status ValueRecorder::OnValue(InstructionId id, absl::Span<const std::byte* const> values,
                                    absl::Span<const std::byte* const> /*operands*/) {
  std::vector<std::vector<Literal>>& recorded = values_[id.value];
  const Instruction i = module_.instruction(id);
  const int64_t max = i.opcode() == Opcode::kConstant ? 1 : max_executions_;
  if (static_cast<int64_t>(recorded.size()) >= max || full_.contains(id.value)) return absl::OkStatus();
  int64_t bytes = 0;
  for (Shape leaf : Leaves(i.shape())) {
    if (leaf.IsArray()) bytes += LiteralBytes(leaf);
  }
  if (bytes > left_) {
    full_.insert(id.value);
    return absl::OkStatus();
  }
  left_ -= bytes;
  recorded.push_back(LeavesOf(i.shape(), values));
  return absl::OkStatus();
}

int64_t ValueRecorder::Executions(InstructionId instruction) const {
  const auto found = values_.find(instruction.value);
  return found == values_.end() ? 0 : static_cast<int64_t>(found->second.size());
}

absl::StatusOr<std::vector<Literal>> ValueRecorder::Value(InstructionId instruction, int64_t execution) const {
  return values_.at(instruction.value)[static_cast<size_t>(execution - 1)];
}

}  // namespace hlokit::interp

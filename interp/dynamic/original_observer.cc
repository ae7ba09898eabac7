// SPDX-License-Identifier: Apache-2.0
#include "interp/dynamic/original_observer.h"

#include <utility>

namespace hlokit::interp {

ObservationRequest WithoutGroups(ObservationRequest request) {
  if (request.instructions.size() < request.grouped.size()) request.instructions.resize(request.grouped.size());
  for (size_t id = 0; id < request.grouped.size(); ++id) {
    if (request.grouped[id]) request.instructions[id] = true;
  }
  request.grouped.clear();
  return request;
}

size_t OriginalObserver::LeafCount(Shape shape) { return static_cast<size_t>(shape.leaf_count()); }

size_t OriginalObserver::OperandLeaves(Instruction instruction) {
  size_t count = 0;
  for (const Instruction operand : instruction.operands()) count += LeafCount(operand.shape());
  return count;
}

bool OriginalObserver::Shows(InstructionId id, size_t values) const {
  return IsKnown(id) && values >= OwnLeaves(id) &&
         OperandLeaves(run_.instruction(id)) == OperandLeaves(original_.instruction(id));
}

void OriginalObserver::OnInstructionBegin(InstructionId instruction) {
  if (IsKnown(instruction)) {
    observer_.OnInstructionBegin(instruction);
  } else {
    observer_.OnInstructionEnd();
  }
}

absl::Status OriginalObserver::OnValue(InstructionId instruction, absl::Span<const std::byte* const> values,
                                       absl::Span<const std::byte* const> operands) {
  if (!Shows(instruction, values.size())) return absl::OkStatus();
  return observer_.OnValue(instruction, values.first(OwnLeaves(instruction)), operands);
}

bool OriginalObserver::NeedsValue(InstructionId instruction, absl::Span<const std::byte* const> elements) {
  return Shows(instruction, elements.size()) &&
         observer_.NeedsValue(instruction, elements.first(OwnLeaves(instruction)));
}

}  // namespace hlokit::interp

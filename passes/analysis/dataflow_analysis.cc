// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/dataflow_analysis.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace hlokit {
namespace {

constexpr size_t kMaxHeld = size_t{1} << 27;  // leaves of all instructions in total

}  // namespace

bool IsFlat(Shape shape) {
  if (!shape.IsTuple()) return true;
  for (Shape element : shape.elements()) {
    if (element.IsTuple()) return false;
  }
  return true;
}

absl::Span<const uint32_t> DataflowAnalysis::ValuesOf(Instruction i) const {
  const Range range = ranges_[i.id()];
  return absl::MakeConstSpan(held_).subspan(range.begin, range.size);
}

absl::StatusOr<DataflowAnalysis> DataflowAnalysis::Create(const Module& module, absl::Span<const InstructionId> order) {
  DataflowAnalysis flow;
  if (order.empty()) return flow;
  flow.ranges_ = InstructionMap<Range>(order);
  absl::flat_hash_map<uint32_t, std::vector<uint32_t>> leaves_before;  // by ShapeId: before each element
  for (InstructionId id : order) {
    const Instruction i = module.instruction(id);
    Range& range = flow.ranges_[id];
    const int64_t leaves = i.shape().leaf_count();
    if (leaves < 0 || flow.held_.size() + static_cast<size_t>(leaves) > kMaxHeld) {
      return absl::ResourceExhaustedError("the tuples of a computation have too many leaves");
    }
    const auto begin = static_cast<uint32_t>(flow.held_.size());
    const Opcode opcode = i.opcode();
    if (opcode == Opcode::kTuple) {
      for (Instruction operand : i.operands()) {
        const Range from = flow.ranges_[operand.id()];
        for (uint32_t k = 0; k < from.size; ++k) flow.held_.push_back(flow.held_[from.begin + k]);
      }
    } else if (opcode == Opcode::kGetTupleElement) {
      const Range from = flow.ranges_[i.operand(0).id()];
      const Shape tuple = i.operand(0).shape();
      std::vector<uint32_t>& before = leaves_before[tuple.id().value];
      if (before.empty()) {
        before.push_back(0);
        for (Shape element : tuple.elements()) {
          before.push_back(before.back() + static_cast<uint32_t>(element.leaf_count()));
        }
      }
      const int64_t index = i.int_attr(Attr::kIndex, -1);
      if (index < 0 || index >= tuple.tuple_size() || tuple.element(index).leaf_count() != leaves) {
        return absl::InvalidArgumentError("a get-tuple-element is incompatible with the shape of its operand");
      }
      range = {from.begin + before[static_cast<size_t>(index)], static_cast<uint32_t>(leaves)};
      continue;
    } else if (HasTrait(opcode, kForwards) && i.operand(0).shape().leaf_count() == leaves) {
      range = flow.ranges_[i.operand(0).id()];
      continue;
    } else {
      int64_t leaf = 0;
      for (Shape shape : Leaves(i.shape())) {
        flow.held_.push_back(static_cast<uint32_t>(flow.values_.size()));
        flow.values_.push_back({id, leaf++, shape});
      }
    }
    range = {begin, static_cast<uint32_t>(flow.held_.size()) - begin};
  }
  return flow;
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
#include "passes/layout/expand_bitcasts.h"

#include <vector>

#include "ir/builder/builder.h"
#include "passes/target/tiling.h"

namespace hlokit {
namespace {

// Returns the dimensions in memory, major to minor.
std::vector<int64_t> MajorToMinor(Shape array) {
  std::vector<int64_t> order(static_cast<size_t>(array.rank()));
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
  if (!array.has_layout() || array.layout()->minor_to_major.size() != order.size()) return order;
  const auto minor_to_major = array.layout()->minor_to_major;
  return {minor_to_major.rbegin(), minor_to_major.rend()};
}

bool IsExpandable(Instruction i) {
  if (i.opcode() != Opcode::kBitcast || i.operand_count() != 1) return false;
  const Shape from = i.operand(0).shape(), to = i.shape();
  if (!from.IsArray() || !to.IsArray() || tpu::HasTiles(from) || tpu::HasTiles(to)) return false;
  if (from.has_dynamic_dims() || to.has_dynamic_dims() || from.element_count() != to.element_count()) return false;
  return BitsOf(from.element_type()) == BitsOf(to.element_type());
}

absl::StatusOr<InstructionId> Expanded(Module& module, Instruction bitcast) {
  Builder b(&module, bitcast.record().parent);
  const MetadataScope scope(&b, bitcast.metadata_id());
  const Shape from = bitcast.operand(0).shape(), to = bitcast.shape();
  const std::vector<int64_t> in = MajorToMinor(from), out = MajorToMinor(to);
  Builder::Result value = b.Transpose(bitcast.operand(0).id(), in);
  if (!value.ok()) return value;
  std::vector<int64_t> sizes, back(out.size());
  for (size_t d = 0; d < out.size(); ++d) {
    sizes.push_back(to.dim(out[d]));
    back[static_cast<size_t>(out[d])] = static_cast<int64_t>(d);
  }
  value = b.Reshape(*value, sizes);
  if (!value.ok()) return value;
  value = b.Transpose(*value, back);
  if (!value.ok() || from.element_type() == to.element_type()) return value;
  return b.BitcastConvert(*value, to.element_type());
}

}  // namespace

absl::StatusOr<int64_t> ExpandBitcasts(Module& module) {
  if (module.header().is_scheduled) return 0;
  std::vector<InstructionId> bitcasts;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (IsExpandable(i)) bitcasts.push_back(i.id());
    }
  }
  for (InstructionId id : bitcasts) {
    const absl::StatusOr<InstructionId> value = Expanded(module, module.instruction(id));
    if (!value.ok()) return value.status();
    module.ReplaceAllUses(id, *value);
    module.Erase(id);
  }
  return static_cast<int64_t>(bitcasts.size());
}

}  // namespace hlokit

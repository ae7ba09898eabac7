// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/dynamic_size.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace hlokit {

Instruction FindDynamicSize(Instruction array, int64_t dim) {
  std::vector<std::pair<Instruction, int64_t>> stack = {{array, dim}};
  absl::flat_hash_set<std::pair<uint32_t, int64_t>> visited;
  while (!stack.empty()) {
    const auto [at, d] = stack.back();
    stack.pop_back();
    if (!at.shape().IsArray() || d < 0 || d >= at.shape().rank()) continue;
    if (!visited.insert({at.id().value, d}).second) continue;
    const Opcode opcode = at.opcode();
    if (opcode == Opcode::kSetDimensionSize) {
      const absl::Span<const int64_t> dimensions = at.list_attr(Attr::kDimensions);
      if (dimensions.size() == 1 && dimensions[0] == d) return at.operand(1);
      stack.push_back({at.operand(0), d});
    } else if (HasTrait(opcode, kIdentity)) {
      if (at.operand_count() > 0) stack.push_back({at.operand(0), d});
    } else if (!at.shape().is_dynamic(d)) {
      continue;
    } else if (HasTrait(opcode, kElementwise)) {
      // The first operand first; scalars have no such dimension.
      for (int64_t n = at.operand_count(); n-- > 0;) stack.push_back({at.operand(n), d});
    } else if (opcode == Opcode::kTranspose) {
      const absl::Span<const int64_t> dimensions = at.list_attr(Attr::kDimensions);
      if (static_cast<size_t>(d) < dimensions.size()) stack.push_back({at.operand(0), dimensions[d]});
    } else if (opcode == Opcode::kReverse || opcode == Opcode::kDynamicUpdateSlice || opcode == Opcode::kScatter) {
      stack.push_back({at.operand(0), d});
    }
  }
  return Instruction();
}

}  // namespace hlokit

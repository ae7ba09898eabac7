// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/builder/collective.h"

#include <cstring>

namespace hlokit::interp {

void CollectiveParams::ForEachTarget(int64_t from, int64_t count, absl::FunctionRef<void(int64_t)> target) const {
  if (!neighbors.empty()) {
    for (int64_t to : neighbors[static_cast<size_t>(from)]) target(to);
    return;
  }
  for (int64_t to = 0; to < count; ++to) target(to);
}

void CollectiveParams::Run(absl::Span<const CollectiveMember> members, RunContext& context) const {
  if (!Check(members, context)) return;
  for (const CollectiveMember& m : members) FillResults(m);
  const auto n = static_cast<int64_t>(members.size());
  for (int64_t from = 0; from < n; ++from) {
    ForEachTarget(from, n, [&](int64_t to) {
      ForEachPiece(members, from, to, [&](const CollectivePiece& piece) {
        std::memcpy(members[static_cast<size_t>(to)].results[piece.result] + piece.to,
                    members[static_cast<size_t>(from)].operands[piece.operand] + piece.from,
                    static_cast<size_t>(piece.bytes));
      });
    });
  }
}

}  // namespace hlokit::interp

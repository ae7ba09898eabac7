// SPDX-License-Identifier: Apache-2.0
// Collectives: thunks at which a device waits for the other devices of its group.
#ifndef HLOKIT_INTERP_EXACT_COLLECTIVE_H_
#define HLOKIT_INTERP_EXACT_COLLECTIVE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "interp/exact/exact_fwd.h"
#include "interp/exact/program.h"

namespace hlokit::interp {

// One device of a group: its operands and result buffers.
struct CollectiveMember {
  int64_t device = 0;
  const std::byte* const* operands = nullptr;
  std::byte* const* results = nullptr;
};

// Parameters of a ThunkKind::kCollective thunk.
struct CollectivePlan : ThunkParams {
  std::vector<std::vector<int64_t>> groups;  // groups of devices that synchronize
  std::vector<int64_t> group_of;             // by device

  // Returns true if `device`, whose whole group has arrived, can proceed; otherwise WaitsFor names the missing event.
  virtual bool Ready(int64_t /*device*/, const RunContext& /*context*/) const { return true; }
  virtual std::string WaitsFor() const { return ""; }

  // Computes the results of a group; `members` are in group order. Errors are set in the context.
  virtual void Run(absl::Span<const CollectiveMember> members, RunContext& context) const = 0;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_COLLECTIVE_H_

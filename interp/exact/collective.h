// SPDX-License-Identifier: Apache-2.0
// What the devices of a run do together: steps at which a machine waits until the others of its group are there.
#ifndef HLOKIT_INTERP_EXACT_COLLECTIVE_H_
#define HLOKIT_INTERP_EXACT_COLLECTIVE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "interp/exact/program.h"

namespace hlokit::interp {

class RunContext;

// One device of a group: the operands it came with, and where its results go.
struct CollectiveMember {
  int64_t device = 0;
  const std::byte* const* operands = nullptr;
  std::byte* const* results = nullptr;
};

// The plan of a ThunkKind::kCollective step.
struct CollectivePlan : ThunkParams {
  std::vector<std::vector<int64_t>> groups;  // devices; all of a group meet
  std::vector<int64_t> group_of;             // by device

  // Whether `device`, all of whose group waits, can go on; and what it waits for if it cannot.
  virtual bool Ready(int64_t /*device*/, const RunContext& /*context*/) const { return true; }
  virtual std::string WaitsFor() const { return ""; }

  // Computes the results of a group, whose members come in its order. Errors go to the context.
  virtual void Run(absl::Span<const CollectiveMember> members, RunContext& context) const = 0;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_COLLECTIVE_H_

// SPDX-License-Identifier: Apache-2.0
// Collectives: thunks at which a device waits for the other devices of its group.
#ifndef HLOKIT_INTERP_EXACT_BUILDER_COLLECTIVE_H_
#define HLOKIT_INTERP_EXACT_BUILDER_COLLECTIVE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "interp/exact/program/exact_fwd.h"
#include "interp/exact/program/program.h"
#include "ir/types/element_type.h"

namespace hlokit::interp {

// One device of a group, which others name by its position in the group: its operands and result buffers. Of a device
// of another process, only the operands that the parameters' `shared_operands` name; the rest is null.
struct CollectiveMember {
  int64_t device = 0;
  const std::byte* const* operands = nullptr;
  std::byte* const* results = nullptr;
};

// Bytes that a result of one member takes from an operand of another.
struct CollectivePiece {
  size_t operand = 0;
  int64_t from = 0;  // offset in the operand
  size_t result = 0;
  int64_t to = 0;  // offset in the result
  int64_t bytes = 0;
};

// A collective whose results combine the operands of all members, element by element: f(f(x0, x1), x2)... in the order
// of the group.
struct CollectiveReduction {
  struct Part {
    int64_t count = 0;  // elements of an operand
    int64_t bytes = 0;  // of an element
    int64_t outer = 1;  // reduce-scatter: elements of the dimensions before the scattered one
  };
  const ScalarFunction* function = nullptr;
  ElementType type = ElementType::kF32;
  bool scatters = false;
  std::vector<Part> parts;  // for each operand

  // Reduces `count` elements of each input, in order, to `total`, which is none of the inputs but may be the first.
  void Reduce(absl::Span<const std::byte* const> inputs, int64_t count, std::byte* total, RunContext& context) const;
};

// Parameters of a ThunkKind::kCollective thunk.
struct CollectiveParams : ThunkParams {
  std::vector<std::vector<int64_t>> groups;  // groups of devices that synchronize
  std::vector<int64_t> group_of;             // by device
  int64_t number = 0;                        // not 0: the same collective as others with this number
  // The thunk of a start among processes: devices continue before the results have their values, for which the thunk
  // of the done waits.
  bool starts = false;

  // The thunk waits for a message of another device.
  bool receives = false;

  // Returns true if `device`, whose whole group has arrived, can proceed; otherwise WaitsFor names the missing event.
  virtual bool Ready(int64_t /*device*/, const RunContext& /*context*/) const { return true; }
  virtual std::string WaitsFor() const { return ""; }

  // Computes the results of a group; `members` are in group order. Errors are set in the context. The default fills the
  // results of all members and copies all pieces.
  virtual void Run(absl::Span<const CollectiveMember> members, RunContext& context) const;

  // ---- A collective that moves bytes ----

  // Operands, by number, that say which bytes move, with their sizes in bytes: all members know those of all others.
  struct SharedOperand {
    size_t operand = 0;
    int64_t bytes = 0;
  };
  std::vector<SharedOperand> shared_operands;
  // For each member its targets, which are few; empty: each member sends to all.
  std::vector<std::vector<int64_t>> neighbors;
  // Every member gets the same bytes of a member, to the same places.
  bool same_for_all = false;

  // Checks the shared operands, the same in each process.
  virtual bool Check(absl::Span<const CollectiveMember> /*members*/, RunContext& /*context*/) const { return true; }
  // Fills the bytes of a member's results that no piece sets.
  virtual void FillResults(const CollectiveMember& /*member*/) const {}
  // Calls `target` for the members to which member `from` of `count` sends.
  void ForEachTarget(int64_t from, int64_t count, absl::FunctionRef<void(int64_t)> target) const;
  // Calls `piece` for the bytes that member `to`, one of the targets, gets from member `from`, in a fixed order.
  virtual void ForEachPiece(absl::Span<const CollectiveMember> /*members*/, int64_t /*from*/, int64_t /*to*/,
                            absl::FunctionRef<void(const CollectivePiece&)> /*piece*/) const {}

  // ---- A collective that reduces: not null ----
  virtual const CollectiveReduction* reduction() const { return nullptr; }
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_BUILDER_COLLECTIVE_H_

// SPDX-License-Identifier: Apache-2.0
// The arrays of a module that can stay in the memory of the host, followed through tuples, loops, calls and branches.
#ifndef HLOKIT_PASSES_SCHEDULE_HOST_BUFFERS_H_
#define HLOKIT_PASSES_SCHEDULE_HOST_BUFFERS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/analysis/call_graph.h"

namespace hlokit {

// Return true for a call of MoveToHost or MoveToDevice, whose result may differ from the operand in the memory space.
bool IsMoveToHost(Instruction i);
bool IsMoveToDevice(Instruction i);
// Returns true for a slice or dynamic-slice.
bool IsSlice(Instruction i);
// Returns true if MoveToDevice reads `slice`, and nothing else does.
bool OnlyMovesToDevice(Instruction slice);

// A buffer is the leaf of a result. Operations that pass arrays on put them in the same buffer: tuples and their
// elements, bitcasts, barriers, the state of a loop in its operand, its body, its condition and its result, arguments
// and results of calls and branches, and the array that a dynamic-update-slice writes to. Other operations define
// theirs on the device; where these are passed on, a copy to the host can be inserted.
//
// A buffer is in the memory of the host if one of its arrays is the result of MoveToHost or a parameter of the entry
// that the layout of the entry places there, or an array of the host is written to it, and if nothing else than
// MoveToDevice, also of a slice, reads it.
class HostBuffers {
 public:
  // Returns an error if the tuples of the module have too many leaves.
  static absl::StatusOr<HostBuffers> Create(const Module& module, int64_t host_memory_space);

  // An operand that is on the device and is passed on to a buffer of the host.
  struct Entrance {
    InstructionId user;
    int64_t operand_index;
  };

  // Returns the computations that are followed.
  const std::vector<Computation>& computations() const { return computations_; }
  // Returns true if leaf `leaf` of `i` is in a buffer of the host.
  bool IsOnHost(Instruction i, int64_t leaf) const;
  // Returns true if an operation of the device defines the array `i`.
  bool IsDefinedOnDevice(Instruction i) const;
  std::vector<Entrance> entrances() const;
  // Returns the computations whose root is on the device and is passed on to a buffer of the host.
  std::vector<Computation> roots_to_copy() const;

 private:
  static constexpr uint32_t kNone = 0xffffffffu;

  HostBuffers(const Module& module, int64_t host_memory_space) : module_(module), host_(host_memory_space) {}

  absl::Status NumberLeaves(const CallGraph& calls);
  void FindDefinitions();
  void FollowOperands(Instruction user);
  void FollowRoot(Computation computation, const CallGraph& calls);
  // Leaves of `from`, from `from_leaf` on, are passed on to those of `to`.
  void PassOn(Instruction from, int64_t from_leaf, Instruction to, int64_t to_leaf, int64_t count);
  void PassOperand(Instruction user, int64_t k, Instruction to, int64_t to_leaf);
  // Pass operand `k` of `user` on. Return false if the user does not.
  bool PassTuple(Instruction user, int64_t k);
  bool PassElement(Instruction user, int64_t k);
  bool PassWhole(Instruction user, int64_t k);
  bool PassBitcast(Instruction user, int64_t k);
  bool PassUpdate(Instruction user, int64_t k);
  bool PassLoop(Instruction user, int64_t k);
  bool PassCall(Instruction user, int64_t k);
  bool PassBranch(Instruction user, int64_t k);
  bool RejectsCall(Instruction caller);
  bool ReadsFromHost(Instruction user, int64_t k) const;
  void CheckShapes();
  void Choose();
  void Spread(std::vector<uint8_t>* marked, bool forward) const;

  bool IsFollowed(Computation c) const { return followed_[c.id().value] != 0; }
  uint32_t First(Instruction i) const { return first_[i.id().value]; }
  bool IsPlacedOnHost(Shape leaf) const {
    return leaf.IsArray() && leaf.has_layout() && leaf.layout()->memory_space() == host_;
  }
  uint32_t Find(uint32_t leaf) const;
  void Join(uint32_t a, uint32_t b) { parents_[Find(a)] = Find(b); }
  void Reject(uint32_t leaf) { rejected_.push_back(leaf); }
  void RejectAll(Instruction i);

  const Module& module_;
  const int64_t host_;
  std::vector<Computation> computations_;
  std::vector<uint8_t> followed_;          // by ComputationId
  std::vector<uint32_t> first_;            // the first leaf, by InstructionId
  std::vector<uint8_t> defined_;           // by leaf: by an operation of the device
  mutable std::vector<uint32_t> parents_;  // by leaf
  std::vector<uint32_t> seeds_;            // leaves moved to the host
  std::vector<uint32_t> rejected_;         // leaves that the device reads
  // Leaves of the updates of dynamic-update-slices, with their results: the latter are on the host if the former are.
  std::vector<std::pair<uint32_t, uint32_t>> updates_;
  struct Arrival {
    Entrance entrance;
    uint32_t leaf;
  };
  std::vector<Arrival> arrivals_;
  std::vector<std::pair<Computation, uint32_t>> roots_;  // defined on the device, with the leaves they are passed on to
  std::vector<uint8_t> on_host_;                         // by the representative of a buffer
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_HOST_BUFFERS_H_

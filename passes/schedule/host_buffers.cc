// SPDX-License-Identifier: Apache-2.0
// Buffers are the classes of a union-find over all leaves. Whether one can be on the host depends on others only
// through updates: both an array and what it is written to, or neither, so two closures along the updates decide.
#include "passes/schedule/host_buffers.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "ir/graph/attribute_views.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "ir/ops/opcode_table.h"
#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {
namespace {

constexpr size_t kMaxLeavesInTotal = size_t{1} << 27;

// Returns true if the shapes are equal except in the memory space.
bool SameExceptMemorySpace(Shape a, Shape b) {
  if (a == b) return true;
  if (!a.IsArray() || !Compatible(a, b) || !a.has_layout() || !b.has_layout()) return false;
  const auto without_space = [](const LayoutRecord* layout) {
    LayoutExtras extras;
    if (layout->extras != nullptr) extras = *layout->extras;
    extras.memory_space = 0;
    return extras;
  };
  return a.layout()->minor_to_major == b.layout()->minor_to_major &&
         without_space(a.layout()) == without_space(b.layout());
}

bool IsMove(Instruction i, std::string_view target) {
  return i.opcode() == Opcode::kCustomCall && i.operand_count() == 1 && i.shape().IsArray() &&
         i.string_attr(Attr::kCustomCallTarget) == target && SameExceptMemorySpace(i.operand(0).shape(), i.shape());
}

bool IsReplaceableMove(Instruction i) { return !i.has_control_edges() && !i.has(Attr::kSharding); }

bool HasUnitStrides(Instruction slice) {
  const SliceView view = SliceView::Of(slice);
  for (int64_t d = 0; d < slice.shape().rank(); ++d) {
    if (view.stride(d) != 1) return false;
  }
  return true;
}

// Returns true for operations whose results hold arrays that were elsewhere before.
bool PassesArraysOn(Instruction i) {
  const Opcode opcode = i.opcode();
  static constexpr OpcodeSet kPassingOn = {Opcode::kTuple, Opcode::kGetTupleElement, Opcode::kOptimizationBarrier,
                                           Opcode::kDynamicUpdateSlice};
  return CallsSequentialCode(opcode) || kPassingOn.Contains(opcode) ||
         (opcode == Opcode::kBitcast && i.operand(0).shape().IsArray()) || (IsMoveToHost(i) && IsReplaceableMove(i));
}

// Returns the number of leaves of a tuple before element `index`.
int64_t LeavesBefore(Shape tuple, int64_t index) {
  int64_t leaves = 0;
  for (int64_t k = 0; k < index; ++k) leaves += tuple.element(k).leaf_count();
  return leaves;
}

}  // namespace

bool IsMoveToHost(Instruction i) { return IsMove(i, "MoveToHost"); }
bool IsMoveToDevice(Instruction i) { return IsMove(i, "MoveToDevice"); }
bool IsSlice(Instruction i) { return OpcodeSet{Opcode::kDynamicSlice, Opcode::kSlice}.Contains(i.opcode()); }

bool OnlyMovesToDevice(Instruction slice) {
  if (slice.is_root() || slice.has_control_edges() || !slice.has_users()) return false;
  for (const auto& use : slice.uses()) {
    if (!IsMoveToDevice(use.user) || use.user.has_control_edges()) return false;
  }
  return true;
}

absl::StatusOr<HostBuffers> HostBuffers::Create(const Module& module, int64_t host_memory_space) {
  HostBuffers buffers(module, host_memory_space);
  const CallGraph calls(module);
  if (absl::Status status = buffers.NumberLeaves(calls); !status.ok()) return status;
  buffers.FindDefinitions();
  for (Computation c : buffers.computations_) {
    for (Instruction i : c.instructions()) buffers.FollowOperands(i);
    buffers.FollowRoot(c, calls);
  }
  buffers.CheckShapes();
  buffers.Choose();
  return buffers;
}

absl::Status HostBuffers::NumberLeaves(const CallGraph& calls) {
  const ComputationRoles roles = RolesOf(module_);
  followed_.assign(module_.computation_id_bound(), 0);
  first_.assign(module_.instruction_id_bound(), kNone);
  size_t leaves = 0;
  for (Computation c : module_.computations()) {
    if (!calls.IsSequential(c) || roles.async[c.id().value] != 0) continue;
    followed_[c.id().value] = 1;
    computations_.push_back(c);
    for (Instruction i : c.instructions()) {
      first_[i.id().value] = static_cast<uint32_t>(leaves);
      leaves += static_cast<size_t>(i.shape().leaf_count());
      if (leaves > kMaxLeavesInTotal) {
        return absl::ResourceExhaustedError("the tuples of the module have too many leaves");
      }
    }
  }
  defined_.assign(leaves, 1);
  parents_.resize(leaves);
  std::iota(parents_.begin(), parents_.end(), 0);
  return absl::OkStatus();
}

void HostBuffers::FindDefinitions() {
  for (Computation c : computations_) {
    for (InstructionId id : PostOrder(c)) {
      const Instruction i = module_.instruction(id);
      uint8_t* const defined = defined_.data() + First(i);
      const int64_t count = i.shape().leaf_count();
      if (i.opcode() == Opcode::kGetTupleElement) {
        const Instruction tuple = i.operand(0);
        const uint32_t from =
            First(tuple) + static_cast<uint32_t>(LeavesBefore(tuple.shape(), i.int_attr(Attr::kIndex)));
        std::copy_n(defined_.begin() + from, count, defined);
      } else if (i.opcode() != Opcode::kParameter) {
        std::fill_n(defined, count, PassesArraysOn(i) ? 0 : 1);
      } else if (!c.is_entry()) {
        std::fill_n(defined, count, 0);
      } else if (module_.header().entry_layout) {
        int64_t leaf = 0;
        const auto number = static_cast<size_t>(i.parameter_number());
        for (Shape placed : Leaves(module_.header().entry_layout->parameters[number])) {
          if (IsPlacedOnHost(placed)) {
            defined[leaf] = 0;
            seeds_.push_back(First(i) + static_cast<uint32_t>(leaf));
          }
          ++leaf;
        }
      }
    }
  }
}

void HostBuffers::RejectAll(Instruction i) {
  for (int64_t leaf = 0; leaf < i.shape().leaf_count(); ++leaf) Reject(First(i) + static_cast<uint32_t>(leaf));
}

void HostBuffers::PassOn(Instruction from, int64_t from_leaf, Instruction to, int64_t to_leaf, int64_t count) {
  for (int64_t k = 0; k < count; ++k) {
    const uint32_t source = First(from) + static_cast<uint32_t>(from_leaf + k);
    const uint32_t target = First(to) + static_cast<uint32_t>(to_leaf + k);
    // An array within a tuple of the device cannot be copied in place.
    defined_[source] == 0 ? Join(source, target) : Reject(target);
  }
}

void HostBuffers::PassOperand(Instruction user, int64_t k, Instruction to, int64_t to_leaf) {
  const Instruction operand = user.operand(k);
  if (IsDefinedOnDevice(operand)) {
    arrivals_.push_back({{user.id(), k}, First(to) + static_cast<uint32_t>(to_leaf)});
  } else {
    PassOn(operand, 0, to, to_leaf, operand.shape().leaf_count());
  }
}

// Returns true if `user` leaves operand `k` where it is, on the host, and passes nothing of it on.
bool HostBuffers::ReadsFromHost(Instruction user, int64_t k) const {
  if (IsMoveToDevice(user)) return !user.has_control_edges();
  if (IsMoveToHost(user)) return IsReplaceableMove(user);
  if (k != 0) return false;
  const Opcode opcode = user.opcode();
  return (opcode == Opcode::kDynamicSlice || (opcode == Opcode::kSlice && HasUnitStrides(user))) &&
         OnlyMovesToDevice(user);
}

// Calls of computations that are also applied to elements or run asynchronously are not followed.
bool HostBuffers::RejectsCall(Instruction caller) {
  const std::vector<Computation> callees = caller.called_computations();
  if (std::all_of(callees.begin(), callees.end(), [this](Computation c) { return IsFollowed(c); })) return false;
  RejectAll(caller);
  for (Instruction operand : caller.operands()) RejectAll(operand);
  for (Computation callee : callees) {
    if (!IsFollowed(callee)) continue;
    for (int64_t k = 0; k < callee.parameter_count(); ++k) RejectAll(callee.parameter(k));
  }
  return true;
}

bool HostBuffers::PassTuple(Instruction user, int64_t k) {
  // All operands with the first one.
  int64_t before = 0;
  for (int64_t each = 0; k == 0 && each < user.operand_count(); ++each) {
    PassOperand(user, each, user, before);
    before += user.operand(each).shape().leaf_count();
  }
  return true;
}

bool HostBuffers::PassElement(Instruction user, int64_t /*k*/) {
  const Instruction tuple = user.operand(0);
  const int64_t before = LeavesBefore(tuple.shape(), user.int_attr(Attr::kIndex));
  for (int64_t leaf = 0; leaf < user.shape().leaf_count(); ++leaf) {
    if (defined_[First(user) + leaf] == 0) PassOn(tuple, before + leaf, user, leaf, 1);
  }
  return true;
}

bool HostBuffers::PassWhole(Instruction user, int64_t k) {
  PassOperand(user, k, user, 0);
  return true;
}

bool HostBuffers::PassBitcast(Instruction user, int64_t k) { return PassesArraysOn(user) && PassWhole(user, k); }

bool HostBuffers::PassUpdate(Instruction user, int64_t k) {
  if (k == 0) return PassWhole(user, k);
  if (k != 1 || IsDefinedOnDevice(user.operand(k))) return false;
  updates_.emplace_back(First(user.operand(k)), First(user));
  return true;
}

bool HostBuffers::PassLoop(Instruction user, int64_t k) {
  for (Computation callee : user.called_computations()) {
    PassOn(user, 0, callee.parameter(0), 0, user.shape().leaf_count());
  }
  return PassWhole(user, k);
}

bool HostBuffers::PassCall(Instruction user, int64_t k) {
  PassOperand(user, k, user.called_computations()[0].parameter(k), 0);
  return true;
}

bool HostBuffers::PassBranch(Instruction user, int64_t k) {
  if (k == 0) return false;
  PassOperand(user, k, user.called_computations()[static_cast<size_t>(k - 1)].parameter(0), 0);
  return true;
}

void HostBuffers::FollowOperands(Instruction user) {
  using Pass = bool (HostBuffers::*)(Instruction, int64_t);
  static constexpr OpcodeRow<Pass> kRows[] = {
      {Opcode::kTuple, &HostBuffers::PassTuple},
      {Opcode::kGetTupleElement, &HostBuffers::PassElement},
      {Opcode::kOptimizationBarrier, &HostBuffers::PassWhole},
      {Opcode::kBitcast, &HostBuffers::PassBitcast},
      {Opcode::kDynamicUpdateSlice, &HostBuffers::PassUpdate},
      {Opcode::kWhile, &HostBuffers::PassLoop},
      {Opcode::kCall, &HostBuffers::PassCall},
      {Opcode::kConditional, &HostBuffers::PassBranch},
  };
  static constexpr auto kPass = MakeOpcodeHandlers<Pass>(kRows);
  const Opcode opcode = user.opcode();
  if (CallsSequentialCode(opcode) && RejectsCall(user)) return;
  if (IsMoveToHost(user) && IsReplaceableMove(user)) seeds_.push_back(First(user));
  const Pass pass = kPass[static_cast<size_t>(opcode)];
  for (int64_t k = 0; k < user.operand_count(); ++k) {
    if (pass != nullptr && (this->*pass)(user, k)) continue;
    if (!ReadsFromHost(user, k)) RejectAll(user.operand(k));
  }
}

void HostBuffers::FollowRoot(Computation computation, const CallGraph& calls) {
  const Instruction root = computation.root();
  const int64_t leaves = root.shape().leaf_count();
  if (computation.is_entry()) {
    std::vector<Shape> placed;
    if (module_.header().entry_layout) placed = Leaves(module_.header().entry_layout->result);
    for (int64_t leaf = 0; leaf < leaves; ++leaf) {
      const auto k = static_cast<size_t>(leaf);
      if (k >= placed.size() || !IsPlacedOnHost(placed[k])) Reject(First(root) + static_cast<uint32_t>(leaf));
    }
    return;
  }
  for (const CallSite& site : calls.caller_callsites(computation)) {
    const Instruction caller = module_.instruction(site.caller);
    if (caller.opcode() == Opcode::kWhile && caller.computation_attr(Attr::kCondition) == computation) continue;
    if (!IsFollowed(caller.parent())) continue;
    if (IsDefinedOnDevice(root)) {
      roots_.emplace_back(computation, First(caller));
    } else {
      PassOn(root, 0, caller, 0, leaves);
    }
  }
}

// Rejects leaves whose shape cannot be in another memory.
void HostBuffers::CheckShapes() {
  for (Computation c : computations_) {
    for (Instruction i : c.instructions()) {
      uint32_t leaf = First(i);
      const auto check = [&](Shape shape) {
        const bool placed = shape.IsArray() && shape.has_layout() &&
                            (shape.layout()->memory_space() == 0 || shape.layout()->memory_space() == host_);
        if (!placed && defined_[leaf] == 0) Reject(leaf);
        ++leaf;
      };
      if (!i.shape().IsTuple()) {
        check(i.shape());
      } else {
        for (Shape shape : Leaves(i.shape())) check(shape);
      }
    }
  }
}

// Marks the buffers that are reached from marked ones, from updates to what they are written to or backward.
void HostBuffers::Spread(std::vector<uint8_t>* marked, bool forward) const {
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  edges.reserve(updates_.size());
  for (const auto& [update, target] : updates_) {
    const uint32_t from = Find(update), to = Find(target);
    edges.emplace_back(forward ? from : to, forward ? to : from);
  }
  std::sort(edges.begin(), edges.end());
  std::vector<uint32_t> worklist;
  for (const auto& edge : edges) {
    if ((*marked)[edge.first] != 0) worklist.push_back(edge.first);
  }
  while (!worklist.empty()) {
    const uint32_t buffer = worklist.back();
    worklist.pop_back();
    for (auto edge = std::lower_bound(edges.begin(), edges.end(), std::make_pair(buffer, uint32_t{0}));
         edge != edges.end() && edge->first == buffer; ++edge) {
      if ((*marked)[edge->second] != 0) continue;
      (*marked)[edge->second] = 1;
      worklist.push_back(edge->second);
    }
  }
}

void HostBuffers::Choose() {
  std::vector<uint8_t> rejected(parents_.size(), 0);
  for (uint32_t leaf : rejected_) rejected[Find(leaf)] = 1;
  Spread(&rejected, /*forward=*/false);
  on_host_.assign(parents_.size(), 0);
  for (uint32_t leaf : seeds_) {
    if (rejected[Find(leaf)] == 0) on_host_[Find(leaf)] = 1;
  }
  Spread(&on_host_, /*forward=*/true);
}

uint32_t HostBuffers::Find(uint32_t leaf) const {
  while (parents_[leaf] != leaf) {
    parents_[leaf] = parents_[parents_[leaf]];
    leaf = parents_[leaf];
  }
  return leaf;
}

bool HostBuffers::IsOnHost(Instruction i, int64_t leaf) const {
  if (i.id().value >= first_.size() || First(i) == kNone) return false;
  const uint32_t at = First(i) + static_cast<uint32_t>(leaf);
  return defined_[at] == 0 && on_host_[Find(at)] != 0;
}

bool HostBuffers::IsDefinedOnDevice(Instruction i) const {
  return i.shape().IsArray() && i.id().value < first_.size() && First(i) != kNone && defined_[First(i)] != 0;
}

std::vector<HostBuffers::Entrance> HostBuffers::entrances() const {
  std::vector<Entrance> entrances;
  for (const Arrival& arrival : arrivals_) {
    if (on_host_[Find(arrival.leaf)] != 0) entrances.push_back(arrival.entrance);
  }
  return entrances;
}

std::vector<Computation> HostBuffers::roots_to_copy() const {
  std::vector<Computation> computations;
  for (const auto& [computation, leaf] : roots_) {
    if (on_host_[Find(leaf)] == 0) continue;
    if (computations.empty() || computations.back() != computation) computations.push_back(computation);
  }
  return computations;
}

}  // namespace hlokit

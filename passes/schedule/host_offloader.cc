// SPDX-License-Identifier: Apache-2.0
// Keeps arrays in the memory of the host between the calls MoveToHost and MoveToDevice.
//
// In the memory of the host are the results of MoveToHost, and of dynamic-update-slices of such arrays or with them.
// They may be read by further dynamic-update-slices, by MoveToDevice, and by dynamic-slices whose result is moved to
// the device. Arrays that are connected by these are moved together, or not at all if any has another user.
#include <numeric>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/builder/builder.h"
#include "ir/graph/traversal.h"
#include "passes/analysis/call_graph.h"
#include "passes/annotations/annotations.h"
#include "passes/rewrite/dead_operands.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/schedule/host_memory.h"

namespace hlokit {
namespace {

bool OnlyMovesToDevice(Instruction slice) {
  if (slice.is_root() || HasControlEdges(slice) || !slice.has_users()) return false;
  for (const auto& use : slice.uses()) {
    if (!MovesToDevice(use.user) || HasControlEdges(use.user)) return false;
  }
  return true;
}

// The arrays of one computation that can be in the memory of the host.
class HostArrays {
 public:
  explicit HostArrays(Computation computation) {
    for (InstructionId id : PostOrder(computation)) {
      const Instruction i = computation.module().instruction(id);
      const bool update = i.opcode() == Opcode::kDynamicUpdateSlice;
      if (!MovesToHost(i) && !(update && (Number(i.operand(0)) >= 0 || Number(i.operand(1)) >= 0))) continue;
      numbers_[id.value] = static_cast<int64_t>(arrays_.size());
      arrays_.push_back(i);
    }
    parents_.resize(arrays_.size());
    std::iota(parents_.begin(), parents_.end(), 0);
    std::vector<uint8_t> bad(arrays_.size(), 0);
    for (size_t n = 0; n < arrays_.size(); ++n) {
      bad[n] = !Admits(arrays_[n]);
      for (const auto& use : arrays_[n].uses()) {
        const int64_t user = Number(use.user);
        if (user >= 0 && use.user.opcode() == Opcode::kDynamicUpdateSlice) Join(static_cast<int64_t>(n), user);
      }
    }
    group_is_bad_.assign(arrays_.size(), 0);
    for (size_t n = 0; n < arrays_.size(); ++n) {
      if (bad[n] != 0) group_is_bad_[static_cast<size_t>(Find(static_cast<int64_t>(n)))] = 1;
    }
  }

  // Returns those to move, operands before users.
  std::vector<Instruction> Movable() {
    std::vector<Instruction> movable;
    for (size_t n = 0; n < arrays_.size(); ++n) {
      if (group_is_bad_[static_cast<size_t>(Find(static_cast<int64_t>(n)))] == 0) movable.push_back(arrays_[n]);
    }
    return movable;
  }

 private:
  // Returns -1 for other instructions.
  int64_t Number(Instruction i) const {
    const auto at = numbers_.find(i.id().value);
    return at == numbers_.end() ? -1 : at->second;
  }
  // Returns true if all users may read the array from the memory of the host.
  bool Admits(Instruction array) const {
    const bool device = array.shape().has_layout() && array.shape().layout()->memory_space() == 0;
    if (!device || array.is_root() || HasControlEdges(array) || array.has(Attr::kSharding)) return false;
    for (const auto& [user, index] : array.uses()) {
      const Opcode opcode = user.opcode();
      if (MovesToDevice(user) && !HasControlEdges(user)) continue;
      if (opcode == Opcode::kDynamicUpdateSlice && index < 2) continue;
      if (opcode == Opcode::kDynamicSlice && index == 0 && OnlyMovesToDevice(user)) continue;
      return false;
    }
    return true;
  }
  int64_t Find(int64_t n) {
    while (parents_[static_cast<size_t>(n)] != n) {
      int64_t& parent = parents_[static_cast<size_t>(n)];
      parent = parents_[static_cast<size_t>(parent)];
      n = parent;
    }
    return n;
  }
  void Join(int64_t a, int64_t b) { parents_[static_cast<size_t>(Find(a))] = Find(b); }

  std::vector<Instruction> arrays_;
  absl::flat_hash_map<uint32_t, int64_t> numbers_;  // by instruction
  std::vector<int64_t> parents_;
  std::vector<uint8_t> group_is_bad_;  // by its representative
};

class HostOffloader {
 public:
  HostOffloader(Module* module, int64_t host_memory_space) : module_(*module), host_memory_space_(host_memory_space) {}

  int64_t Run(Computation computation) {
    const std::vector<Instruction> arrays = HostArrays(computation).Movable();
    int64_t offloaded = 0;
    for (Instruction array : arrays) {
      if (array.opcode() == Opcode::kDynamicUpdateSlice) Update(array);
    }
    for (Instruction array : arrays) {
      if (array.opcode() != Opcode::kDynamicUpdateSlice) {
        Store(array);
        ++offloaded;
      } else {
        Load(array.id());
      }
    }
    return offloaded;
  }

 private:
  Shape InHost(Shape array) {
    ShapeTable& shapes = module_.context().shapes;
    LayoutExtras extras;
    if (array.layout()->extras != nullptr) extras = *array.layout()->extras;
    extras.memory_space = host_memory_space_;
    return shapes.WithLayout(array, shapes.Layout(array.layout()->minor_to_major, extras));
  }
  bool IsInHost(Instruction i) const {
    return i.shape().has_layout() && i.shape().layout()->memory_space() == host_memory_space_;
  }
  InstructionId Copy(InstructionId array, Shape shape, InstructionId before, MetadataId metadata) {
    Builder builder(&module_, before);
    builder.SetMetadata(metadata);
    return builder.Make(Opcode::kCopy, shape, {array});
  }

  // Lets a dynamic-update-slice write to the memory of the host, from that of the device where it can.
  void Update(Instruction update) {
    const InstructionId id = update.id();
    const Instruction buffer = update.operand(0), data = update.operand(1);
    if (!IsInHost(buffer) && !MovesToHost(buffer)) {
      module_.ReplaceOperand(id, 0, Copy(buffer.id(), InHost(buffer.shape()), id, buffer.metadata_id()));
    }
    if (MovesToHost(data)) {
      module_.ReplaceOperand(id, 1, data.operand(0).id());
      if (data.has_users()) {
        MergeMetadata(module_, data.id(), id);
      } else {
        unused_[data.id().value] = id;
      }
    }
    module_.SetShape(id, InHost(update.shape()));
  }

  // Replaces a MoveToHost by a copy, unless only updates have used it.
  void Store(Instruction move) {
    if (const auto unused = unused_.find(move.id().value); unused != unused_.end()) {
      EraseDead(module_, move.id(), unused->second);
      return;
    }
    const InstructionId copy = Copy(move.operand(0).id(), InHost(move.shape()), move.id(), move.metadata_id());
    Replace(module_, move.id(), copy);
    Load(copy);
  }

  // Replaces the MoveToDevice of an array, and of slices of it.
  void Load(InstructionId array) {
    for (Instruction user : module_.instruction(array).users()) {
      if (user.opcode() == Opcode::kDynamicSlice) {
        for (Instruction move : user.users()) Replace(module_, move.id(), user.id());
      } else if (user.opcode() == Opcode::kCustomCall) {
        Replace(module_, user.id(), Copy(array, user.shape(), user.id(), user.metadata_id()));
      }
    }
  }

  Module& module_;
  const int64_t host_memory_space_;
  // Moves without users, by instruction: the last update that reads the operand instead.
  absl::flat_hash_map<uint32_t, InstructionId> unused_;
};

bool IsMove(Instruction i, std::string_view target) {
  return i.opcode() == Opcode::kCustomCall && i.operand_count() == 1 &&
         i.string_attr(Attr::kCustomCallTarget) == target && i.operand(0).shape() == i.shape();
}

}  // namespace

bool MovesToHost(Instruction i) { return IsMove(i, "MoveToHost"); }
bool MovesToDevice(Instruction i) { return IsMove(i, "MoveToDevice"); }

absl::StatusOr<int64_t> OffloadToHost(Module& module, int64_t host_memory_space) {
  if (module.header().is_scheduled || !module.entry().valid()) return 0;
  const CallGraph calls(module);
  const ComputationRoles roles = RolesOf(module);
  int64_t offloaded = 0;
  for (Computation c : module.computations()) {
    if (!calls.IsSequential(c) || roles.async[c.id().value] != 0) continue;
    offloaded += HostOffloader(&module, host_memory_space).Run(c);
  }
  return offloaded;
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
// A value for each instruction of one computation.
#ifndef HLOKIT_IR_GRAPH_INSTRUCTION_MAP_H_
#define HLOKIT_IR_GRAPH_INSTRUCTION_MAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit {

// Ids of a computation are mostly contiguous: then an array over their range. Passes that add instructions to many
// computations leave them with ids far apart: then a hash map, so that memory and time depend on the instructions
// alone.
template <typename T>
class InstructionMap {
 public:
  InstructionMap() = default;
  // Every instruction has the value `initial`.
  explicit InstructionMap(Computation computation, T initial = T()) {
    Build(
        [computation](auto visit) {
          for (Instruction i : computation.instructions()) visit(i.id());
        },
        initial);
  }
  // Instructions of one computation, each once.
  explicit InstructionMap(absl::Span<const InstructionId> ids, T initial = T()) {
    Build(
        [ids](auto visit) {
          for (const InstructionId id : ids) visit(id);
        },
        initial);
  }

  // The instruction must be in the map.
  T& operator[](InstructionId id) { return values_[IndexOf(id)]; }
  const T& operator[](InstructionId id) const { return values_[IndexOf(id)]; }

  // Returns null for an instruction that is not in the map.
  T* Find(InstructionId id) {
    if (range_ != 0) {
      const uint32_t at = id.value - low_;
      return at < range_ && (is_in_map_.empty() || is_in_map_[at]) ? &values_[at] : nullptr;
    }
    const auto found = index_.find(id.value);
    return found == index_.end() ? nullptr : &values_[found->second];
  }

 private:
  static constexpr size_t kMaxIdsPerInstruction = 16;
  static constexpr size_t kMinIds = 256;

  // `for_each(visit)` calls visit(id) for each instruction.
  template <typename ForEach>
  void Build(ForEach for_each, const T& initial) {
    uint32_t low = 0xffffffffu, high = 0;
    size_t count = 0;
    for_each([&](InstructionId id) {
      low = std::min(low, id.value);
      high = std::max(high, id.value);
      ++count;
    });
    if (count == 0) return;
    low_ = low;
    const size_t range = size_t{high} - low + 1;
    if (range <= kMaxIdsPerInstruction * count + kMinIds) {
      range_ = range;
      values_.assign(range, initial);
      if (range == count) return;
      is_in_map_.assign(range, false);
      for_each([&](InstructionId id) { is_in_map_[id.value - low_] = true; });
      return;
    }
    values_.assign(count, initial);
    index_.reserve(count);
    uint32_t next = 0;
    for_each([&](InstructionId id) { index_.emplace(id.value, next++); });
  }

  size_t IndexOf(InstructionId id) const {
    return range_ != 0 ? id.value - low_ : size_t{index_.find(id.value)->second};
  }

  std::vector<T> values_;  // by id from low_, or by index_
  uint32_t low_ = 0;
  size_t range_ = 0;             // 0: index_ is used
  std::vector<bool> is_in_map_;  // by id from low_; empty: all are
  absl::flat_hash_map<uint32_t, uint32_t> index_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_INSTRUCTION_MAP_H_

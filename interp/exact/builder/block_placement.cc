// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/builder/block_placement.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "interp/exact/program/view.h"
#include "ir/core/saturating.h"

namespace hlokit::interp {
namespace {

// Larger values, which no system has memory for, count as such ones, so that sums stay below 2^63.
constexpr int64_t kMaxBytes = int64_t{1} << 40;

// Returns the first step where most is live, and how much.
std::pair<uint32_t, int64_t> MaxLive(const std::vector<PlacedValue>& values, const std::vector<OutsideValue>& outside,
                                     uint32_t steps) {
  std::vector<int64_t> change(steps + 2, 0);
  for (const PlacedValue& v : values) {
    change[v.begin] += v.bytes;
    change[std::min(v.end, steps) + 1] -= v.bytes;
  }
  for (const OutsideValue& v : outside) change[v.begin] += v.bytes;
  int64_t live = 0, max = 0;
  uint32_t at = 0;
  for (uint32_t t = 0; t <= steps; ++t) {
    live += change[t];
    if (live > max) {
      max = live;
      at = t;
    }
  }
  return {at, max};
}

// Places the values in this order.
void PlaceInOrder(const std::vector<uint32_t>& order, std::vector<PlacedValue>* values) {
  std::vector<uint32_t> placed;  // by offset
  for (uint32_t v : order) {
    PlacedValue& value = (*values)[v];
    int64_t best = -1, best_gap = 0, at = 0;
    for (uint32_t p : placed) {
      const PlacedValue& other = (*values)[p];
      if (other.end < value.begin || other.begin > value.end) continue;
      const int64_t gap = other.offset - at;
      if (gap >= value.bytes && (best < 0 || gap < best_gap)) {
        best = at;
        best_gap = gap;
      }
      at = std::max(at, other.offset + other.bytes);
    }
    value.offset = best >= 0 ? best : at;
    const auto after = std::upper_bound(placed.begin(), placed.end(), value.offset,
                                        [&](int64_t offset, uint32_t p) { return offset < (*values)[p].offset; });
    placed.insert(after, v);
  }
}

// Returns, by step, the end of what this and later steps need of the arena.
std::vector<int64_t> NeededFrom(const std::vector<PlacedValue>& values, uint32_t steps) {
  std::vector<int64_t> needed(steps + 1, 0);
  for (const PlacedValue& v : values) {
    int64_t& end = needed[std::min(v.end, steps)];
    end = std::max(end, v.offset + v.bytes);
  }
  for (uint32_t t = steps; t-- > 0;) needed[t] = std::max(needed[t], needed[t + 1]);
  return needed;
}

// Returns the most memory that is held at one time, if the arena keeps what it had, or gives back what is not needed.
int64_t MaxHeld(const std::vector<PlacedValue>& values, const std::vector<OutsideValue>& outside, uint32_t steps,
                const std::vector<int64_t>* needed) {
  std::vector<int64_t> end(steps + 1, 0), beside(steps + 1, 0);
  for (const PlacedValue& v : values) end[v.begin] = std::max(end[v.begin], v.offset + v.bytes);
  for (const OutsideValue& v : outside) beside[v.begin] += v.bytes;
  int64_t held = 0, touched = 0, results = 0;
  for (uint32_t t = 0; t <= steps; ++t) {
    touched = std::max(touched, end[t]);
    results += beside[t];
    // Memory goes back where a result begins.
    if (needed != nullptr && beside[t] != 0) touched = std::min(touched, (*needed)[t]);
    held = std::max(held, touched + results);
  }
  return held;
}

}  // namespace

Placement PlaceValues(std::vector<PlacedValue>* values, std::vector<OutsideValue> outside, uint32_t steps) {
  for (PlacedValue& value : *values) value.bytes = std::min(value.bytes, kMaxBytes);
  for (OutsideValue& value : outside) value.bytes = std::min(value.bytes, kMaxBytes);
  // What gives memory back takes some time, as does taking it again in the next run.
  constexpr double kMaxKept = 1.05;
  constexpr size_t kMaxForAllOrders = 1024;
  const std::vector<PlacedValue>& v = *values;
  const auto [peak, live] = MaxLive(v, outside, steps);
  uint32_t first_outside = steps;
  for (const OutsideValue& value : outside) first_outside = std::min(first_outside, value.begin);
  using Key = std::pair<int64_t, int64_t>;  // the largest first
  const std::function<Key(uint32_t)> keys[] = {
      [&](uint32_t i) { return Key(v[i].bytes, 0); },
      // What is live where most is, or when values outside begin, or later, below the rest.
      [&, at = peak](uint32_t i) { return Key(v[i].end >= at, v[i].bytes); },
      [&](uint32_t i) { return Key(v[i].end >= first_outside, v[i].bytes); },
      [&](uint32_t i) { return Key(v[i].end - v[i].begin, v[i].bytes); },
      [&](uint32_t i) { return Key(v[i].end, v[i].bytes); },
      [&](uint32_t i) { return Key(v[i].end / std::max(steps / 4, 1u), v[i].bytes); },
      [&](uint32_t i) { return Key(SaturatingMultiply(int64_t{v[i].end} - v[i].begin + 1, v[i].bytes), 0); },
      [&, at = peak](uint32_t i) { return Key(v[i].begin <= at && v[i].end >= at ? steps + 1 : v[i].end, v[i].bytes); },
  };
  Placement best;
  best.planned_bytes = -1;
  std::vector<PlacedValue> placed = *values;
  for (const auto& key : keys) {
    std::vector<uint32_t> order(values->size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) > key(b); });
    PlaceInOrder(order, &placed);
    Placement made;
    made.live_bytes = live;
    made.planned_bytes = MaxHeld(placed, outside, steps, nullptr);
    const bool is_good = static_cast<double>(made.planned_bytes) <= kMaxKept * static_cast<double>(live);
    if (!is_good && !outside.empty()) {
      made.needed = NeededFrom(placed, steps);
      const int64_t held = MaxHeld(placed, outside, steps, &made.needed);
      made.releases = held < made.planned_bytes;
      made.planned_bytes = held;
    }
    if (is_good || best.planned_bytes < 0 || made.planned_bytes < best.planned_bytes) {
      best = std::move(made);
      *values = placed;
    }
    if (is_good) break;
    if (values->size() > kMaxForAllOrders) break;
  }
  return best;
}

namespace {

// The values of a computation's slots.
class SlotValues {
 public:
  explicit SlotValues(CompiledComputation* computation)
      : r_(*computation), steps_(static_cast<uint32_t>(r_.thunks.size())), value_of_(r_.slots.size(), kNone) {}

  void Find();
  void Assign(bool is_placed);

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr uint32_t kArgument = 0xfffffffeu;  // memory of an argument, which is counted apart
  static bool IsValue(uint32_t value) { return value < kArgument; }
  struct Value {
    PlacedValue life;               // bytes as the slot has them
    uint32_t slot = 0;              // the first
    bool is_result = false;         // of the program, outside of the arena
    bool escapes = false;           // what is called may hold it
    bool in_argument = false;       // in the memory of an argument, if that is donated
    std::vector<uint32_t> reusing;  // slots that take over its memory
  };

  const MemoryUsage* LargestCallee(const Thunk& thunk) const;
  void Place();

  CompiledComputation& r_;
  const uint32_t steps_;
  std::vector<uint32_t> value_of_;
  std::vector<Value> values_;
};

void SlotValues::Find() {
  for (uint32_t slot : r_.parameters) {
    if (slot != kNoSlot) value_of_[slot] = kArgument;
  }
  std::vector<bool> in_argument(r_.slots.size());
  for (uint32_t t = 0; t < steps_; ++t) {
    const Thunk& thunk = r_.thunks[t];
    const bool is_kernel = thunk.kind == ThunkKind::kKernel;
    if (!is_kernel) {
      for (uint32_t i = 0; i < thunk.operand_count; ++i) {
        const uint32_t value = value_of_[r_.operands[thunk.operand_begin + i].slot];
        if (IsValue(value)) values_[value].escapes = true;
      }
    }
    for (uint32_t i = 0; is_kernel && i < thunk.reuse_count; ++i) {
      const InPlaceReuse& reuse = r_.reuses[thunk.reuse_begin + i];
      uint32_t& from = value_of_[r_.operands[thunk.operand_begin + reuse.operand].slot];
      const uint32_t slot = thunk.result_begin + reuse.result;
      if (from == kArgument) {
        // The run takes the first operand that is not held elsewhere, which is not known here.
        in_argument[slot] = true;
        if (value_of_[slot] != kNone) values_[value_of_[slot]].in_argument = true;
        continue;
      }
      if (from == kNone || value_of_[slot] != kNone || r_.slots[slot].result != kNoResult) continue;
      value_of_[slot] = std::exchange(from, kNone);
      Value& value = values_[value_of_[slot]];
      value.reusing.push_back(slot);
      value.in_argument = value.in_argument || in_argument[slot];
    }
    for (uint32_t i = 0; i < thunk.result_count; ++i) {
      const uint32_t slot = thunk.result_begin + i;
      const SlotInfo& info = r_.slots[slot];
      if (value_of_[slot] != kNone || info.constant != nullptr) continue;
      value_of_[slot] = static_cast<uint32_t>(values_.size());
      // What is called counts its results while it runs.
      const uint32_t begin = is_kernel || thunk.kind == ThunkKind::kCollective ? t : t + 1;
      const bool is_result = is_kernel && info.result != kNoResult;
      values_.push_back({{info.bytes, begin, steps_, 0}, slot, is_result, !is_kernel, in_argument[slot], {}});
    }
    for (uint32_t i = 0; i < thunk.release_count; ++i) {
      uint32_t& value = value_of_[r_.releases[thunk.release_begin + i]];
      if (IsValue(value)) values_[value].life.end = t;
      value = kNone;
    }
  }
}

const MemoryUsage* SlotValues::LargestCallee(const Thunk& thunk) const {
  const MemoryUsage* most = nullptr;
  const auto look = [&](const CompiledComputation* callee) {
    if (callee != nullptr && (most == nullptr || callee->memory.live_bytes > most->live_bytes)) most = &callee->memory;
  };
  if (thunk.kind == ThunkKind::kCall) look(static_cast<const CallParams*>(thunk.params)->callee);
  if (thunk.kind == ThunkKind::kWhile) {
    look(static_cast<const WhileParams*>(thunk.params)->condition);
    look(static_cast<const WhileParams*>(thunk.params)->body);
  }
  if (thunk.kind == ThunkKind::kConditional) {
    for (const CompiledComputation* branch : static_cast<const ConditionalParams*>(thunk.params)->branches)
      look(branch);
  }
  return most;
}

void SlotValues::Place() {
  constexpr size_t kMaxValues = 2048;  // placed in quadratic time
  std::vector<PlacedValue> placed;
  std::vector<uint32_t> numbers;
  std::vector<OutsideValue> outside;
  for (uint32_t i = 0; i < values_.size(); ++i) {
    const Value& value = values_[i];
    if (value.is_result) {
      outside.push_back({value.life.bytes, value.life.begin});
    } else if (!value.escapes && BufferPool::IsPlaced(value.life.bytes)) {
      placed.push_back(value.life);
      placed.back().bytes = BufferPool::PlacedBytes(std::min(value.life.bytes, kMaxBytes));
      numbers.push_back(i);
    }
  }
  if (placed.size() > kMaxValues) return;
  const Placement placement = PlaceValues(&placed, std::move(outside), steps_);
  for (size_t i = 0; i < placed.size(); ++i) {
    const Value& value = values_[numbers[i]];
    r_.slots[value.slot].offset = placed[i].offset;
    for (uint32_t slot : value.reusing) r_.slots[slot].offset = placed[i].offset;
  }
  if (placement.releases) {
    for (const Value& value : values_) {
      if (value.is_result) r_.slots[value.slot].arena_end = placement.needed[value.life.begin];
    }
  }
  // What is not placed takes what is live of it.
  r_.memory.planned_bytes =
      std::max(r_.memory.live_bytes, SaturatingAdd(r_.memory.planned_bytes, placement.planned_bytes));
}

void SlotValues::Assign(bool is_placed) {
  // Changes of what is live: all; what every run takes; what has no place.
  struct Change {
    int64_t live = 0, required = 0, unplaced = 0;
  };
  std::vector<Change> changes(steps_ + 2);
  const auto add = [&](uint32_t begin, uint32_t end, const Change& change) {
    for (const auto& [at, sign] : {std::pair(begin, 1), {end + 1, -1}}) {
      changes[at].live += sign * change.live;
      changes[at].required += sign * change.required;
      changes[at].unplaced += sign * change.unplaced;
    }
  };
  for (const Value& value : values_) {
    const int64_t bytes = std::min(value.life.bytes, kMaxBytes);
    const bool has_place = value.is_result || (!value.escapes && BufferPool::IsPlaced(bytes));
    const bool may_take_none = value.is_result || value.escapes || value.in_argument;
    add(value.life.begin, value.life.end, {bytes, may_take_none ? 0 : bytes, has_place ? 0 : bytes});
  }
  for (uint32_t t = 0; t < steps_; ++t) {
    const MemoryUsage* const callee = LargestCallee(r_.thunks[t]);
    if (callee == nullptr) continue;
    const int64_t bytes = std::min(callee->live_bytes, kMaxBytes);
    add(t, t, {bytes, 0, bytes});
  }
  MemoryUsage& memory = r_.memory;
  Change now;
  for (uint32_t t = 0; t < steps_; ++t) {
    now.live += changes[t].live;
    now.required += changes[t].required;
    now.unplaced += changes[t].unplaced;
    memory.live_bytes = std::max(memory.live_bytes, now.live);
    memory.planned_bytes = std::max(memory.planned_bytes, now.unplaced);
    if (now.required > memory.required_bytes) {
      memory.required_bytes = now.required;
      memory.at = r_.thunks[t].instruction;
    }
  }
  if (is_placed) {
    Place();
  } else {
    memory.planned_bytes = memory.live_bytes;
  }
}

}  // namespace

void AssignMemory(CompiledComputation* computation, bool is_placed) {
  SlotValues values(computation);
  values.Find();
  values.Assign(is_placed);
}

}  // namespace hlokit::interp

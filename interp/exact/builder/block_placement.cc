// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/builder/block_placement.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hlokit::interp {

int64_t PlaceValues(std::vector<PlacedValue>* values) {
  std::vector<uint32_t> order(values->size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const PlacedValue& x = (*values)[a];
    const PlacedValue& y = (*values)[b];
    return x.bytes != y.bytes ? x.bytes > y.bytes : a < b;
  });
  int64_t end = 0;
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
    end = std::max(end, value.offset + value.bytes);
    const auto after = std::upper_bound(placed.begin(), placed.end(), value.offset,
                                        [&](int64_t offset, uint32_t p) { return offset < (*values)[p].offset; });
    placed.insert(after, v);
  }
  return end;
}

void PlanPlacement(CompiledComputation* computation) {
  CompiledComputation& r = *computation;
  constexpr uint32_t kNone = 0xffffffffu;
  constexpr size_t kMaxValues = 2048;  // placed in quadratic time
  const uint32_t steps = static_cast<uint32_t>(r.thunks.size());
  std::vector<PlacedValue> values;
  std::vector<bool> escapes;
  std::vector<uint32_t> value_of(r.slots.size(), kNone);
  std::vector<std::pair<uint32_t, uint32_t>> slots;  // and their values
  for (uint32_t t = 0; t < steps; ++t) {
    const Thunk& thunk = r.thunks[t];
    if (thunk.kind != ThunkKind::kKernel) {
      for (uint32_t i = 0; i < thunk.operand_count; ++i) {
        const uint32_t value = value_of[r.operands[thunk.operand_begin + i].slot];
        if (value != kNone) escapes[value] = true;
      }
      continue;
    }
    for (uint32_t i = 0; i < thunk.reuse_count; ++i) {
      const InPlaceReuse& reuse = r.reuses[thunk.reuse_begin + i];
      uint32_t& from = value_of[r.operands[thunk.operand_begin + reuse.operand].slot];
      const uint32_t slot = thunk.result_begin + reuse.result;
      if (from == kNone || value_of[slot] != kNone || r.slots[slot].result != kNoResult) continue;
      value_of[slot] = std::exchange(from, kNone);
    }
    for (uint32_t i = 0; i < thunk.result_count; ++i) {
      const uint32_t slot = thunk.result_begin + i;
      const SlotInfo& info = r.slots[slot];
      if (value_of[slot] != kNone || info.result != kNoResult || !BufferPool::IsPlaced(info.bytes)) continue;
      value_of[slot] = static_cast<uint32_t>(values.size());
      slots.emplace_back(slot, value_of[slot]);
      values.push_back({BufferPool::PlacedBytes(info.bytes), t, steps, 0});
      escapes.push_back(false);
    }
    for (uint32_t i = 0; i < thunk.release_count; ++i) {
      uint32_t& value = value_of[r.releases[thunk.release_begin + i]];
      if (value != kNone) values[value].end = t;
      value = kNone;
    }
  }
  if (values.size() > kMaxValues) return;
  std::vector<PlacedValue> placed;
  std::vector<uint32_t> placed_slots;
  for (const auto& [slot, value] : slots) {
    if (escapes[value]) continue;
    placed.push_back(values[value]);
    placed_slots.push_back(slot);
  }
  PlaceValues(&placed);
  for (size_t i = 0; i < placed.size(); ++i) r.slots[placed_slots[i]].offset = placed[i].offset;
}

}  // namespace hlokit::interp

// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/vmem_interval_selection.h"

#include <algorithm>
#include <numeric>

namespace hlokit {
namespace {

constexpr double kSame = 1e-6;  // relative rounding error of times

struct Choice {
  std::vector<size_t> selected;
  double seconds = 0;
};

// Selects intervals in this order as long as they fit.
Choice SelectGreedily(absl::Span<const VmemInterval> intervals, absl::Span<const ScheduleSlot> slots,
                      const std::vector<size_t>& order) {
  std::vector<ScheduleSlot> remaining(slots.begin(), slots.end());
  Choice choice;
  for (size_t k : order) {
    const VmemInterval& interval = intervals[k];
    const auto begin = remaining.begin() + interval.from, end = remaining.begin() + interval.to + 1;
    if (std::any_of(begin, end, [&](const ScheduleSlot& slot) { return slot.capacity < interval.bytes; })) continue;
    std::for_each(begin, end, [&](ScheduleSlot& slot) { slot.capacity -= interval.bytes; });
    for (const VmemInterval::SavedTransfer& saved : interval.saved) {
      double& transfer = remaining[static_cast<size_t>(saved.slot)].transfer_seconds;
      transfer = std::max(0.0, transfer - saved.seconds);
    }
    choice.selected.push_back(k);
  }
  for (const ScheduleSlot& slot : remaining) choice.seconds += std::max(slot.compute_seconds, slot.transfer_seconds);
  return choice;
}

}  // namespace

std::vector<size_t> SelectVmemIntervals(absl::Span<const VmemInterval> intervals,
                                        absl::Span<const ScheduleSlot> slots) {
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto by_instructions = [&](size_t a, size_t b) {
    const int32_t of_a = intervals[a].to - intervals[a].from, of_b = intervals[b].to - intervals[b].from;
    return of_a != of_b ? of_a < of_b : intervals[a].from < intervals[b].from;
  };
  std::stable_sort(order.begin(), order.end(), by_instructions);
  Choice best = SelectGreedily(intervals, slots, order);
  if (best.selected.size() == intervals.size()) return best.selected;

  std::vector<int32_t> ran;  // by position: instructions up to it that generate code
  for (const ScheduleSlot& slot : slots) ran.push_back((ran.empty() ? 0 : ran.back()) + (slot.runs ? 1 : 0));
  const auto length = [&](size_t k) {
    return ran[static_cast<size_t>(intervals[k].to)] - ran[static_cast<size_t>(intervals[k].from)];
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (length(a) != length(b)) return length(a) < length(b);
    return intervals[a].bytes != intervals[b].bytes ? intervals[a].bytes > intervals[b].bytes
                                                    : intervals[a].from < intervals[b].from;
  });
  Choice other = SelectGreedily(intervals, slots, order);
  return other.seconds < best.seconds * (1 - kSame) ? other.selected : best.selected;
}

}  // namespace hlokit

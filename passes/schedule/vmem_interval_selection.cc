// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/vmem_interval_selection.h"

#include <algorithm>
#include <numeric>

namespace hlokit {
namespace {

constexpr double kSame = 1e-6;  // relative rounding error of times

struct Choice {
  std::vector<size_t> taken;
  double seconds = 0;
};

// Selects intervals in this order as long as they fit.
Choice Take(absl::Span<const VmemInterval> stays, absl::Span<const ScheduleSlot> places,
            const std::vector<size_t>& order) {
  std::vector<ScheduleSlot> left(places.begin(), places.end());
  Choice choice;
  for (size_t k : order) {
    const VmemInterval& stay = stays[k];
    const auto begin = left.begin() + stay.from, end = left.begin() + stay.to + 1;
    if (std::any_of(begin, end, [&](const ScheduleSlot& place) { return place.capacity < stay.bytes; })) continue;
    std::for_each(begin, end, [&](ScheduleSlot& place) { place.capacity -= stay.bytes; });
    for (const VmemInterval::SavedTransfer& spared : stay.saved) {
      double& transfer = left[static_cast<size_t>(spared.slot)].transfer_seconds;
      transfer = std::max(0.0, transfer - spared.seconds);
    }
    choice.taken.push_back(k);
  }
  for (const ScheduleSlot& place : left) choice.seconds += std::max(place.compute_seconds, place.transfer_seconds);
  return choice;
}

}  // namespace

std::vector<size_t> SelectVmemIntervals(absl::Span<const VmemInterval> stays, absl::Span<const ScheduleSlot> places) {
  std::vector<size_t> order(stays.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto by_instructions = [&](size_t a, size_t b) {
    const int32_t of_a = stays[a].to - stays[a].from, of_b = stays[b].to - stays[b].from;
    return of_a != of_b ? of_a < of_b : stays[a].from < stays[b].from;
  };
  std::stable_sort(order.begin(), order.end(), by_instructions);
  Choice best = Take(stays, places, order);
  if (best.taken.size() == stays.size()) return best.taken;

  std::vector<int32_t> ran;  // by position: instructions up to it that generate code
  for (const ScheduleSlot& place : places) ran.push_back((ran.empty() ? 0 : ran.back()) + (place.runs ? 1 : 0));
  const auto length = [&](size_t k) {
    return ran[static_cast<size_t>(stays[k].to)] - ran[static_cast<size_t>(stays[k].from)];
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (length(a) != length(b)) return length(a) < length(b);
    return stays[a].bytes != stays[b].bytes ? stays[a].bytes > stays[b].bytes : stays[a].from < stays[b].from;
  });
  Choice other = Take(stays, places, order);
  return other.seconds < best.seconds * (1 - kSame) ? other.taken : best.taken;
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/partition/halo.h"

#include <algorithm>
#include <limits>

#include "passes/sharding/partition/tiling_store.h"

namespace hlokit::spmd {
namespace {

int64_t FloorOfRatio(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

}  // namespace

int64_t HaloPlan::First(const HaloWindow& window, int64_t i) const {
  return FloorOfRatio(i * output_part * window.stride - window.low, window.base_dilation);
}

int64_t HaloPlan::Hole(const HaloWindow& window, int64_t i) const {
  return i * output_part * window.stride - window.low - First(window, i) * window.base_dilation;
}

HaloPlan PlanHalo(const HaloWindow& window, int64_t tiles) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  HaloPlan plan;
  plan.tiles = tiles;
  plan.input_part = CeilOfRatio(window.input, tiles);
  plan.output_part = CeilOfRatio(window.output, tiles);
  plan.dilated_width = std::max<int64_t>(plan.output_part - 1, 0) * window.stride + window.size;
  // What each device needs of elements that exist.
  struct Range {
    int64_t begin = 0, end = 0;
  };
  std::vector<Range> needed(static_cast<size_t>(tiles));
  int64_t fetch_begin = kNone, fetch_end = -kNone, begin = kNone, end = -kNone, start = kNone, hole = kNone;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t first = plan.First(window, i), holes = plan.Hole(window, i);
    plan.width = std::max(plan.width, FloorOfRatio(holes + plan.dilated_width - 1, window.base_dilation) + 1);
    const int64_t from = std::max(i * plan.output_part, window.begin);
    const int64_t to = std::min((i + 1) * plan.output_part, window.end);  // results that count
    if (from >= to) continue;
    const int64_t low =
        FloorOfRatio(from * window.stride - window.low + window.base_dilation - 1, window.base_dilation);
    const int64_t high =
        FloorOfRatio((to - 1) * window.stride - window.low + window.size - 1, window.base_dilation) + 1;
    const int64_t base = i * plan.input_part;
    plan.outside = plan.outside || low < 0 || high > window.input;
    plan.same_start = plan.same_start && (start == kNone || start == first - base);
    plan.same_hole = plan.same_hole && (hole == kNone || hole == holes);
    start = first - base;
    hole = holes;
    begin = std::min(begin, first - base);
    const int64_t clipped_low = std::max<int64_t>(low, 0), clipped_high = std::min(high, window.input);
    if (clipped_low >= clipped_high) continue;
    needed[static_cast<size_t>(i)] = {clipped_low - base, clipped_high - base};
    fetch_begin = std::min(fetch_begin, clipped_low - base);
    fetch_end = std::max(fetch_end, clipped_high - base);
  }
  if (begin == kNone) begin = 0;
  for (int64_t i = 0; i < tiles; ++i) {
    const bool counts = std::max(i * plan.output_part, window.begin) < std::min((i + 1) * plan.output_part, window.end);
    if (counts) end = std::max(end, plan.First(window, i) - i * plan.input_part + plan.width);
  }
  if (end == -kNone) end = begin + plan.width;
  if (fetch_begin == kNone || fetch_begin >= fetch_end) {
    // Nothing that exists is needed: any element stands for them.
    fetch_begin = 0;
    fetch_end = std::min<int64_t>(plan.input_part, 1);
  }
  plan.fetch_begin = fetch_begin;
  plan.fetch_end = fetch_end;
  plan.begin = std::min(begin, fetch_begin);
  plan.end = std::max(end, fetch_end);
  if (plan.input_part == 0) return plan;
  for (int64_t hop = FloorOfRatio(fetch_begin, plan.input_part); hop <= FloorOfRatio(fetch_end - 1, plan.input_part);
       ++hop) {
    const int64_t offset = hop * plan.input_part;
    HaloPlan::Piece piece;
    piece.hop = hop;
    piece.begin = kNone;
    piece.end = -kNone;
    for (const Range& range : needed) {
      const int64_t low = std::max(range.begin - offset, int64_t{0});
      const int64_t high = std::min(range.end - offset, plan.input_part);
      piece.needed.push_back(low < high);
      if (low >= high) continue;
      piece.begin = std::min(piece.begin, low);
      piece.end = std::max(piece.end, high);
    }
    if (piece.begin >= piece.end) continue;
    if (hop != 0) plan.exchanged += static_cast<double>(piece.end - piece.begin);
    plan.pieces.push_back(std::move(piece));
  }
  return plan;
}

}  // namespace hlokit::spmd

// SPDX-License-Identifier: Apache-2.0
// Plans how an array changes from one tiling to another: the sequence of four moves whose results have the fewest
// bytes. After Rink, Paszke, Vytiniotis, Schmid, "Memory-efficient array redistribution through portable collective
// communication", arXiv 2112.01075.
//
//   slice        a dimension gets more axes           no communication
//   permute      devices exchange whole parts         collective-permute
//   all-to-all   axes move between dimensions
//   all-gather   a dimension loses its minor axes
//
// Parts of a dimension that axes do not divide have bounds of their own for each number of tiles, so such axes move
// only where the bounds agree; otherwise the dimension is gathered and sliced.
#ifndef HLOKIT_PASSES_SHARDING_PARTITION_RESHARD_PLAN_H_
#define HLOKIT_PASSES_SHARDING_PARTITION_RESHARD_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/sharding/tiling.h"

namespace hlokit::spmd {

enum class MoveKind : uint8_t { kSlice, kPermute, kAllToAll, kAllGather };

// Axes that leave the minor end of dimension `from`, or arrive at that of dimension `to`; -1: neither.
struct AxesMove {
  int64_t from = -1;
  int64_t to = -1;
  AxisList axes;
};

struct ReshardStep {
  MoveKind kind;
  std::vector<AxesMove> moves;  // of different dimensions; none for a permute
  Tiling after;
};

struct ReshardPlan {
  std::vector<ReshardStep> steps;
  // Of the results of the collectives on one device, and a little for each step.
  double cost = 0;
  // The whole array is on every device in between, although source and target are tiled.
  bool rematerialized = false;
};

// Returns true if a dimension of this size has at least as much padding as elements over so many tiles.
inline bool IsMostlyPadding(int64_t size, int64_t tiles) {
  return size > 0 && ((size - 1) / tiles + 1) * tiles >= 2 * size;
}

// Returns a plan for an array of these sizes. Requires: both tilings are tiled or replicated, with the same manual axes
// (or none, if replicated), and both are unreduced along the same axes.
ReshardPlan PlanReshard(absl::Span<const int64_t> sizes, int64_t element_bytes, const Tiling& from, const Tiling& to);

}  // namespace hlokit::spmd

#endif  // HLOKIT_PASSES_SHARDING_PARTITION_RESHARD_PLAN_H_

// SPDX-License-Identifier: Apache-2.0
// The mesh of chips that a program runs on, and the links that a group of devices spans.
#ifndef HLOKIT_PASSES_TARGET_TOPOLOGY_H_
#define HLOKIT_PASSES_TARGET_TOPOLOGY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "passes/target/device_description.h"

namespace hlokit::tpu {

// Chips of one slice along each axis, and slices joined by the data-center network.
struct Topology {
  std::vector<int64_t> axes;
  int64_t slices = 1;

  int64_t ChipsPerSlice() const;
  int64_t Chips() const { return ChipsPerSlice() * slices; }
  bool Wraps(const DeviceDescription& machine, size_t axis) const;
};

// Parses "4x4x4", "16" (chips, arranged as nearly square as possible) or "2*16x16" (two slices). Returns an error for
// malformed text, more axes than the target has, or more chips than its largest slice.
absl::StatusOr<Topology> ParseTopology(const DeviceDescription& machine, std::string_view text);
// Returns the most nearly cubic arrangement of that many chips; several slices if they exceed the largest.
Topology TopologyFor(const DeviceDescription& machine, int64_t chips);
std::string ToString(const Topology& topology);

// The extent of a group of devices in the mesh. Device d is core d % devices_per_chip of chip d / devices_per_chip;
// chip numbers increase along the first axis first.
struct GroupSpan {
  struct Axis {
    int64_t chips = 1;  // along this axis
    int64_t span = 1;   // from the first to the last chip, gaps included
    bool wraps = false;
    size_t axis = 0;
  };
  std::vector<Axis> axes;  // axes with more than one chip
  int64_t chips = 1;       // chips of the group per slice
  int64_t slices = 1;
  int64_t devices = 1;
  bool regular = true;  // the group fills the product of its axes
};
GroupSpan SpanOf(const DeviceDescription& machine, const Topology& topology, absl::Span<const int64_t> devices);
// Returns the span of all devices.
GroupSpan SpanOfAll(const DeviceDescription& machine, const Topology& topology);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_TOPOLOGY_H_

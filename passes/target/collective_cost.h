// SPDX-License-Identifier: Apache-2.0
// Time of collectives on the torus, after "How to Scale Your Model": bidirectional rings over the axes of the group
// that wrap around, all at a time, lines over the others one after the other, and hop latencies that bound small
// messages; between slices over the data-center network. No time is below LowerBound().
#ifndef HLOKIT_PASSES_TARGET_COLLECTIVE_COST_H_
#define HLOKIT_PASSES_TARGET_COLLECTIVE_COST_H_

#include <cstdint>

#include "ir/graph/module_fwd.h"
#include "passes/target/device_description.h"
#include "passes/target/topology.h"

namespace hlokit::tpu {

enum class CollectiveKind : uint8_t { kAllGather, kReduceScatter, kAllReduce, kAllToAll, kPermute, kBroadcast };

struct CollectiveTime {
  double ici = 0;      // seconds on the links within slices
  double dcn = 0;      // seconds between slices
  double latency = 0;  // seconds for hops
  double total() const { return (ici > latency ? ici : latency) + dcn; }
};

// `bytes` is the size of the full array that the group holds together (gathered for an all-gather, before scattering
// for a reduce-scatter); for an all-to-all the bytes that one device holds; for a permute the bytes that one device
// sends.
CollectiveTime TimeOf(const DeviceDescription& machine, CollectiveKind kind, double bytes, const GroupSpan& span);

// Returns the time that no schedule of a collective beats: the bytes that a chip has to receive over all its links
// within the slice, those of a corner where axes do not wrap around, at their nominal rate.
double LowerBound(const DeviceDescription& machine, CollectiveKind kind, double bytes, const GroupSpan& span);

// Returns the bytes that a chip has to receive from the others of its slice, and as many it sends.
double ReceivedBytes(CollectiveKind kind, double bytes, const GroupSpan& span);

struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  double bytes = 0;
  GroupSpan span;
};
// Returns the communication of a collective instruction. Groups may name devices that the topology lacks.
Collective CollectiveOf(const DeviceDescription& machine, const Topology& topology, Instruction instruction);
// Returns the seconds at the nominal rates of the links, without hops: the baseline of its efficiency.
double IdealSeconds(const DeviceDescription& machine, const Collective& collective);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_COLLECTIVE_COST_H_

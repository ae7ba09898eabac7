// SPDX-License-Identifier: Apache-2.0
// How long collectives take on the torus, in the manner of "How to Scale Your Model": rings over each axis of the
// group, both ways where an axis wraps, and hops that bound small messages; between slices over the data-center
// network.
#ifndef HLOKIT_PASSES_TARGET_COLLECTIVE_COST_H_
#define HLOKIT_PASSES_TARGET_COLLECTIVE_COST_H_

#include <cstdint>

#include "ir/graph/module.h"
#include "passes/target/device_description.h"
#include "passes/target/topology.h"

namespace hlokit::tpu {

enum class CollectiveKind : uint8_t { kAllGather, kReduceScatter, kAllReduce, kAllToAll, kPermute, kBroadcast };

struct CollectiveTime {
  double ici = 0;      // seconds that bytes take on the links
  double dcn = 0;      // and between slices
  double latency = 0;  // hops
  double total() const { return (ici > latency ? ici : latency) + dcn; }
};

// `bytes`: of the full array that the group holds together (gathered for an all-gather, before scattering for a
// reduce-scatter); for an all-to-all what one device holds; for a permute what one device sends.
CollectiveTime TimeOf(const DeviceDescription& machine, CollectiveKind kind, double bytes, const GroupSpan& span);

struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  double bytes = 0;
  GroupSpan span;
};
// What a collective instruction moves. Groups that name devices the topology lacks count as if it had them.
Collective CollectiveOf(const DeviceDescription& machine, const Topology& topology, Instruction instruction);
// Seconds at the nominal rates of the links, without hops: what its efficiency is measured against.
double IdealSeconds(const DeviceDescription& machine, const Collective& collective);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_COLLECTIVE_COST_H_

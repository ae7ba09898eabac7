// SPDX-License-Identifier: Apache-2.0
#include "passes/target/collective_cost.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode_set.h"
#include "ir/sharding/replica_groups.h"
#include "passes/target/tiling.h"

namespace hlokit::tpu {

namespace {

constexpr int64_t kMaxListedDevices = int64_t{1} << 20;

// Returns the time of an all-gather that moves `bytes` into every chip of the group.
CollectiveTime GatherCost(const DeviceDescription& machine, double bytes, const GroupSpan& span) {
  CollectiveTime time;
  const double rate = machine.ici_rate * machine.ici_efficiency;
  if (!span.regular) {
    // Irregular groups share the links of their bounding box: a ring along its longest path.
    time.ici = bytes / rate;
    time.latency = machine.ici_hop_latency * static_cast<double>(span.chips);
    return time;
  }
  // Without wrap-around, lines pass the bytes along one axis after the other, the last chip of each over one link.
  // Rings run along all axes that wrap around at a time, a part of the bytes along each order of the axes, over both
  // links.
  double on_lines = 1, on_rings = 1;  // chips
  double ring_links = 0;
  double gap_of_lines = 1;
  for (const GroupSpan::Axis& axis : span.axes) {
    // Bytes of other groups also cross the gaps between the chips of the group.
    const double gap = std::max(1.0, static_cast<double>(axis.span) / static_cast<double>(axis.chips));
    const double n = static_cast<double>(axis.chips);
    if (axis.wraps) {
      on_rings *= n;
      ring_links += 2 / gap;
    } else {
      on_lines *= n;
      gap_of_lines = std::max(gap_of_lines, gap);
    }
    time.latency += machine.ici_hop_latency *
                    (axis.wraps ? static_cast<double>(axis.span) / 2 : static_cast<double>(axis.span - 1));
  }
  // The lines come first, when each chip has the least.
  time.ici = bytes / on_rings * (on_lines - 1) / on_lines * gap_of_lines / rate;
  if (ring_links > 0) time.ici += bytes * (on_rings - 1) / on_rings / (ring_links * rate);
  return time;
}

// `rounds`: 1 for a gather or scatter over the slices, 2 for both.
void AddSlices(const DeviceDescription& machine, double bytes, double rounds, const GroupSpan& span,
               CollectiveTime* time) {
  if (span.slices < 2) return;
  const double n = static_cast<double>(span.slices);
  // Each chip exchanges its shard with the same chip of the other slices, over its share of its host's network.
  const double per_chip = machine.dcn_rate / machine.chips_per_host;
  const double shard = bytes / static_cast<double>(span.chips);
  // Large messages go around a ring of the slices, a part at each of n - 1 steps. Small ones take fewer steps with more
  // bytes each.
  const double ring = shard * (n - 1) / n / per_chip + (n - 1) * machine.dcn_latency;
  const double tree = std::ceil(std::log2(n)) * (shard / per_chip + machine.dcn_latency);
  time->dcn = rounds * std::min(ring, tree);
}

std::vector<int64_t> GroupOf(const DeviceDescription& machine, const Topology& topology, Instruction instruction,
                             bool* all) {
  *all = false;
  const AttrReader attrs(instruction);
  const AttrValue* groups = attrs.Find(Attr::kReplicaGroups);
  const Context& context = instruction.module().context();
  if (groups == nullptr || CountReplicaGroups(context, ListId(groups->payload)).groups == 0) {
    *all = true;
    return {};
  }
  const absl::StatusOr<std::vector<std::vector<int64_t>>> expanded =
      ExpandReplicaGroups(context, ListId(groups->payload), kMaxListedDevices);
  if (!expanded.ok() || expanded->empty()) {
    *all = true;
    return {};
  }
  // The largest group is the slowest.
  const std::vector<int64_t>* largest = &(*expanded)[0];
  for (const std::vector<int64_t>& group : *expanded) {
    if (group.size() > largest->size()) largest = &group;
  }
  const int64_t devices = topology.Chips() * machine.devices_per_chip();
  *all = static_cast<int64_t>(largest->size()) == devices;
  return *largest;
}

// Returns the farthest pair of devices of a permute, as a group of two.
GroupSpan SpanOfPairs(const DeviceDescription& machine, const Topology& topology, absl::Span<const int64_t> pairs) {
  GroupSpan worst;
  int64_t distance = -1;
  for (size_t i = 0; i + 1 < pairs.size() && i < 8192; i += 2) {
    const int64_t pair[] = {pairs[i], pairs[i + 1]};
    GroupSpan span = SpanOf(machine, topology, pair);
    int64_t hops = span.slices > 1 ? int64_t{1} << 32 : 0;
    for (GroupSpan::Axis& axis : span.axes) {
      if (topology.Wraps(machine, axis.axis)) {
        axis.span = std::min(axis.span, topology.axes[axis.axis] - axis.span + 2);
      }
      hops += axis.span - 1;
    }
    if (hops > distance) {
      distance = hops;
      worst = span;
    }
  }
  return worst;
}

double BytesOf(const DeviceDescription& machine, Shape shape) {
  return static_cast<double>(PaddedBytes(machine, shape));
}

}  // namespace

CollectiveTime TimeOf(const DeviceDescription& machine, CollectiveKind kind, double bytes, const GroupSpan& span) {
  CollectiveTime time;
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kBroadcast:
      time = GatherCost(machine, bytes / static_cast<double>(span.slices), span);
      AddSlices(machine, bytes, 1, span, &time);
      break;
    case CollectiveKind::kAllReduce:
      time = GatherCost(machine, bytes, span);
      time.ici *= 2;
      time.latency *= 2;
      AddSlices(machine, bytes, 2, span, &time);
      break;
    case CollectiveKind::kAllToAll:
      // Half the bytes cross the middle of each axis, a quarter of what a gather moves.
      time = GatherCost(machine, bytes * static_cast<double>(span.chips), span);
      time.ici = std::max(time.ici / 4, LowerBound(machine, kind, bytes, span) / machine.ici_efficiency);
      AddSlices(machine, bytes * static_cast<double>(span.chips), 1, span, &time);
      break;
    case CollectiveKind::kPermute: {
      int64_t hops = 0;
      for (const GroupSpan::Axis& axis : span.axes) hops += axis.span - 1;
      if (hops > 0) time.ici = bytes / (machine.ici_rate * machine.ici_efficiency);
      time.latency = machine.ici_hop_latency * static_cast<double>(hops);
      if (span.slices > 1) time.dcn = bytes / (machine.dcn_rate / machine.chips_per_host) + machine.dcn_latency;
      break;
    }
  }
  const double members = static_cast<double>(span.chips * span.slices);
  if (static_cast<double>(span.devices) > members && kind != CollectiveKind::kPermute) {
    // Cores of one chip that are separate devices exchange over the links between them, before or after the chips do.
    const double cores = static_cast<double>(span.devices) / members;
    const double there_and_back = kind == CollectiveKind::kAllReduce ? 2 : 1;
    time.latency += 2 * machine.hbm_latency;
    time.ici += there_and_back * bytes * (cores - 1) / cores / (machine.core_link_rate * machine.ici_efficiency);
  } else {
    // Groups of the sibling cores run at the same time over the links of their chip, pairs of a permute too.
    time.ici *= static_cast<double>(machine.devices_per_chip());
    time.dcn *= static_cast<double>(machine.devices_per_chip());
  }
  return time;
}

double ReceivedBytes(CollectiveKind kind, double bytes, const GroupSpan& span) {
  const double n = static_cast<double>(std::max<int64_t>(span.chips, 1));
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kBroadcast:
      return bytes / static_cast<double>(std::max<int64_t>(span.slices, 1)) * (n - 1) / n;
    case CollectiveKind::kAllReduce:  // parts of the sums, then the other sums
      return 2 * bytes * (n - 1) / n;
    case CollectiveKind::kAllToAll:
      return bytes * (n - 1) / n;
    case CollectiveKind::kPermute:
      return bytes;
  }
  return 0;
}

double LowerBound(const DeviceDescription& machine, CollectiveKind kind, double bytes, const GroupSpan& span) {
  if (!span.regular || span.chips < 2) return 0;
  double links = 0;
  for (const GroupSpan::Axis& axis : span.axes) links += axis.wraps ? 2 : 1;
  return ReceivedBytes(kind, bytes, span) / (links * machine.ici_rate);
}

Collective CollectiveOf(const DeviceDescription& machine, const Topology& topology, Instruction i) {
  Collective result;
  double operands = 0;
  for (Instruction operand : i.operands()) operands += BytesOf(machine, operand.shape());
  bool all = false;
  const Opcode opcode = SynchronousOpcode(i.opcode());
  if (opcode == Opcode::kCollectivePermute) {
    result.kind = CollectiveKind::kPermute;
    result.bytes = operands;
    result.span = SpanOfPairs(machine, topology, i.list_attr(Attr::kSourceTargetPairs));
    return result;
  }
  const std::vector<int64_t> group = GroupOf(machine, topology, i, &all);
  result.span = all ? SpanOfAll(machine, topology) : SpanOf(machine, topology, group);
  const double members = static_cast<double>(std::max<int64_t>(result.span.devices, 1));
  if (opcode == Opcode::kAllGather) {
    result.kind = CollectiveKind::kAllGather;
    result.bytes = operands * members;
  } else if (opcode == Opcode::kReduceScatter) {
    result.kind = CollectiveKind::kReduceScatter;
    result.bytes = operands;
  } else if (OpcodeSet{Opcode::kAllToAll, Opcode::kRaggedAllToAll}.Contains(opcode)) {
    result.kind = CollectiveKind::kAllToAll;
    result.bytes = operands;
  } else if (OpcodeSet{Opcode::kCollectiveBroadcast, Opcode::kCollectiveReduce}.Contains(opcode)) {
    // A reduction to one device takes the ways of a broadcast backwards.
    result.kind = CollectiveKind::kBroadcast;
    result.bytes = operands;
  } else {
    result.kind = CollectiveKind::kAllReduce;
    result.bytes = operands;
  }
  return result;
}

double IdealSeconds(const DeviceDescription& machine, const Collective& collective) {
  DeviceDescription ideal = machine;
  ideal.ici_efficiency = 1;
  ideal.hbm_efficiency = 1;
  ideal.ici_hop_latency = 0;
  ideal.hbm_latency = 0;
  ideal.dcn_latency = 0;
  return TimeOf(ideal, collective.kind, collective.bytes, collective.span).total();
}

}  // namespace hlokit::tpu

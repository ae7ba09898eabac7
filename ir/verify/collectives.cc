// SPDX-License-Identifier: Apache-2.0
// Verifies the participants of collectives. Groups name devices by replica, by partition or by both, as channel_id and
// use_global_device_ids specify; a count of one in the header is treated as unknown.
#include <algorithm>
#include <limits>
#include <string>

#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/sharding/collective_groups.h"
#include "ir/sharding/replica_groups.h"
#include "ir/verify/context.h"

namespace hlokit::verify_internal {
namespace {

constexpr DiagnosticKind kCollectiveKind = DiagnosticKind::kCollective;

// Saturates.
int64_t Product(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

// Returns the number of devices that groups of this mode refer to; 1 if the header does not specify it.
int64_t DevicesOf(VerifierContext& v, CollectiveOpGroupMode mode) {
  const ModuleHeader& header = v.module.header();
  if (mode == CollectiveOpGroupMode::kCrossPartition) return header.num_partitions;
  if (mode == CollectiveOpGroupMode::kFlattenedId) return Product(header.replica_count, header.num_partitions);
  return header.replica_count;
}

ReplicaGroupCounts CountsOf(VerifierContext& v, Instruction i) {
  return CountReplicaGroups(v.module.context(), AttrReader(i).list_id(Attr::kReplicaGroups));
}

// Participants in the (first) group of `i`. 1: unknown; always at least 1.
struct Subgroup {
  int64_t size = 1;
  bool per_partition = false;  // of each partition, whose number is unknown
};

Subgroup SubgroupOf(VerifierContext& v, Instruction i) {
  const CollectiveOpGroupMode mode = GetCollectiveOpGroupMode(i);
  const ReplicaGroupCounts counts = CountsOf(v, i);
  const int64_t partitions = v.module.header().num_partitions;
  int64_t size = counts.groups == 0 ? DevicesOf(v, mode) : counts.group_size;
  if (mode == CollectiveOpGroupMode::kCrossReplicaAndPartition) size = Product(size, partitions);
  return {std::max<int64_t>(size, 1), mode == CollectiveOpGroupMode::kCrossReplicaAndPartition && partitions <= 1};
}

// Checks that explicit groups name 0, 1, ... once each. (Those of an iota or mesh always do.)
bool CheckListedGroups(VerifierContext& v, Instruction i, int64_t devices) {
  absl::Span<const int64_t> list = i.list_attr(Attr::kReplicaGroups);
  if (list.empty() || list[0] != 0) return true;
  list.remove_prefix(1);
  std::vector<int64_t>& seen = v.scratch;
  seen.assign(static_cast<size_t>(devices), 0);  // bounded by the size of the text
  while (!list.empty()) {
    const int64_t size = list[0];
    list.remove_prefix(1);
    if (size == 0) {
      v.Report(i, kCollectiveKind, "has an empty replica group");
      return false;
    }
    if (size < 0 || static_cast<size_t>(size) > list.size()) return false;
    for (int64_t device : list.first(static_cast<size_t>(size))) {
      const bool in_range = device >= 0 && device < devices;
      if (in_range && seen[static_cast<size_t>(device)]++ == 0) continue;
      v.Report(i, kCollectiveKind,
               in_range ? StrCat("has duplicate id ", device, " in replica_groups")
                        : StrCat("id ", device, " in replica_groups is out of range: expected 0 to ", devices - 1));
      return false;
    }
    list.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

// Returns the result of an operand, for collectives with an array result for one operand, else a tuple.
Shape ResultOf(Instruction i, Shape result, int64_t operand) {
  if (i.operand_count() == 1 || !result.IsTuple()) return result;
  return operand < result.tuple_size() ? result.element(operand) : Shape();
}

void CheckShards(VerifierContext& v, Instruction i, Shape whole, Shape part) {
  const absl::Span<const int64_t> dims = i.list_attr(Attr::kDimensions);
  if (dims.size() != 1 || !whole.valid() || !whole.IsArray() || !part.IsArray()) return;
  const int64_t d = dims[0];
  if (d < 0 || d >= whole.rank() || d >= part.rank()) return;
  if (part.dim(d) <= 0 || whole.dim(d) < 0) return;
  const int64_t shards = whole.dim(d) / part.dim(d) + (whole.dim(d) % part.dim(d) != 0);
  const Subgroup group = SubgroupOf(v, i);
  if (group.size == 1 || (group.per_partition ? shards % group.size == 0 : shards == group.size)) return;
  v.Report(i, kCollectiveKind,
           StrCat("sizes ", whole.dim(d), " and ", part.dim(d), " of dimension ", d, " imply ",
                  Counted(shards, "shard"), "; a group has ", Counted(group.size, "device")));
}

// Checks the offsets of an in-place update from one buffer to another. Offsets are a tuple of scalars, or a tuple of
// such tuples for several slices.
bool CheckOffsets(VerifierContext& v, Instruction i, Shape buffer, Shape offsets, std::string_view which) {
  const auto report = [&](const std::string& message) {
    v.Report(i, kCollectiveKind, StrCat(which, " offsets are ", ShapeText(offsets), message));
    return false;
  };
  if (!offsets.IsTuple()) return report("; they must be a tuple");
  const absl::Span<const Shape> elements = offsets.elements();
  const bool flat = std::all_of(elements.begin(), elements.end(), [](Shape s) { return s.IsArray(); });
  const bool nested = std::all_of(elements.begin(), elements.end(), [](Shape s) { return s.IsTuple(); });
  if (!flat && !nested) return report("; they must be a tuple of arrays or a tuple of tuples");
  const int64_t rank = buffer.rank();
  const bool fits = nested && !elements.empty()
                        ? std::all_of(elements.begin(), elements.end(), [&](Shape s) { return s.tuple_size() == rank; })
                        : offsets.tuple_size() == rank;
  return fits || report(StrCat("; the buffer has ", rank, " dimensions"));
}

bool CheckInPlace(VerifierContext& v, Instruction i) {
  constexpr std::string_view names[] = {"input", "output"};
  const Shape input = i.operand(0).shape();
  const Shape output = i.operand(1).shape();
  if (input.IsArray() && output.IsArray()) {
    return CheckOffsets(v, i, input, i.operand(2).shape(), names[0]) &&
           CheckOffsets(v, i, output, i.operand(3).shape(), names[1]);
  }
  if (!input.IsTuple() || !output.IsTuple() || input.tuple_size() != output.tuple_size()) {
    v.Report(i, kCollectiveKind, "must have as many output buffers as input buffers");
    return false;
  }
  for (int64_t side = 0; side < 2; ++side) {
    const Shape buffers = i.operand(side).shape();
    const Shape offsets = i.operand(2 + side).shape();
    if (!offsets.IsTuple() || offsets.tuple_size() != buffers.tuple_size()) {
      v.Report(i, kCollectiveKind,
               StrCat("has ", buffers.tuple_size(), " ", names[side], " buffers and offsets ", ShapeText(offsets)));
      return false;
    }
    for (int64_t n = 0; n < buffers.tuple_size(); ++n) {
      if (!CheckOffsets(v, i, buffers.element(n), offsets.element(n), names[side])) return false;
    }
  }
  return true;
}

// Checks one side of the pairs: ids below `limit`, each at most `allowed` times.
void CheckEnds(VerifierContext& v, Instruction i, std::string_view what, int64_t limit, int64_t allowed) {
  std::vector<int64_t>& ids = v.scratch;
  std::sort(ids.begin(), ids.end());
  if (!ids.empty() && (ids.front() < 0 || ids.back() >= limit)) {
    v.Report(i, kCollectiveKind,
             StrCat(what, " ", ids.front() < 0 ? ids.front() : ids.back(),
                    " in source_target_pairs is out of range: expected 0 to ", limit - 1));
    return;
  }
  for (size_t n = static_cast<size_t>(allowed); n < ids.size(); ++n) {
    if (ids[n] != ids[n - static_cast<size_t>(allowed)]) continue;
    v.Report(i, kCollectiveKind,
             StrCat(what, " ", ids[n], " appears more than ",
                    allowed == 1 ? std::string("once") : StrCat(allowed, " times"), " in source_target_pairs"));
    return;
  }
}

}  // namespace

void CheckGroups(VerifierContext& v, Instruction i) {
  const CollectiveOpGroupMode mode = GetCollectiveOpGroupMode(i);
  if (mode == CollectiveOpGroupMode::kCrossReplica && i.bool_attr(Attr::kUseGlobalDeviceIds)) {
    v.Report(i, kCollectiveKind, "has use_global_device_ids without channel_id");
    return;
  }
  const ReplicaGroupCounts counts = CountsOf(v, i);
  if (counts.groups == 0) {
    if (mode == CollectiveOpGroupMode::kFlattenedId)
      v.Report(i, kCollectiveKind, "has use_global_device_ids without replica_groups");
    return;
  }
  // A broadcast need not include all devices.
  if (i.opcode() == Opcode::kCollectiveBroadcast || !CheckListedGroups(v, i, counts.devices)) return;
  const int64_t devices = DevicesOf(v, mode);
  // Devices outside of all groups of a collective-reduce get zeros.
  const bool may_omit = i.opcode() == Opcode::kCollectiveReduce && counts.devices < devices;
  if (devices > 1 && counts.devices != devices && !may_omit) {
    v.Report(i, kCollectiveKind,
             StrCat("replica_groups contain ", counts.devices, " ",
                    mode == CollectiveOpGroupMode::kCrossPartition ? "partitions" : "devices", "; the module has ",
                    devices));
    return;
  }
  const bool any_size = SynchronousOpcode(i.opcode()) == Opcode::kAllReduce || i.opcode() == Opcode::kCollectiveReduce;
  if (!any_size && !counts.uniform) v.Report(i, kCollectiveKind, "has replica_groups of different sizes");
}

void CheckAllReduce(VerifierContext& v, Instruction i) {
  v.all_reduces.push_back(i.id());
  if (i.int_attr(Attr::kChannelId, 1) > 0) return;
  v.Report(i, kCollectiveKind, StrCat("has channel_id ", i.int_attr(Attr::kChannelId), "; expected at least 1"));
}

void CheckAllGather(VerifierContext& v, Instruction i) {
  Shape result = i.shape();
  if (i.opcode() == Opcode::kAllGatherStart) {
    if (!result.IsTuple() || result.tuple_size() < 2) return;
    result = result.element(1);
  }
  if (i.operand_count() > 0) CheckShards(v, i, ResultOf(i, result, 0), i.operand(0).shape());
}

void CheckReduceScatter(VerifierContext& v, Instruction i) {
  const Shape part = i.operand_count() > 0 ? ResultOf(i, i.shape(), 0) : Shape();
  if (part.valid()) CheckShards(v, i, i.operand(0).shape(), part);
}

void CheckAllToAll(VerifierContext& v, Instruction i) {
  const int64_t group = SubgroupOf(v, i).size;
  const absl::Span<const int64_t> dims = i.list_attr(Attr::kDimensions);
  if (dims.empty()) {
    for (int64_t n = 1; n < i.operand_count(); ++n) {
      if (SameLayoutIgnoringMemorySpace(i.operand(0).shape(), i.operand(n).shape())) continue;
      v.Report(i, kCollectiveKind,
               StrCat("has operands of different layouts: operand 0 is ", ShapeText(i.operand(0).shape(), true),
                      ", operand ", n, " is ", ShapeText(i.operand(n).shape(), true)));
      return;
    }
    const bool unknown = group == 1 && i.list_attr(Attr::kReplicaGroups).empty();
    if (unknown || i.operand_count() == group) return;
    v.Report(i, kCollectiveKind,
             StrCat("has ", Counted(i.operand_count(), "operand"), "; expected one for each of the ", group,
                    " devices of a group"));
    return;
  }
  const Shape operand = i.operand_count() == 1 ? i.operand(0).shape() : Shape();
  if (!operand.valid() || dims[0] < 0 || dims[0] >= operand.rank() || operand.is_unbounded(dims[0])) return;
  if (operand.dim(dims[0]) % group == 0) return;
  v.Report(i, kCollectiveKind,
           StrCat("splits dimension ", dims[0], " of size ", operand.dim(dims[0]), ", which is not divisible by the ",
                  group, " devices of a group"));
}

void CheckCollectivePermute(VerifierContext& v, Instruction i) {
  int64_t allowed = 1;
  if (i.has(Attr::kPermuteSliceSizes)) {
    if (!CheckInPlace(v, i)) return;
    // A device may participate once for each slice.
    Shape offsets = i.operand(2).shape();
    if (i.operand(0).shape().IsTuple() && offsets.tuple_size() > 0) offsets = offsets.element(0);
    allowed = std::max<int64_t>(1, offsets.tuple_size());
  }
  int64_t limit = DevicesOf(
      v, i.has(Attr::kChannelId) ? CollectiveOpGroupMode::kCrossPartition : CollectiveOpGroupMode::kCrossReplica);
  if (limit <= 1) limit = std::numeric_limits<int64_t>::max();
  // Each pair is encoded with its size first.
  const absl::Span<const int64_t> pairs = i.list_attr(Attr::kSourceTargetPairs);
  for (int64_t side = 1; side <= 2; ++side) {
    v.scratch.clear();
    for (size_t n = 0; n + 2 < pairs.size(); n += 3) {
      if (pairs[n] != 2) return;
      v.scratch.push_back(pairs[n + static_cast<size_t>(side)]);
    }
    CheckEnds(v, i, side == 1 ? "source" : "target", limit, allowed);
  }
}

}  // namespace hlokit::verify_internal

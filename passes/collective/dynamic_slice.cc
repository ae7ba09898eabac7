// SPDX-License-Identifier: Apache-2.0
// Collectives of whose result each device takes a slice: the shard with the number of the device in its group.
#include <algorithm>
#include <optional>
#include <vector>

#include "passes/collective/collective_key.h"
#include "passes/collective/collective_rules.h"
#include "passes/collective/device_values.h"
#include "passes/core/pass_row.h"

namespace hlokit {
namespace {

// A dynamic-slice that cuts one dimension.
struct OneDimension {
  int64_t dimension;
  int64_t size;  // of the slice
  Instruction start;
};

std::optional<OneDimension> CutDimension(Instruction slice) {
  const Shape whole = slice.operand(0).shape(), part = slice.shape();
  if (slice.operand_count() != whole.rank() + 1) return std::nullopt;
  std::optional<OneDimension> cut;
  for (int64_t d = 0; d < whole.rank(); ++d) {
    if (whole.dim(d) == part.dim(d)) continue;  // any start is clamped to 0
    if (cut) return std::nullopt;
    cut = {d, part.dim(d), slice.operand(d + 1)};
  }
  return cut;
}

// Returns true if the device at place n of its group takes shard n, on all devices.
bool TakesOwnShard(const OneDimension& cut, int64_t whole, const DeviceGroups& groups) {
  if (cut.size == 0 || cut.size * groups.group_size() != whole) return false;
  const std::optional<std::vector<int64_t>> starts = ScalarByDevice(cut.start, groups.counts);
  if (!starts) return false;
  for (const std::vector<int64_t>& group : groups.groups) {
    for (size_t n = 0; n < group.size(); ++n) {
      const int64_t start = std::clamp<int64_t>((*starts)[static_cast<size_t>(group[n])], 0, whole - cut.size);
      if (start != static_cast<int64_t>(n) * cut.size) return false;
    }
  }
  return true;
}

// Returns the dimension of the operand of `reshape` that becomes dimension `d` of its result, with the same size and
// the same elements before and after it.
std::optional<int64_t> DimensionBefore(Instruction reshape, int64_t d) {
  const Shape to = reshape.shape(), from = reshape.operand(0).shape();
  int64_t outer = 1;
  for (int64_t k = 0; k < d; ++k) outer *= to.dim(k);
  int64_t product = 1;
  for (int64_t k = 0; k < from.rank(); ++k) {
    if (product == outer && from.dim(k) == to.dim(d)) return k;
    product *= from.dim(k);
  }
  return std::nullopt;
}

// dynamic-slice(all-reduce(x)), possibly with a reshape between them, becomes reduce-scatter(x).
bool CreateReduceScatter(PatternRewriter& rewriter, Instruction slice) {
  const Instruction between = slice.operand(0);
  const bool reshaped = between.opcode() == Opcode::kReshape;
  const Instruction reduce = reshaped ? between.operand(0) : between;
  if (reduce.opcode() != Opcode::kAllReduce || reduce.operand_count() != 1 || !CollectiveKey(reduce)) return false;
  if (slice.has_control_edges() || between.has_control_edges() || !HasOneUse(reduce) || reduce.is_root()) return false;
  if (reshaped && (!HasOneUse(between) || between.is_root())) return false;
  const std::optional<OneDimension> cut = CutDimension(slice);
  if (!cut) return false;
  const std::optional<DeviceGroups> groups = DeviceGroupsOf(reduce);
  if (!groups || !TakesOwnShard(*cut, between.shape().dim(cut->dimension), *groups)) return false;
  const std::optional<int64_t> dimension =
      reshaped ? DimensionBefore(between, cut->dimension) : std::optional<int64_t>(cut->dimension);
  if (!dimension) return false;

  std::vector<AttrValue> attrs = {rewriter.List(Attr::kDimensions, {*dimension})};
  for (Attr attr : {Attr::kChannelId, Attr::kReplicaGroups, Attr::kUseGlobalDeviceIds, Attr::kToApply}) {
    if (reduce.has(attr)) attrs.push_back(Builder::SameAs(reduce, attr));
  }
  Shape shape = slice.shape();
  if (reshaped) {
    std::vector<int64_t> sizes(reduce.shape().dims().begin(), reduce.shape().dims().end());
    sizes[static_cast<size_t>(*dimension)] = cut->size;
    shape = rewriter.shapes().Array(shape.element_type(), sizes);
  }
  const InstructionId scatter = rewriter.Make(Opcode::kReduceScatter, shape, {reduce.operand(0).id()}, attrs);
  const MetadataId metadata[] = {reduce.metadata_id(), slice.metadata_id()};
  rewriter.module().SetMetadata(scatter, rewriter.context().metadata.Merge(metadata[0], metadata[1]));
  const InstructionId by = rewriter.MakeReshape(scatter, slice.shape());
  if (!(reshaped ? rewriter.Replace(slice, by, {between, reduce}) : rewriter.Replace(slice, by, {reduce}))) {
    return false;
  }
  EraseUnusedCollective(rewriter, between, reduce);
  return true;
}

// dynamic-slice(all-gather(x)) of the device's own shard is x.
bool RemoveGatherOfOwnShard(PatternRewriter& rewriter, Instruction slice) {
  const Instruction gather = slice.operand(0);
  if (gather.opcode() != Opcode::kAllGather || gather.operand_count() != 1 || !CollectiveKey(gather)) return false;
  const Instruction source = gather.operand(0);
  const std::optional<OneDimension> cut = CutDimension(slice);
  if (!cut || source.shape() != slice.shape()) return false;
  if (gather.list_attr(Attr::kDimensions) != absl::MakeConstSpan(&cut->dimension, 1)) return false;
  const std::optional<DeviceGroups> groups = DeviceGroupsOf(gather);
  if (!groups || !TakesOwnShard(*cut, gather.shape().dim(cut->dimension), *groups)) return false;
  if (!rewriter.Replace(slice, source.id(), {gather})) return false;
  EraseUnusedCollective(rewriter, gather, gather);
  return true;
}

}  // namespace

void AddReduceScatterCreatorRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kDynamicSlice}, "reduce-scatters created", CreateReduceScatter);
}

void AddAllGatherDynamicSliceSimplifierRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kDynamicSlice}, "slices of all-gathers removed", RemoveGatherOfOwnShard);
}

HLOKIT_PASS(ReduceScatterCreator) {
  return {.name = "reduce-scatter-creator",
          .category = "collective",
          .summary = "make reduce-scatters of all-reduces of which each device takes its shard",
          .doc =
              "A dynamic-slice of an all-reduce becomes a reduce-scatter if each device takes the shard with "
              "its number in its group. A reshape between them may keep the sliced dimension. XLA matches "
              "forms of the start index; here its value is computed for each device.",
          .example = R"(HloModule shards, replica_count=2

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[8] parameter(0)
  total = f32[8] all-reduce(x), replica_groups={{0,1}}, to_apply=sum
  me = u32[] replica-id()
  four = u32[] constant(4)
  start = u32[] multiply(me, four)
  ROOT shard = f32[4] dynamic-slice(total, start), dynamic_slice_sizes={4}
})",
          .preconditions = kNoSchedule,
          .tolerance = 1e-5,
          .create = MakePass<CollectiveRules<AddReduceScatterCreatorRules>>};
}

HLOKIT_PASS(AllGatherDynamicSliceSimplifier) {
  return {.name = "all-gather-dynamic-slice-simplifier",
          .category = "collective",
          .summary = "replace the own shard of an all-gather by its operand",
          .doc =
              "A dynamic-slice of an all-gather of which each device takes the shard that it contributed is "
              "the operand. XLA also looks through a reshape, but leaves an all-gather with other users "
              "alone.",
          .example = R"(HloModule own, num_partitions=2

ENTRY main {
  x = f32[4] parameter(0)
  all = f32[8] all-gather(x), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  me = u32[] partition-id()
  starts = u32[2] constant({0, 4})
  start = u32[1] dynamic-slice(starts, me), dynamic_slice_sizes={1}
  scalar = u32[] reshape(start)
  own = f32[4] dynamic-slice(all, scalar), dynamic_slice_sizes={4}
  ROOT y = f32[4] negate(own)
})",
          .preconditions = kNoSchedule,
          .create = MakePass<CollectiveRules<AddAllGatherDynamicSliceSimplifierRules>>};
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
// Shardings: which device has which part of a value. In the text an attribute, `sharding={devices=[2,1]<=[2]}`; in the
// IR an interned list (attribute type kSharding), so equal shardings have equal ids. What a program reads or builds is
// a Sharding; EncodeSharding and DecodeSharding go between the two.
//
// A leaf says how one array is laid out; a tuple has one leaf for each leaf of its shape (one for an empty tuple).
// Forms of a leaf and their text:
//   replicated, manual, unknown        {replicated} {manual} {unknown}
//   unreduced, a sum or another op     {unreduced} {unreduced=max}
//   maximal: on one device             {maximal device=3}
//   tiled                              {devices=[2,1]0,1} {devices=[2,2]<=[4] last_tile_dim_replicate}
//   named: tiled by the axes of a mesh {mesh['x'=2,'y'=2], [{'x'}, {?}], replicated={'y'}}
#ifndef HLOKIT_IR_SHARDING_SHARDING_H_
#define HLOKIT_IR_SHARDING_SHARDING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/ids.h"
#include "ir/core/text_writer.h"
#include "ir/graph/context.h"
#include "ir/sharding/mesh.h"
#include "ir/sharding/tile_assignment.h"
#include "ir/types/shape.h"

namespace hlokit {

enum class ShardingKind : uint8_t { kReplicated, kManual, kUnknown, kUnreduced, kMaximal, kTiled, kNamed };
// What a dimension of the tiles after those of the data means, in the order they are brought into.
enum class SubgroupType : uint8_t { kMaximal, kManual, kUnreduced, kReplicated };
// How the parts of an unreduced value combine.
enum class ReductionOp : uint8_t { kSum, kMax, kMin };
enum class ShardGroup : uint8_t { kNone, kAs, kLike };

inline constexpr std::string_view kSubgroupTypeTexts[] = {"maximal", "manual", "unreduced", "replicated"};
inline constexpr std::string_view kReductionOpTexts[] = {"sum", "max", "min"};

struct DimSharding {
  std::vector<AxisRef> axes;
  bool open = false;  // `?`: propagation may add axes
  friend bool operator==(const DimSharding&, const DimSharding&) = default;
};

struct ShardingLeaf {
  ShardingKind kind = ShardingKind::kReplicated;
  ReductionOp reduction = ReductionOp::kSum;  // unreduced, named
  ShardGroup group = ShardGroup::kNone;       // shard_as, shard_like; not of named ones
  int64_t group_id = 0;
  int64_t device = 0;  // maximal
  // Tiled: the last dimensions of `tiles`, one for each subgroup, do not belong to the data. Normal forms have each
  // type once, sorted, and no dimension of size one among them.
  TileAssignment tiles;
  std::vector<SubgroupType> subgroups;
  // Named. Axes in none of the lists are replicated as well, but free to be used by propagation.
  Mesh mesh;
  std::vector<DimSharding> dims;
  std::vector<AxisRef> replicated;
  std::vector<AxisRef> unreduced;
  std::vector<AxisRef> manual;

  std::vector<MetadataId> metadata;

  // Dimensions of the data that the leaf speaks of; -1 when it fits every rank.
  int64_t data_rank() const;
  // Devices it speaks of; 0 when it speaks of all there are.
  int64_t device_count() const;

  friend bool operator==(const ShardingLeaf&, const ShardingLeaf&) = default;
};

struct Sharding {
  // Equal neighbors are one run: a tuple may have more leaves than would be sensible to write out.
  struct Run {
    ShardingLeaf leaf;
    int64_t count = 1;
    friend bool operator==(const Run&, const Run&) = default;
  };
  bool is_tuple = false;
  std::vector<Run> runs;  // exactly one, of one leaf, unless a tuple

  static Sharding Of(ShardingLeaf leaf) { return {false, {{std::move(leaf), 1}}}; }
  const ShardingLeaf& leaf() const { return runs[0].leaf; }  // not of tuples
  int64_t leaf_count() const;                                // saturates
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

// Encoding. A leaf: kind, reduction, group, group id, number of metadata and their ids, then
//   maximal: device
//   tiled:   dimensions (list), subgroups (list), number of listed devices and they, or 0 and an iota order
//   named:   mesh, number of dimensions, and for each: open and axes; then replicated, unreduced, manual axes
// A tuple: -1, then for each run the ListId of the leaf and the count. (Parts: see mesh.h.)
ListId EncodeLeaf(Context* context, const ShardingLeaf& leaf);
ListId EncodeSharding(Context* context, const Sharding& sharding);
// Of ListIds of leaves, in order.
ListId EncodeTupleSharding(Context* context, absl::Span<const ListId> leaves);
ShardingLeaf DecodeLeaf(const Context& context, ListId id);
Sharding DecodeSharding(const Context& context, ListId id);
bool IsTupleSharding(const Context& context, ListId id);

// A sharding without tuple given for a tuple shape holds for each leaf: the tuple that says so. Others stay.
ListId NormalizeForShape(Context* context, ListId sharding, Shape shape);

// Brings a tiled leaf as one writes it into the form that XLA keeps: tilings that tile nothing become replicated,
// manual or unreduced; subgroups are sorted, merged, and stripped of dimensions of size one; replicated groups are
// sorted. Returns what is wrong with a leaf that has no such form; tiles must be valid.
std::optional<std::string> NormalizeTiled(ShardingLeaf* leaf);
// The same for a named leaf: checks mesh and axes; one that says replicated, unreduced or manual of everything becomes
// that.
std::optional<std::string> NormalizeNamed(const Context& context, ShardingLeaf* leaf);
// XLA notes on each unreduced leaf of the unnamed forms, as metadata, that it is a sum. Adds the note where it is
// missing.
void NoteReduction(Context* context, ShardingLeaf* leaf);

// What is wrong with `sharding` of a value of `shape` on `num_devices` devices (0: not known), or nullopt: the number
// of leaves, ranks, devices that are out of range, given twice, too many or too few.
std::optional<std::string> Validate(const Sharding& sharding, Shape shape, int64_t num_devices);

void PrintSharding(TextWriter& out, const Context& context, ListId sharding, bool include_metadata = true);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_SHARDING_H_

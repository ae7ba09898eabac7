// SPDX-License-Identifier: Apache-2.0
// Shardings: the distribution of a value over devices. In the text an attribute, `sharding={devices=[2,1]<=[2]}`; in
// the IR an interned list (attribute type kSharding), so equal shardings have equal ids. Code reads and builds a
// Sharding; EncodeSharding and DecodeSharding convert between the two.
//
// A leaf is the sharding of one array; a tuple has one leaf for each leaf of its shape (one for an empty tuple). Forms
// of a leaf and their text:
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
// Type of a subgroup dimension of the tile assignment, after those of the data. In canonical order.
enum class SubgroupType : uint8_t { kMaximal, kManual, kUnreduced, kReplicated };
// How the shards of an unreduced value combine.
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
  ShardGroup group = ShardGroup::kNone;       // shard_as, shard_like; not in named shardings
  int64_t group_id = 0;
  int64_t device = 0;  // maximal
  // Tiled: the last dimensions of `tiles`, one for each subgroup, do not belong to the data. In canonical form each
  // type occurs once, sorted, and no subgroup dimension has size one.
  TileAssignment tiles;
  std::vector<SubgroupType> subgroups;
  // Named. Axes in none of the lists are replicated too, but propagation may use them. Replicated, manual and unreduced
  // shardings have a mesh too if `over_mesh`, and the list of all its axes that they are manual or unreduced along.
  bool over_mesh = false;
  Mesh mesh;
  std::vector<DimSharding> dims;
  std::vector<AxisRef> replicated;
  std::vector<AxisRef> unreduced;
  std::vector<AxisRef> manual;

  std::vector<MetadataId> metadata;

  // Returns the number of data dimensions of the leaf; -1 if it applies to every rank.
  int64_t data_rank() const;
  // Returns the number of devices of the leaf; 0 if it applies to any number.
  int64_t device_count() const;

  friend bool operator==(const ShardingLeaf&, const ShardingLeaf&) = default;
};

struct Sharding {
  // A run of equal adjacent leaves, since a tuple may have too many leaves to expand.
  struct Run {
    ShardingLeaf leaf;
    int64_t count = 1;
    friend bool operator==(const Run&, const Run&) = default;
  };
  bool is_tuple = false;
  std::vector<Run> runs;  // exactly one, of one leaf, unless a tuple

  static Sharding Of(ShardingLeaf leaf) { return {false, {{std::move(leaf), 1}}}; }
  const ShardingLeaf& leaf() const { return runs[0].leaf; }  // not for tuples
  int64_t leaf_count() const;                                // saturates
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

// Encoding. A leaf: kind, reduction, group, group id, number of metadata and their ids, then
//   replicated, manual, unreduced: nothing, or mesh, unreduced axes, manual axes
//   maximal: device
//   tiled:   dimensions (list), subgroups (list), number of listed devices and they, or 0 and an iota
//   named:   mesh, number of dimensions, and for each: open and axes; then replicated, unreduced, manual axes
// A tuple: -1, then for each run the ListId of the leaf and the count. (See mesh.h for components.)
ListId EncodeLeaf(Context* context, const ShardingLeaf& leaf);
ListId EncodeSharding(Context* context, const Sharding& sharding);
// Encodes a tuple of the ListIds of leaves, in order.
ListId EncodeTupleSharding(Context* context, absl::Span<const ListId> leaves);
ShardingLeaf DecodeLeaf(const Context& context, ListId id);
Sharding DecodeSharding(const Context& context, ListId id);
bool IsTupleSharding(const Context& context, ListId id);

// Returns a tuple sharding for a tuple shape with a single sharding, which applies to every leaf. Returns other
// shardings unchanged.
ListId NormalizeForShape(Context* context, ListId sharding, Shape shape);

// Brings a tiled leaf into XLA's canonical form: assignments that do not tile become replicated, manual or unreduced;
// subgroups are sorted, merged, and stripped of dimensions of size one; replicated groups are sorted. Returns an error
// if the leaf has no such form. Requires: tiles are valid.
std::optional<std::string> NormalizeTiled(ShardingLeaf* leaf);
// Brings a named leaf into canonical form: checks mesh and axes; fully replicated, unreduced or manual ones become
// those kinds, over the mesh.
std::optional<std::string> NormalizeNamed(const Context& context, ShardingLeaf* leaf);
// Adds the metadata with which XLA marks each unreduced leaf of the unnamed forms as a sum, if it is missing.
void NoteReduction(Context* context, ShardingLeaf* leaf);

// Returns the error of `sharding` for a value of `shape` on `num_devices` devices (0: unknown), or nullopt: wrong
// number of leaves, rank or devices, or devices that are out of range or duplicate.
std::optional<std::string> Validate(const Sharding& sharding, Shape shape, int64_t num_devices);

void PrintSharding(TextWriter& out, const Context& context, ListId sharding, bool include_metadata = true);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_SHARDING_H_

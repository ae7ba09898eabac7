// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/sharding.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/reduction_note.h"

namespace hlokit {
namespace {

constexpr int64_t kTupleTag = -1;

// Appends runs of equal leaf ids.
class RunEncoder {
 public:
  void Add(ListId leaf, int64_t count) {
    if (list_.size() > 1 && list_[list_.size() - 2] == leaf.value) {
      list_.back() += count;
    } else {
      list_.insert(list_.end(), {leaf.value, count});
    }
  }
  ListId Finish(Context* context) { return context->lists.Intern(list_); }

 private:
  std::vector<int64_t> list_ = {kTupleTag};
};

}  // namespace

int64_t ShardingLeaf::data_rank() const {
  if (kind == ShardingKind::kTiled) return tiles.rank() - static_cast<int64_t>(subgroups.size());
  if (kind == ShardingKind::kNamed && !mesh.maximal() && !dims.empty()) return static_cast<int64_t>(dims.size());
  return -1;
}

int64_t ShardingLeaf::device_count() const {
  if (kind == ShardingKind::kMaximal) return 1;
  if (kind == ShardingKind::kTiled) return tiles.device_count();
  if (kind == ShardingKind::kNamed) return mesh.device_count();
  return 0;
}

int64_t Sharding::leaf_count() const {
  int64_t count = 0;
  for (const Run& run : runs) count = SaturatingAdd(count, run.count);
  return count;
}

ListId EncodeLeaf(Context* context, const ShardingLeaf& leaf) {
  std::vector<int64_t> list = {static_cast<int64_t>(leaf.kind), static_cast<int64_t>(leaf.reduction),
                               static_cast<int64_t>(leaf.group), leaf.group_id,
                               static_cast<int64_t>(leaf.metadata.size())};
  for (MetadataId id : leaf.metadata) list.push_back(id.value);
  switch (leaf.kind) {
    case ShardingKind::kReplicated:
    case ShardingKind::kManual:
    case ShardingKind::kUnknown:
    case ShardingKind::kUnreduced:
      if (!leaf.over_mesh) break;
      EncodeMesh(leaf.mesh, &list);
      EncodeAxes(leaf.unreduced, &list);
      EncodeAxes(leaf.manual, &list);
      break;
    case ShardingKind::kMaximal:
      list.push_back(leaf.device);
      break;
    case ShardingKind::kTiled:
      list.reserve(list.size() + leaf.tiles.dims.size() + leaf.subgroups.size() + leaf.tiles.devices.size() +
                   2 * leaf.tiles.iota.reshape.size() + 4);
      EncodeList(leaf.tiles.dims, &list);
      list.push_back(static_cast<int64_t>(leaf.subgroups.size()));
      for (SubgroupType type : leaf.subgroups) list.push_back(static_cast<int64_t>(type));
      EncodeList(leaf.tiles.devices, &list);
      if (leaf.tiles.is_iota()) EncodeIotaTileAssignment(leaf.tiles.iota, &list);
      break;
    case ShardingKind::kNamed:
      EncodeMesh(leaf.mesh, &list);
      list.push_back(static_cast<int64_t>(leaf.dims.size()));
      for (const DimSharding& dim : leaf.dims) {
        list.push_back(dim.open ? 1 : 0);
        EncodeAxes(dim.axes, &list);
      }
      EncodeAxes(leaf.replicated, &list);
      EncodeAxes(leaf.unreduced, &list);
      EncodeAxes(leaf.manual, &list);
      break;
  }
  return context->lists.Intern(list);
}

ShardingLeaf DecodeLeaf(const Context& context, ListId id) {
  const absl::Span<const int64_t> list = context.list(id);
  ShardingLeaf leaf;
  leaf.kind = static_cast<ShardingKind>(list[0]);
  leaf.reduction = static_cast<ReductionOp>(list[1]);
  leaf.group = static_cast<ShardGroup>(list[2]);
  leaf.group_id = list[3];
  size_t at = 4;
  for (int64_t value : DecodeList(list, &at)) leaf.metadata.push_back(MetadataId(static_cast<uint32_t>(value)));
  switch (leaf.kind) {
    case ShardingKind::kReplicated:
    case ShardingKind::kManual:
    case ShardingKind::kUnknown:
    case ShardingKind::kUnreduced:
      leaf.over_mesh = at < list.size();
      if (!leaf.over_mesh) break;
      leaf.mesh = DecodeMesh(list, &at);
      leaf.unreduced = DecodeAxes(list, &at);
      leaf.manual = DecodeAxes(list, &at);
      break;
    case ShardingKind::kMaximal:
      leaf.device = list[at];
      break;
    case ShardingKind::kTiled:
      leaf.tiles.dims = DecodeList(list, &at);
      for (int64_t type : DecodeList(list, &at)) leaf.subgroups.push_back(static_cast<SubgroupType>(type));
      leaf.tiles.devices = DecodeList(list, &at);
      if (at < list.size()) leaf.tiles.iota = DecodeIotaTileAssignment(list, &at);
      break;
    case ShardingKind::kNamed:
      leaf.mesh = DecodeMesh(list, &at);
      leaf.dims.resize(static_cast<size_t>(list[at++]));
      for (DimSharding& dim : leaf.dims) {
        dim.open = list[at++] != 0;
        dim.axes = DecodeAxes(list, &at);
      }
      leaf.replicated = DecodeAxes(list, &at);
      leaf.unreduced = DecodeAxes(list, &at);
      leaf.manual = DecodeAxes(list, &at);
      break;
  }
  return leaf;
}

bool IsTupleSharding(const Context& context, ListId id) { return context.list(id)[0] == kTupleTag; }

ListId EncodeSharding(Context* context, const Sharding& sharding) {
  if (!sharding.is_tuple) return EncodeLeaf(context, sharding.leaf());
  RunEncoder runs;
  for (const Sharding::Run& run : sharding.runs) runs.Add(EncodeLeaf(context, run.leaf), run.count);
  return runs.Finish(context);
}

ListId EncodeTupleSharding(Context* context, absl::Span<const ListId> leaves) {
  RunEncoder runs;
  for (ListId leaf : leaves) runs.Add(leaf, 1);
  return runs.Finish(context);
}

Sharding DecodeSharding(const Context& context, ListId id) {
  if (!IsTupleSharding(context, id)) return Sharding::Of(DecodeLeaf(context, id));
  Sharding sharding;
  sharding.is_tuple = true;
  const absl::Span<const int64_t> list = context.list(id);
  for (size_t i = 1; i < list.size(); i += 2) {
    sharding.runs.push_back({DecodeLeaf(context, ListId(static_cast<uint32_t>(list[i]))), list[i + 1]});
  }
  return sharding;
}

ListId NormalizeForShape(Context* context, ListId sharding, Shape shape) {
  if (!shape.IsTuple() || IsTupleSharding(*context, sharding)) return sharding;
  RunEncoder runs;
  runs.Add(sharding, std::max<int64_t>(shape.leaf_count(), 1));
  return runs.Finish(context);
}

std::optional<std::string> NormalizeTiled(ShardingLeaf* leaf) {
  TileAssignment& tiles = leaf->tiles;
  std::vector<SubgroupType>& types = leaf->subgroups;
  const auto become = [leaf](ShardingKind kind) -> std::optional<std::string> {
    leaf->kind = kind;
    leaf->tiles = {};
    leaf->subgroups.clear();
    return std::nullopt;
  };
  if (types.empty()) return std::nullopt;
  if (types.size() > tiles.dims.size()) return "more last_tile_dims than dimensions of the tiles";
  const size_t data_rank = tiles.dims.size() - types.size();
  std::vector<int64_t> merged(tiles.dims.begin(), tiles.dims.begin() + static_cast<std::ptrdiff_t>(data_rank));
  // All devices are in one subgroup, or in subgroups of one type: the data are not tiled.
  const bool tiles_data = std::any_of(merged.begin(), merged.end(), [](int64_t d) { return d != 1; });
  const auto whole = [tiles_data, &types]() -> std::optional<ShardingKind> {
    const auto is_first = [&types](SubgroupType type) { return type == types[0]; };
    if (tiles_data || types.empty() || !std::all_of(types.begin(), types.end(), is_first)) return std::nullopt;
    switch (types[0]) {
      case SubgroupType::kMaximal:
        return std::nullopt;
      case SubgroupType::kManual:
        return ShardingKind::kManual;
      case SubgroupType::kUnreduced:
        return ShardingKind::kUnreduced;
      case SubgroupType::kReplicated:
        return ShardingKind::kReplicated;
    }
    return std::nullopt;
  };
  if (const std::optional<ShardingKind> kind = whole()) return become(*kind);

  // Group the dimensions by type, and move those of size one to the end, where they are dropped.
  std::vector<int64_t> perm;
  for (size_t i = 0; i < data_rank; ++i) perm.push_back(static_cast<int64_t>(i));
  std::vector<SubgroupType> merged_types;
  for (SubgroupType type :
       {SubgroupType::kMaximal, SubgroupType::kManual, SubgroupType::kUnreduced, SubgroupType::kReplicated}) {
    int64_t size = 1;
    for (size_t i = 0; i < types.size(); ++i) {
      const int64_t d = tiles.dims[data_rank + i];
      if (types[i] != type || d == 1) continue;
      perm.push_back(static_cast<int64_t>(data_rank + i));
      size *= d;
    }
    if (size == 1) continue;
    merged.push_back(size);
    merged_types.push_back(type);
  }
  for (size_t i = data_rank; i < tiles.dims.size(); ++i) {
    if (tiles.dims[i] == 1) perm.push_back(static_cast<int64_t>(i));
  }
  if (merged.size() != tiles.dims.size() || merged_types != types) {
    if (!tiles.Transpose(perm, kMaxExpandedDevices)) return "the tiles have too many devices to be listed";
    tiles.dims = std::move(merged);
    types = std::move(merged_types);
    if (const std::optional<ShardingKind> kind = whole()) return become(*kind);
    if (tiles.dims.empty()) return become(ShardingKind::kReplicated);  // one device, and no data dimension to refer to
  }

  if (types.empty() || types.back() != SubgroupType::kReplicated) return std::nullopt;
  // The order within a replicated group is irrelevant.
  if (!tiles.SortLastDim(kMaxExpandedDevices)) return "the tiles have too many devices to be listed";
  return std::nullopt;
}

std::optional<std::string> NormalizeNamed(const Context& context, ShardingLeaf* leaf) {
  if (std::optional<std::string> error = CheckMesh(context, &leaf->mesh)) return error;
  if (leaf->mesh.maximal()) return std::nullopt;
  AxisUses uses(context, leaf->mesh);
  for (const DimSharding& dim : leaf->dims) {
    if (std::optional<std::string> error = uses.Add(dim.axes)) return error;
  }
  if (std::optional<std::string> error = uses.AddSorted(leaf->replicated, "replicated")) return error;
  if (std::optional<std::string> error = uses.AddSorted(leaf->unreduced, "unreduced")) return error;
  if (std::optional<std::string> error = uses.AddSorted(leaf->manual, "manual")) return error;
  if (leaf->unreduced.empty()) leaf->reduction = ReductionOp::kSum;

  const bool replicated = leaf->replicated.empty(), unreduced = leaf->unreduced.empty(), manual = leaf->manual.empty();
  const bool all_unreduced = !unreduced && CoversMesh(leaf->mesh, leaf->unreduced);
  const bool all_manual = !manual && CoversMesh(leaf->mesh, leaf->manual);
  if (leaf->dims.empty() && replicated) {
    if (unreduced && manual) {
      leaf->kind = ShardingKind::kReplicated;
    } else if (manual && all_unreduced) {
      leaf->kind = ShardingKind::kUnreduced;
    } else if (unreduced && all_manual) {
      leaf->kind = ShardingKind::kManual;
    }
  }
  leaf->over_mesh = leaf->kind != ShardingKind::kNamed;
  return std::nullopt;
}

void NoteReduction(Context* context, ShardingLeaf* leaf) {
  const auto& types = leaf->subgroups;
  if (leaf->kind != ShardingKind::kUnreduced &&
      (leaf->kind != ShardingKind::kTiled ||
       std::find(types.begin(), types.end(), SubgroupType::kUnreduced) == types.end())) {
    return;
  }
  bool is_sum = false;
  std::erase_if(leaf->metadata, [&](MetadataId id) {
    const Metadata& metadata = context->metadata[id];
    if (context->str(metadata.op_type) != kReductionNote) return false;
    const std::string_view name = context->str(metadata.op_name);
    const auto found = std::find(std::begin(kReductionNames) + 1, std::end(kReductionNames), name);
    if (found == std::end(kReductionNames)) {
      is_sum = true;
      return false;
    }
    leaf->reduction = static_cast<ReductionOp>(found - std::begin(kReductionNames));
    return true;
  });
  if (leaf->reduction != ReductionOp::kSum || is_sum) return;
  Metadata note;
  note.op_type = context->strings.Intern(kReductionNote);
  note.op_name = context->strings.Intern(kReductionNames[0]);
  leaf->metadata.push_back(context->metadata.Intern(note));
}

namespace {

std::optional<std::string> ValidateDevice(int64_t device, int64_t num_devices) {
  if (device < 0) return StrCat("device ", device, " is negative");
  if (num_devices > 0 && device >= num_devices)
    return StrCat("device ", device, " is out of range: expected less than ", num_devices);
  return std::nullopt;
}

std::optional<std::string> ValidateLeaf(const ShardingLeaf& leaf, Shape shape, int64_t num_devices) {
  if (shape.IsTuple()) return "expected a tuple sharding for a tuple";
  if (shape.IsToken()) return std::nullopt;
  if (shape.IsBuffer()) shape = shape.element(0);
  switch (leaf.kind) {
    case ShardingKind::kReplicated:
    case ShardingKind::kManual:
    case ShardingKind::kUnknown:
    case ShardingKind::kUnreduced:
      return std::nullopt;
    case ShardingKind::kMaximal:
      return ValidateDevice(leaf.device, num_devices);
    case ShardingKind::kTiled:
    case ShardingKind::kNamed:
      break;
  }
  if (leaf.kind == ShardingKind::kNamed && leaf.mesh.maximal()) {
    return ValidateDevice(leaf.mesh.devices.devices[0], num_devices);
  }
  const int64_t count = leaf.device_count();
  const int64_t rank = leaf.data_rank();
  if (rank >= 0 && rank != shape.rank()) {
    return StrCat("the sharding has ", rank, " dimensions, but ", ToString(shape, false), " has ", shape.rank());
  }
  if (leaf.kind == ShardingKind::kTiled && !leaf.tiles.is_iota()) {
    absl::flat_hash_set<int64_t> seen;
    for (int64_t device : leaf.tiles.devices) {
      if (std::optional<std::string> error = ValidateDevice(device, num_devices)) return error;
      if (!seen.insert(device).second) return StrCat("duplicate device ", device);
    }
  }
  // Of one device, or over an empty mesh: the value is whole on any number of devices.
  if (num_devices > 0 && count > 1 && count != num_devices) {
    return StrCat("expected ", num_devices, " devices in the sharding, found ", count);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Validate(const Sharding& sharding, Shape shape, int64_t num_devices) {
  if (shape.IsToken()) return std::nullopt;
  if (!sharding.is_tuple) return ValidateLeaf(sharding.leaf(), shape, num_devices);
  if (!shape.IsTuple()) return "unexpected tuple sharding: the value is not a tuple";
  const int64_t leaves = shape.leaf_count(), given = sharding.leaf_count();
  if (leaves == 0 && given <= 1) return std::nullopt;  // an empty tuple may have one leaf
  if (leaves != given) return StrCat("expected ", leaves, " shardings, one for each leaf of the shape, found ", given);
  if (leaves > kMaxLeaves) return "the shape has too many leaves";
  const std::vector<Shape> shapes = Leaves(shape);
  size_t at = 0;
  for (const Sharding::Run& run : sharding.runs) {
    Shape last;
    for (int64_t i = 0; i < run.count; ++i, ++at) {
      if (last.valid() && shapes[at] == last) continue;
      last = shapes[at];
      if (std::optional<std::string> error = ValidateLeaf(run.leaf, last, num_devices)) {
        return StrCat("leaf ", at, ": ", *error);
      }
    }
  }
  return std::nullopt;
}

}  // namespace hlokit

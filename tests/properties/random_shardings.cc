// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random_shardings.h"

#include <algorithm>
#include <numeric>

#include "ir/sharding/sharding.h"
#include "ir/types/shape.h"

namespace hlokit::properties {

RandomShardings::RandomShardings(uint64_t seed, int64_t devices) : random_(seed), devices_(devices) {
  mesh_ = RandomMesh();
  if (Chance(0.1)) {
    order_.resize(static_cast<size_t>(devices));
    std::iota(order_.begin(), order_.end(), 0);
    std::shuffle(order_.begin(), order_.end(), random_);
  }
}

RandomShardings::Mesh RandomShardings::RandomMesh() {
  Mesh mesh;
  int64_t left = devices_;
  while (left > 1 && mesh.size() < 2) {
    std::vector<int64_t> sizes;
    for (int64_t size = 2; size <= left; ++size) {
      if (left % size == 0) sizes.push_back(size);
    }
    mesh.push_back(sizes[random_() % sizes.size()]);
    left /= mesh.back();
  }
  if (left > 1) mesh.push_back(left);
  return mesh;
}

Tiling RandomShardings::RandomTiling(absl::Span<const int64_t> sizes) {
  if (Chance(0.15)) return Tiling::Of(ShardingKind::kReplicated);
  if (Chance(0.03)) {
    Tiling maximal = Tiling::Of(ShardingKind::kMaximal);
    maximal.device = static_cast<int64_t>(random_() % static_cast<uint64_t>(devices_));
    return maximal;
  }
  const Mesh mesh = Chance(0.1) ? RandomMesh() : mesh_;
  Tiling tiling = Tiling::Of(ShardingKind::kTiled);
  tiling.device_count = devices_;
  tiling.order = Chance(0.05) ? std::vector<int64_t>() : order_;
  tiling.dims.resize(sizes.size());
  std::vector<DeviceAxis> axes;
  int64_t stride = devices_;
  for (int64_t size : mesh) {
    stride /= size;
    axes.push_back({stride, size});
  }
  std::shuffle(axes.begin(), axes.end(), random_);
  for (const DeviceAxis& axis : axes) {
    if (sizes.empty() || Chance(0.25)) continue;
    const size_t dim = random_() % sizes.size();
    // Tiles of nothing but padding are legal, but show little.
    const bool more_tiles_than_elements = SizeOf(tiling.dims[dim]) * axis.size > sizes[dim];
    if (more_tiles_than_elements && !Chance(0.1)) continue;
    AppendAxis(&tiling.dims[dim], axis);
  }
  tiling.Normalize();
  return tiling;
}

void RandomShardings::AddTo(Instruction instruction, Module* module) {
  const Shape shape = instruction.shape();
  if (instruction.has(Attr::kSharding) || shape.has_dynamic_dims() || shape.leaf_count() > 64) return;
  const std::vector<Shape> leaves = Leaves(shape);
  Sharding sharding;
  sharding.is_tuple = shape.IsTuple();
  for (const Shape& leaf : leaves) {
    if (!leaf.IsArray()) return;
    sharding.runs.push_back({LeafOf(RandomTiling(leaf.dims())), 1});
  }
  // An empty tuple within a tuple counts as a leaf of the sharding.
  if (leaves.empty() || static_cast<int64_t>(leaves.size()) != shape.leaf_count()) return;
  module->SetAttr(instruction.id(), Attr::kSharding, EncodeSharding(&module->context(), sharding).value);
}

void RandomShardings::AddTo(ShardedInstructions which, Module* module) {
  module->header().num_partitions = devices_;
  const Instruction root = module->entry().root();
  std::vector<Instruction> chosen;
  for (Instruction i : module->entry().instructions()) {
    const bool parameter = i.opcode() == Opcode::kParameter;
    const bool chooses = parameter                             ? Chance(0.8)
                         : which == ShardedInstructions::kAll  ? Chance(0.95)
                         : i.id() == root.id()                 ? Chance(0.5)
                         : which == ShardedInstructions::kSome ? Chance(0.3)
                                                               : false;
    if (chooses) chosen.push_back(i);
  }
  for (Instruction i : chosen) AddTo(i, module);
}

}  // namespace hlokit::properties

// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/tiling.h"

#include <algorithm>
#include <optional>

#include "ir/core/text_writer.h"
#include "ir/sharding/sharding.h"

namespace hlokit::lazy {

Tiling Tiling::FromArgs(const EncodedArgs& args, size_t first) {
  Tiling tiling;
  const Dims tiles = args[first].ints(), devices = args[first + 1].ints();
  tiling.tiles.assign(tiles.begin(), tiles.end());
  tiling.devices.assign(devices.begin(), devices.end());
  tiling.replicate_last = args[first + 2].scalar().ToBool();
  return tiling;
}

void Tiling::AppendTo(ArgEncoder* encoder) const {
  encoder->Ints(tiles);
  encoder->Ints(devices);
  encoder->Number(Scalar(replicate_last));
}

bool Tiling::IsValidFor(Shape shape) const {
  if (tiles.empty()) return devices.empty();
  if (!shape.IsArray() || static_cast<int64_t>(tiles.size()) != shape.rank() + int64_t{replicate_last}) return false;
  const std::optional<int64_t> count = DeviceCount(tiles);
  if (count != static_cast<int64_t>(devices.size()) || count == 1) return false;
  std::vector<int64_t> sorted = devices;
  std::sort(sorted.begin(), sorted.end());
  return sorted.front() >= 0 && std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

ListId Tiling::Encode(Context* context) const {
  ShardingLeaf leaf;
  if (!tiles.empty()) {
    leaf.kind = ShardingKind::kTiled;
    leaf.tiles.dims = tiles;
    leaf.tiles.devices = devices;
    if (replicate_last) leaf.subgroups.push_back(SubgroupType::kReplicated);
  }
  return EncodeSharding(context, Sharding::Of(std::move(leaf)));
}

std::string Tiling::Text() const {
  Context context;
  std::string text;
  TextWriter out(&text);
  PrintSharding(out, context, Encode(&context));
  out.Flush();
  return text;
}

}  // namespace hlokit::lazy

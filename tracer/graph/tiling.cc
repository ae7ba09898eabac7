// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/tiling.h"

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

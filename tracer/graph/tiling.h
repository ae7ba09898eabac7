// SPDX-License-Identifier: Apache-2.0
// How a tensor is tiled over devices, as an argument of nodes: that of xla::custom_sharding and of sharded data.
#ifndef HLOKIT_TRACER_GRAPH_TILING_H_
#define HLOKIT_TRACER_GRAPH_TILING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/core/ids.h"
#include "ir/graph/context.h"
#include "ir/types/shape.h"
#include "tracer/graph/encoded_args.h"

namespace hlokit::lazy {

struct Tiling {
  // Number of tiles along each dimension, and, if `replicate_last`, of the devices that hold a tile. Empty: replicated.
  std::vector<int64_t> tiles;
  std::vector<int64_t> devices;  // row-major
  bool replicate_last = false;

  // Reads the arguments from `first` on that AppendTo wrote.
  static Tiling FromArgs(const EncodedArgs& args, size_t first);
  void AppendTo(ArgEncoder* encoder) const;
  bool IsValidFor(Shape shape) const;
  // Returns the interned sharding. Requires: it is valid for some shape.
  ListId Encode(Context* context) const;
  // Returns the text of the HLO attribute, `{devices=[2,1]0,1}`.
  std::string Text() const;

  friend bool operator==(const Tiling&, const Tiling&) = default;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_TILING_H_

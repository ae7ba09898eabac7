// SPDX-License-Identifier: Apache-2.0
// Custom-calls of several windows of one array, each a step further than the one before: one exchange with neighbors
// serves all.
//
//   _SPMDInternalOp_MultiSlice    result k is the slice [start + k, limit + k) of one dimension, k = 0 … amount
//   _SPMDInternalOp_MultiRotate   result k is rotated to the left by left_amount - k, k = 0 … left_amount +
//   right_amount
#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "ir/sharding/tile_assignment.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {
namespace {

// Returns the first number of "key=7" or "key=[7,…]" in a configuration; nullopt if it has none.
std::optional<int64_t> NumberOf(std::string_view config, std::string_view key) {
  for (size_t at = config.find(key); at != config.npos; at = config.find(key, at + 1)) {
    if (at > 0 && config[at - 1] != ',') continue;
    std::string_view rest = config.substr(at + key.size());
    if (!rest.starts_with("=")) continue;
    rest.remove_prefix(1);
    if (rest.starts_with("[")) rest.remove_prefix(1);
    int64_t number = 0;
    const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (parsed.ec != std::errc()) return std::nullopt;
    return number;
  }
  return std::nullopt;
}

}  // namespace

bool ComputationPartitioner::MultiSlice(Instruction i) {
  const std::string_view target = i.string_attr(Attr::kCustomCallTarget), config = i.string_attr(Attr::kBackendConfig);
  const bool rotates = target == "_SPMDInternalOp_MultiRotate";
  if ((!rotates && target != "_SPMDInternalOp_MultiSlice") || i.operand_count() != 1 || !i.shape().IsTuple()) {
    return false;
  }
  const Shape input = i.operand(0).shape();
  const std::vector<Shape> results = Leaves(i.shape());
  const std::optional<int64_t> dim = NumberOf(config, "dimension");
  if (!dim || *dim < 0 || !input.IsArray() || *dim >= input.rank() || results.empty()) return false;
  const auto d = ToSize(*dim);
  const int64_t size = input.dim(*dim), output = results[0].dim(*dim);
  const auto count = static_cast<int64_t>(results.size());
  // The first element of the first result, relative to that of the array; those of the others follow.
  int64_t first = 0;
  if (rotates) {
    const std::optional<int64_t> left = NumberOf(config, "left_amount"), right = NumberOf(config, "right_amount");
    if (!left || !right || *left < 0 || *right < 0 || *left > size || *right > size || count != *left + *right + 1 ||
        output != size) {
      return false;
    }
    first = -*right;
  } else {
    const std::optional<int64_t> start = NumberOf(config, "start_indices"), stride = NumberOf(config, "strides");
    const std::optional<int64_t> amount = NumberOf(config, "amount");
    const bool other_dims = input.rank() != 1;  // their starts are in the lists too
    if (!start || !amount || stride.value_or(1) != 1 || other_dims || count != *amount + 1 || *start < 0 ||
        *start > size - output - *amount) {
      return false;
    }
    first = *start;
  }
  const LeafTilings wanted = WantedTilings(i);
  if (IsManual(wanted)) return false;
  const TilingRef tiling = wanted[0];
  const bool same = std::all_of(wanted.begin(), wanted.end(), [&](TilingRef t) { return t == tiling; });
  const bool divided = same && tiling->tiled() && tiling->unreduced.empty() && tiling->tiles(*dim) > 1;
  const AxisList axes = divided ? tiling->dims[d] : AxisList();
  const int64_t tiles = SizeOf(axes), part = CeilOfRatio(size, tiles);
  if (divided && rotates && (size % tiles != 0 || std::max(-first, count - 1 + first) > part)) return false;
  const TilingRef operand = divided ? tiling : Unsharded(tiling, input.rank());
  InstructionId array = Reshard(LeafOf(i.operand(0)), operand);
  if (rotates) {
    // What comes from both sides.
    const int64_t before = -first, after = count - 1 - before;
    std::vector<int64_t> previous, next;
    for (int64_t t = 0; t < tiles; ++t) {
      previous.push_back((t + tiles - 1) % tiles);
      next.push_back((t + 1) % tiles);
    }
    const int64_t local = builder().shape_of(array).dim(*dim);
    std::vector<InstructionId> pieces;
    const auto piece = [&](int64_t begin, int64_t end, const std::vector<int64_t>& source) {
      if (begin == end) return;
      if (divided) {
        pieces.push_back(emitter_.SliceFromTiles(array, *dim, begin, end, *tiling, axes, source));
        return;
      }
      std::vector<int64_t> limits = ToVector(builder().shape_of(array).dims()), starts(limits.size(), 0);
      starts[d] = begin;
      limits[d] = end;
      pieces.push_back(emitter_.Slice(array, starts, limits));
    };
    piece(local - before, local, previous);
    pieces.push_back(array);
    piece(0, after, next);
    array = emitter_.Concatenate(pieces, *dim);
  } else if (divided) {
    HaloWindow window;
    window.input = size;
    window.output = window.end = output;
    window.low = -first;
    window.size = count;
    array = Assemble(array, *dim, window, *tiling, axes, InstructionId());
  } else {
    std::vector<int64_t> limits = {first + output + count - 1};
    array = emitter_.Slice(array, {first}, limits);
  }
  Value leaves(results.size());
  for (int64_t k = 0; k < count; ++k) {
    // Of a rotation the first result is the furthest to the left.
    const int64_t begin = rotates ? count - 1 - k : k;
    std::vector<int64_t> limits = ToVector(builder().shape_of(array).dims()), starts(limits.size(), 0);
    starts[d] = begin;
    limits[d] = begin + CeilOfRatio(output, tiles);
    leaves[ToSize(k)] = {emitter_.Slice(array, starts, limits), results[ToSize(k)], operand};
  }
  Finish(i, std::move(leaves));
  return true;
}

}  // namespace hlokit::spmd

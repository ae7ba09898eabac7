// SPDX-License-Identifier: Apache-2.0
// Custom-calls of windows of one array: one exchange with neighbors serves all results. Their configurations are texts
// such as "dimension=0,amount=2,start_indices=[1,0]".
//
//   _SPMDInternalOp_MultiSlice    result k is the slice [start + k, limit + k) of one dimension, k = 0 … amount, and of
//                                 the others the slice that the lists give
//   _SPMDInternalOp_MultiRotate   result k is rotated to the left by left_amount - k, k = 0 … left_amount +
//                                 right_amount
//   _SPMDInternalOp_MultiPad      result k has amt - k elements of operand 1 before, and k behind, k = 0 … amt
//   _SPMDInternalOp_RotateRight   one result, rotated to the right by amount
#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "ir/sharding/tile_assignment.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {
namespace {

// Returns the numbers of "key=7" or "key=[7,8]" in a configuration; none if it has none.
std::vector<int64_t> NumbersOf(std::string_view config, std::string_view key) {
  std::vector<int64_t> numbers;
  for (size_t at = config.find(key); at != config.npos; at = config.find(key, at + 1)) {
    if (at > 0 && config[at - 1] != ',') continue;
    std::string_view rest = config.substr(at + key.size());
    if (!rest.starts_with("=")) continue;
    rest.remove_prefix(1);
    const bool list = rest.starts_with("[");
    if (list) rest.remove_prefix(1);
    for (;;) {
      int64_t number = 0;
      const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), number);
      if (parsed.ec != std::errc()) return numbers;
      numbers.push_back(number);
      rest.remove_prefix(static_cast<size_t>(parsed.ptr - rest.data()));
      if (!list || !rest.starts_with(",")) return numbers;
      rest.remove_prefix(1);
      while (rest.starts_with(" ")) rest.remove_prefix(1);
    }
  }
  return numbers;
}

std::optional<int64_t> NumberOf(std::string_view config, std::string_view key) {
  const std::vector<int64_t> numbers = NumbersOf(config, key);
  return numbers.empty() ? std::nullopt : std::optional(numbers[0]);
}

// What a custom-call says.
struct Windows {
  enum class Kind { kSlice, kRotate, kPad };
  Kind kind = Kind::kSlice;
  int64_t dim = 0;
  int64_t first = 0;           // element of the first result, relative to that of the array; others follow
  std::vector<int64_t> begin;  // by dimension, of slices; those along `dim` do not count
};

// Returns it if the results are such windows of the array.
std::optional<Windows> WindowsOf(Instruction i) {
  const std::string_view target = i.string_attr(Attr::kCustomCallTarget), config = i.string_attr(Attr::kBackendConfig);
  Windows windows;
  if (target == "_SPMDInternalOp_MultiRotate") {
    windows.kind = Windows::Kind::kRotate;
  } else if (target == "_SPMDInternalOp_MultiPad") {
    windows.kind = Windows::Kind::kPad;
  } else if (target != "_SPMDInternalOp_MultiSlice") {
    return std::nullopt;
  }
  const bool pads = windows.kind == Windows::Kind::kPad;
  if (i.operand_count() != (pads ? 2 : 1) || !i.shape().IsTuple()) return std::nullopt;
  const Shape input = i.operand(0).shape();
  const std::vector<Shape> results = Leaves(i.shape());
  const std::optional<int64_t> dim = NumberOf(config, "dimension");
  if (!dim || *dim < 0 || !input.IsArray() || *dim >= input.rank() || results.empty()) return std::nullopt;
  for (const Shape result : results) {
    if (!result.IsArray() || result.rank() != input.rank() || !std::ranges::equal(result.dims(), results[0].dims())) {
      return std::nullopt;
    }
  }
  windows.dim = *dim;
  windows.begin.assign(ToSize(input.rank()), 0);
  const int64_t size = input.dim(*dim), output = results[0].dim(*dim), count = std::ssize(results);
  const auto others_are_whole = [&] {
    for (int64_t d = 0; d < input.rank(); ++d) {
      if (d != *dim && results[0].dim(d) != input.dim(d)) return false;
    }
    return true;
  };
  if (windows.kind == Windows::Kind::kRotate) {
    const std::optional<int64_t> left = NumberOf(config, "left_amount"), right = NumberOf(config, "right_amount");
    if (!left || !right || *left < 0 || *right < 0 || *left > size || *right > size || count != *left + *right + 1 ||
        output != size || !others_are_whole()) {
      return std::nullopt;
    }
    windows.first = -*right;
    return windows;
  }
  if (pads) {
    const std::optional<int64_t> amount = NumberOf(config, "amt");
    if (!amount || *amount < 0 || count != *amount + 1 || output != size + *amount || !others_are_whole() ||
        !i.operand(1).shape().IsArray() || i.operand(1).shape().rank() != 0) {
      return std::nullopt;
    }
    windows.first = -*amount;
    return windows;
  }
  const std::vector<int64_t> start = NumbersOf(config, "start_indices"), strides = NumbersOf(config, "strides");
  const std::optional<int64_t> amount = NumberOf(config, "amount");
  if (std::ssize(start) != input.rank() || !amount || *amount < 0 || count != *amount + 1) return std::nullopt;
  if (std::ranges::any_of(strides, [](int64_t stride) { return stride != 1; })) return std::nullopt;
  for (int64_t d = 0; d < input.rank(); ++d) {
    const int64_t last = input.dim(d) - results[0].dim(d) - (d == *dim ? *amount : 0);
    if (start[ToSize(d)] < 0 || start[ToSize(d)] > last) return std::nullopt;
  }
  windows.first = start[ToSize(*dim)];
  windows.begin = start;
  return windows;
}

}  // namespace

InstructionId ComputationPartitioner::SliceAlong(InstructionId array, int64_t dim, int64_t begin, int64_t end) {
  std::vector<int64_t> limits = ToVector(builder().shape_of(array).dims()), starts(limits.size(), 0);
  starts[ToSize(dim)] = begin;
  limits[ToSize(dim)] = end;
  return emitter_.Slice(array, starts, limits);
}

// Puts before a part what the one before it ends with, and behind it what the next one begins with, around the ring.
InstructionId ComputationPartitioner::WithNeighbors(InstructionId array, int64_t dim, int64_t before, int64_t after,
                                                    const Tiling& tiling) {
  const AxisList axes = tiling.tiled() ? tiling.dims[ToSize(dim)] : AxisList();
  const int64_t tiles = SizeOf(axes), local = builder().shape_of(array).dim(dim);
  std::vector<int64_t> previous, next;
  for (int64_t t = 0; t < tiles; ++t) {
    previous.push_back((t + tiles - 1) % tiles);
    next.push_back((t + 1) % tiles);
  }
  std::vector<InstructionId> pieces;
  const auto piece = [&](int64_t begin, int64_t end, const std::vector<int64_t>& source) {
    if (begin == end) return;
    pieces.push_back(tiles > 1 ? emitter_.SliceFromTiles(array, dim, begin, end, tiling, axes, source)
                               : SliceAlong(array, dim, begin, end));
  };
  piece(local - before, local, previous);
  pieces.push_back(array);
  piece(0, after, next);
  return emitter_.Concatenate(pieces, dim);
}

bool ComputationPartitioner::MultiSlice(Instruction i) {
  const std::optional<Windows> windows = WindowsOf(i);
  if (!windows) return false;
  const Shape input = i.operand(0).shape();
  const std::vector<Shape> results = Leaves(i.shape());
  const int64_t dim = windows->dim, output = results[0].dim(dim), count = std::ssize(results);
  const LeafTilings wanted = WantedTilings(i);
  if (IsManual(wanted)) return false;
  TilingRef tiling = wanted[0];
  const bool same = std::all_of(wanted.begin(), wanted.end(), [&](TilingRef t) { return t == tiling; });
  const bool rotates = windows->kind == Windows::Kind::kRotate;
  if (!same || !tiling->tiled() || !tiling->unreduced.empty()) tiling = Unsharded(tiling, input.rank());
  const int64_t before = rotates ? -windows->first : 0, after = rotates ? count - 1 - before : 0;
  const auto part = [&] { return CeilOfRatio(input.dim(dim), tiling->tiled() ? tiling->tiles(dim) : 1); };
  // Behind the last element of uneven parts is padding, which must not come around.
  const bool uneven = tiling->tiled() && input.dim(dim) % tiling->tiles(dim) != 0;
  if (rotates && (uneven || std::max(before, after) > part())) {
    tiling = Unsharded(tiling, input.rank());
  }
  const auto tiles_of = [&](int64_t d) { return tiling->tiled() ? tiling->tiles(d) : 1; };
  InstructionId array = Reshard(LeafOf(i.operand(0)), tiling);
  const auto assemble = [&](int64_t d, int64_t low, int64_t size, InstructionId fill) {
    HaloWindow window;
    window.input = input.dim(d);
    window.output = window.end = results[0].dim(d);
    window.low = low;
    window.size = size;
    array = Assemble(array, d, window, *tiling, tiling->dims[ToSize(d)], fill);
  };
  for (int64_t d = 0; d < input.rank() && windows->kind == Windows::Kind::kSlice; ++d) {
    const int64_t begin = windows->begin[ToSize(d)];
    if (d == dim || (begin == 0 && results[0].dim(d) == input.dim(d))) continue;
    if (tiles_of(d) > 1) {
      assemble(d, -begin, 1, InstructionId());
    } else {
      array = SliceAlong(array, d, begin, begin + results[0].dim(d));
    }
  }
  if (rotates) {
    array = WithNeighbors(array, dim, before, after, *tiling);
  } else {
    InstructionId fill;
    if (windows->kind == Windows::Kind::kPad) {
      fill = Reshard(LeafOf(i.operand(1)), Unsharded(LeafOf(i.operand(1)).tiling, 0));
    }
    if (tiles_of(dim) > 1) {
      assemble(dim, -windows->first, count, fill);
    } else if (fill.valid()) {
      std::vector<int64_t> amounts(ToSize(input.rank()), 0);
      amounts[ToSize(dim)] = count - 1;
      array = emitter_.Pad(array, fill, amounts, amounts);
    } else {
      array = SliceAlong(array, dim, windows->first, windows->first + output + count - 1);
    }
  }
  Value leaves(results.size());
  for (int64_t k = 0; k < count; ++k) {
    // Of a rotation the first result is the furthest to the left.
    const int64_t begin = rotates ? count - 1 - k : k;
    const InstructionId result = SliceAlong(array, dim, begin, begin + CeilOfRatio(output, tiles_of(dim)));
    leaves[ToSize(k)] = {result, results[ToSize(k)], tiling};
  }
  Finish(i, std::move(leaves));
  return true;
}

bool ComputationPartitioner::RotateRight(Instruction i) {
  const std::string_view config = i.string_attr(Attr::kBackendConfig);
  const std::optional<int64_t> given = NumberOf(config, "dimension"), amount = NumberOf(config, "amount");
  const Shape shape = i.shape();
  if (i.string_attr(Attr::kCustomCallTarget) != "_SPMDInternalOp_RotateRight" || i.operand_count() != 1 || !given ||
      !amount || !shape.IsArray() || *given < 0 || *given >= shape.rank() || !Compatible(shape, i.operand(0).shape())) {
    return false;
  }
  const LeafTilings wanted = WantedTilings(i);
  if (IsManual(wanted)) return false;
  TilingRef tiling = wanted[0];
  if (!tiling->tiled() || !tiling->unreduced.empty()) tiling = Unsharded(tiling, shape.rank());
  const int64_t dim = *given, size = shape.dim(dim), tiles = tiling->tiled() ? tiling->tiles(dim) : 1;
  const int64_t shift = size == 0 ? 0 : (*amount % size + size) % size;
  InstructionId array = Reshard(LeafOf(i.operand(0)), tiling);
  if (shift != 0 && tiles == 1) {
    array = emitter_.Concatenate({SliceAlong(array, dim, size - shift, size), SliceAlong(array, dim, 0, size - shift)},
                                 dim);
  } else if (shift != 0 && size % tiles == 0) {
    const int64_t part = size / tiles, hops = shift / part, rest = shift % part;
    const AxisList& axes = tiling->dims[ToSize(dim)];
    const auto piece = [&](int64_t begin, int64_t end, int64_t back) {
      std::vector<int64_t> source;
      for (int64_t t = 0; t < tiles; ++t) source.push_back((t + tiles - back) % tiles);
      return back % tiles == 0 ? SliceAlong(array, dim, begin, end)
                               : emitter_.SliceFromTiles(array, dim, begin, end, *tiling, axes, source);
    };
    std::vector<InstructionId> pieces;
    if (rest != 0) pieces.push_back(piece(part - rest, part, hops + 1));
    pieces.push_back(piece(0, part - rest, hops));
    array = emitter_.Concatenate(pieces, dim);
  } else if (shift != 0) {
    // The beginning comes from the end of the array.
    const auto window = [&](int64_t low, int64_t begin, int64_t end) {
      HaloWindow w;
      w.input = w.output = size;
      w.low = low;
      w.begin = begin;
      w.end = end;
      return Assemble(array, dim, w, *tiling, tiling->dims[ToSize(dim)], InstructionId());
    };
    const InstructionId from_end = window(shift - size, 0, shift), moved = window(shift, shift, size);
    const Shape local = builder().shape_of(moved);
    const InstructionId tile = emitter_.TileNumber(*tiling, tiling->dims[ToSize(dim)]);
    const InstructionId position =
        emitter_.Plus(emitter_.Iota(local.dims(), dim), emitter_.Splat(local, emitter_.Times(tile, local.dim(dim))));
    const InstructionId limit = emitter_.Splat(local, emitter_.Constant(shift));
    array = emitter_.Select(builder().MakeCompare(ComparisonDirection::kGe, position, limit), moved, from_end);
  }
  Finish(i, {{array, shape, tiling}});
  return true;
}

}  // namespace hlokit::spmd

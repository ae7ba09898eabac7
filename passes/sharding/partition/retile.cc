// SPDX-License-Identifier: Apache-2.0
// Moves between parts whose borders differ, where sizes do not divide: each device gets what it lacks from neighbors,
// instead of all of the array.
#include <algorithm>
#include <vector>

#include "ir/ops/opcode.h"
#include "ir/sharding/tile_assignment.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {
namespace {

bool AreAlike(const Tiling& a, const Tiling& b) {
  return a.tiled() && b.tiled() && a.order == b.order && a.device_count == b.device_count && a.manual == b.manual &&
         a.unreduced.empty() && b.unreduced.empty();
}

// Dimensions of the operand and the result of a reshape that have the same elements: none smaller have.
struct DimGroup {
  int64_t in_begin, in_end, out_begin, out_end;
  int64_t size;
};

std::vector<DimGroup> GroupsOf(Shape in, Shape out) {
  std::vector<DimGroup> groups;
  for (int64_t a = 0, b = 0; a < in.rank() || b < out.rank();) {
    DimGroup group{a, a, b, b, 1};
    int64_t left = 1, right = 1;
    do {
      if ((left <= right && a < in.rank()) || b == out.rank()) {
        left *= in.dim(a++);
      } else {
        right *= out.dim(b++);
      }
    } while (left != right && (a < in.rank() || b < out.rank()));
    group.in_end = a;
    group.out_end = b;
    group.size = left;
    groups.push_back(group);
  }
  return groups;
}

// Of one side of a group: the axes of its first dimension that is not 1, and the elements of a device. Returns false if
// other dimensions are divided.
bool ReadSide(Shape shape, const Tiling& tiling, int64_t begin, int64_t end, AxisList* axes, int64_t* part) {
  *part = 1;
  bool first = true;
  for (int64_t d = begin; d < end; ++d) {
    const AxisList& own = tiling.dims[ToSize(d)];
    if (!own.empty() && !first) return false;
    *part *= CeilOfRatio(shape.dim(d), SizeOf(own));
    if (!first || (own.empty() && shape.dim(d) == 1)) continue;
    *axes = own;
    first = false;
  }
  return true;
}

}  // namespace

bool ComputationPartitioner::ReshapeByHalo(Instruction i, TilingRef to) {
  if (i.opcode() != Opcode::kReshape || !i.shape().IsArray() || i.shape().element_count() == 0) return false;
  const Leaf& leaf = LeafOf(i.operand(0));
  if (leaf.source.valid() || !AreAlike(*leaf.tiling, *to)) return false;
  struct Move {
    int64_t dim;  // of the array with a dimension for each group
    AxisList axes;
    HaloWindow window;
  };
  std::vector<Move> moves;
  std::vector<int64_t> sizes;
  double exchanged = 0, gathered = 0;
  for (const DimGroup& group : GroupsOf(leaf.shape, i.shape())) {
    AxisList before, after;
    int64_t in_part = 1, out_part = 1;
    if (!ReadSide(leaf.shape, *leaf.tiling, group.in_begin, group.in_end, &before, &in_part) ||
        !ReadSide(i.shape(), *to, group.out_begin, group.out_end, &after, &out_part) || before != after) {
      return false;
    }
    const int64_t tiles = SizeOf(before);
    if (in_part != out_part) {
      HaloWindow window;
      window.input = tiles * in_part;
      window.output = tiles * out_part;
      window.end = group.size;
      const HaloPlan plan = PlanHalo(window, tiles);
      exchanged += plan.exchanged / static_cast<double>(in_part);
      gathered += static_cast<double>(tiles - 1);
      moves.push_back({static_cast<int64_t>(sizes.size()), std::move(before), window});
    }
    sizes.push_back(in_part);
  }
  if (moves.empty() || exchanged >= gathered) return false;
  InstructionId array = emitter_.Reshape(leaf.id, sizes);
  for (const Move& move : moves) array = Assemble(array, move.dim, move.window, *to, move.axes, InstructionId());
  Finish(i, {{emitter_.Reshape(array, LocalSizes(i.shape().dims(), *to)), i.shape(), to}});
  return true;
}

InstructionId ComputationPartitioner::PartByHalo(const Leaf& leaf, TilingRef to) {
  const Tiling& from = *leaf.tiling;
  if (leaf.tiling == to || !leaf.shape.IsArray() || !AreAlike(from, *to)) return InstructionId();
  struct Move {
    int64_t dim;
    AxisList more;
    HaloWindow window;
    int64_t part;
  };
  std::vector<Move> moves;
  for (int64_t d = 0; d < leaf.shape.rank(); ++d) {
    const AxisList& have = from.dims[ToSize(d)];
    AxisList rest = to->dims[ToSize(d)];
    if (have == rest) continue;
    if (!IsPrefix(have, rest) || !TakeMajor(&rest, SizeOf(have))) return InstructionId();
    const int64_t tiles = SizeOf(have), inner = SizeOf(rest);
    const int64_t part = CeilOfRatio(leaf.shape.dim(d), tiles * inner);
    HaloWindow window;
    window.input = window.end = leaf.shape.dim(d);
    window.output = tiles * inner * part;
    if (tiles == 1 || inner * part == CeilOfRatio(window.input, tiles)) return InstructionId();  // a slice
    moves.push_back({d, std::move(rest), window, part});
  }
  if (moves.size() != 1) return InstructionId();
  const Move& move = moves[0];
  const AxisList& have = from.dims[ToSize(move.dim)];
  const int64_t tiles = SizeOf(have);
  if (PlanHalo(move.window, tiles).exchanged >=
      static_cast<double>((tiles - 1) * builder().shape_of(leaf.id).dim(move.dim))) {
    return InstructionId();
  }
  const InstructionId array = Assemble(leaf.id, move.dim, move.window, from, have, InstructionId());
  std::vector<int64_t> local = ToVector(builder().shape_of(array).dims());
  local[ToSize(move.dim)] = move.part;
  std::vector<InstructionId> starts(local.size(), emitter_.Constant(0));
  starts[ToSize(move.dim)] = emitter_.Times(emitter_.TileNumber(from, move.more), move.part);
  return emitter_.DynamicSlice(array, starts, local);
}

}  // namespace hlokit::spmd

// SPDX-License-Identifier: Apache-2.0
// Dynamic-update-slices whose starts are constants. The update is then a window of the result, as an operand of a
// concatenation is, and may be divided along the dimensions that it changes: each device gets what belongs into its
// part of the result from where that is.
#include <algorithm>
#include <optional>
#include <utility>

#include "ir/graph/attribute_views.h"
#include "passes/annotations/annotations.h"
#include "passes/rewrite/splat.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {
namespace {

constexpr int64_t kFirstStart = 2;

// Returns the starts, clamped; nullopt if they are not known.
std::optional<std::vector<int64_t>> ConstantStarts(Instruction i) {
  const Shape array = i.operand(0).shape(), update = i.operand(1).shape();
  if (i.operand_count() != kFirstStart + array.rank()) return std::nullopt;
  std::vector<int64_t> starts;
  for (int64_t d = 0; d < array.rank(); ++d) {
    const Instruction start = i.operand(kFirstStart + d);
    if (!start.shape().IsScalar()) return std::nullopt;
    const std::optional<int64_t> value = IntegerConstant(start);
    if (!value) return std::nullopt;
    starts.push_back(std::clamp<int64_t>(*value, 0, std::max<int64_t>(array.dim(d) - update.dim(d), 0)));
  }
  return starts;
}

// Returns true for a slice without strides, which can be looked through.
bool IsPlainSlice(Instruction i) {
  if (i.opcode() != Opcode::kSlice || !i.operand(0).shape().IsArray()) return false;
  const SliceView slice = SliceView::Of(i);
  for (int64_t d = 0; d < slice.rank(); ++d) {
    if (slice.stride(d) != 1) return false;
  }
  return true;
}

}  // namespace

bool ComputationPartitioner::DivideUpdateAsWindow(Instruction i, DividedOp* op) {
  const std::optional<std::vector<int64_t>> starts = ConstantStarts(i);
  if (!starts) return false;
  const Instruction update = i.operand(1);
  const bool through = IsPlainSlice(update);
  const Instruction source = through ? update.operand(0) : update;
  if (through) op->sources[1] = source;
  const Tiling& tiling = *LeafOf(source).tiling;
  bool divided = false;
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    const int64_t offset = through ? SliceView::Of(update).start(d) : 0;
    HaloWindow window;
    window.input = source.shape().dim(d);
    window.output = i.shape().dim(d);
    window.low = (*starts)[ToSize(d)] - offset;
    window.begin = (*starts)[ToSize(d)];
    window.end = window.begin + update.shape().dim(d);
    const size_t f = ToSize(op->rule->operands[0][ToSize(d)][0]);
    op->rule->operands[1][ToSize(d)] = {static_cast<int32_t>(f)};
    op->divisible[f] = true;
    if (window.input == window.output && window.low == 0 && window.end - window.begin == window.output) continue;
    divided = divided || tiling.tiles(d) > 1;
    AddWindow(op, 1, d, window);
  }
  return divided;
}

Value ComputationPartitioner::EmitUpdateAsWindow(const LocalOp& op) {
  const Instruction i = op.whole;
  InstructionId array = op.operands[0], part = op.operands[1];
  const Shape local = builder().shape_of(array);
  // What the update changes of the part: all of a dimension that is divided, of which a mask tells.
  std::vector<int64_t> from(ToSize(local.rank()), 0), to = ToVector(local.dims());
  struct Bound {
    int64_t dim, begin, end;
    const AxisList* axes;
  };
  std::vector<Bound> bounds;
  for (const DividedOp::Window& w : *op.windows) {
    const AxisList& axes = op.choice->axes[w.factor];
    const HaloWindow& window = w.window;
    if (axes.empty()) {
      std::vector<int64_t> limits = ToVector(builder().shape_of(part).dims()), begins(limits.size(), 0);
      begins[ToSize(w.dim)] = window.begin - window.low;
      limits[ToSize(w.dim)] = window.end - window.low;
      part = emitter_.Slice(part, begins, limits);
      from[ToSize(w.dim)] = window.begin;
      to[ToSize(w.dim)] = window.end;
    } else {
      part = Assemble(part, w.dim, window, op.choice->frame, axes, InstructionId());
      if (window.begin != 0 || window.end != window.output) bounds.push_back({w.dim, window.begin, window.end, &axes});
    }
  }
  if (!bounds.empty()) {
    const InstructionId old = emitter_.Slice(array, from, to);
    const Shape band = builder().shape_of(old);
    InstructionId mask;
    for (const Bound& bound : bounds) {
      const InstructionId tile = emitter_.TileNumber(op.choice->frame, *bound.axes);
      const InstructionId first = emitter_.Times(tile, local.dim(bound.dim));
      const InstructionId begin = emitter_.Splat(band, first);
      const InstructionId position = emitter_.Plus(emitter_.Iota(band.dims(), bound.dim), begin);
      const auto compare = [&](ComparisonDirection direction, int64_t value) {
        const InstructionId other = emitter_.Splat(band, emitter_.Constant(value));
        const InstructionId made = builder().MakeCompare(direction, position, other);
        mask = mask.valid() ? builder().Make(Opcode::kAnd, builder().shape_of(made), {mask, made}) : made;
      };
      if (bound.begin > 0) compare(ComparisonDirection::kGe, bound.begin);
      if (bound.end < i.shape().dim(bound.dim)) compare(ComparisonDirection::kLt, bound.end);
    }
    part = emitter_.Select(mask, part, old);
  }
  if ((*op.sources)[1] != i.operand(1)) MergeMetadata(module_, i.operand(1).id(), part);
  std::vector<InstructionId> operands = {array, part};
  for (const int64_t start : from) operands.push_back(emitter_.Constant(start));
  return {{Clone(i, operands, local), i.shape(), op.results[0]}};
}

}  // namespace hlokit::spmd

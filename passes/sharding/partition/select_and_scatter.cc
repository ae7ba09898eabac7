// SPDX-License-Identifier: Apache-2.0
// Select-and-scatter along divided dimensions: a device computes the windows that reach its part of the result, of
// sources and of an operand that it completes from neighbors, and keeps its part.
#include <algorithm>
#include <optional>
#include <vector>

#include "ir/graph/attribute_views.h"
#include "ir/sharding/tile_assignment.h"
#include "passes/sharding/partition/identity.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {
namespace {

int64_t CeilDivide(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

// Of window `o` the first element is at o * stride - padding. Relative to the first element of a part of P elements,
// which is a multiple of the stride, windows from `first` on reach it: P / stride + extra.
struct Reach {
  explicit Reach(const WindowDim& w)
      : first(CeilDivide(w.padding_low - w.size + 1, w.stride)),
        extra(CeilDivide(w.padding_low, w.stride) - first),
        before(w.padding_low - first * w.stride) {}
  int64_t first;
  int64_t extra;
  int64_t before;  // elements of the first window before the part
};

// The operation whose identity a selection takes only if there is nothing else; the first of equal elements stays
// selected, or the last.
struct Selection {
  Opcode identity_of;
  bool first_stays;
};

std::optional<Selection> SelectionOf(Computation select) {
  const Instruction root = select.root();
  if (root.opcode() != Opcode::kCompare || select.parameter_count() != 2 || root.operand(0) != select.parameter(0) ||
      root.operand(1) != select.parameter(1)) {
    return std::nullopt;
  }
  switch (root.enum_attr(Attr::kDirection, ComparisonDirection::kEq)) {
    case ComparisonDirection::kGe:
      return Selection{Opcode::kMaximum, true};
    case ComparisonDirection::kGt:
      return Selection{Opcode::kMaximum, false};
    case ComparisonDirection::kLe:
      return Selection{Opcode::kMinimum, true};
    case ComparisonDirection::kLt:
      return Selection{Opcode::kMinimum, false};
    case ComparisonDirection::kEq:
    case ComparisonDirection::kNe:
      break;
  }
  return std::nullopt;
}

}  // namespace

bool ComputationPartitioner::DivideSelectAndScatter(Instruction i, DividedOp* op) {
  const WindowView window = WindowView::Of(i);
  const std::optional<Opcode> scatter = BinaryOpcodeOf(i.computation_attr(Attr::kScatter));
  const std::optional<Selection> selection = SelectionOf(i.computation_attr(Attr::kSelect));
  const ElementType type = i.shape().element_type();
  if (!scatter || !selection || !HasIdentity(*scatter, type) || !HasIdentity(selection->identity_of, type)) return true;
  for (int64_t d = 0; d < i.shape().rank() && d < window.rank(); ++d) {
    const WindowDim w = window[d];
    const size_t f = ToSize(op->rule->operands[0][ToSize(d)][0]);
    if (op->rule->factors[f].kind != FactorKind::kWindow || w.base_dilation != 1 || w.window_dilation != 1) continue;
    // Where elements are missing the others of the window must be preferred to what stands for them.
    if (w.reversal || w.padding_low < 0 || w.padding_high < 0) continue;
    if (selection->first_stays ? w.padding_low > 0 : w.padding_high > 0) continue;
    const int64_t size = i.shape().dim(d);
    const auto fits = [&](TilingRef tiling) {
      return !tiling->tiled() || CeilOfRatio(size, tiling->tiles(d)) % w.stride == 0;
    };
    if (!fits(op->results[0]) || !fits(LeafOf(i.operand(0)).tiling) || !fits(LeafOf(i.operand(1)).tiling)) continue;
    const Reach reach(w);
    // Windows beyond the results that count are computed too.
    constexpr int64_t kAll = int64_t{1} << 60;
    HaloWindow elements;
    elements.input = elements.output = size;
    elements.end = kAll;
    elements.low = reach.before;
    elements.size = std::max((reach.extra - 1) * w.stride + w.size, reach.before) + 1;
    HaloWindow sources;
    sources.input = i.operand(1).shape().dim(d);
    sources.output = CeilOfRatio(size, w.stride);
    sources.end = kAll;
    sources.low = -reach.first;
    sources.size = reach.extra + 1;
    AddWindow(op, 0, d, elements);
    if (op->divisible[f]) AddWindow(op, 1, d, sources);
  }
  return true;
}

Value ComputationPartitioner::EmitSelectAndScatter(const LocalOp& op) {
  const Instruction i = op.whole;
  const WindowView window = WindowView::Of(i);
  const ElementType type = i.shape().element_type();
  bool fits = true;
  for (int64_t d = 0; d < i.shape().rank() && d < window.rank(); ++d) {
    if (IsWindowed(op, 0, d))
      fits = fits && op.results[0]->tiled() && builder().shape_of(op.operands[0]).dim(d) % window[d].stride == 0;
  }
  if (!fits) {
    // Axes that neither the operands nor the result had.
    std::vector<InstructionId> whole;
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      const Shape shape = i.operand(k).shape();
      const TilingRef tiling = state_.tilings.Intern(TilingFor(*op.rule, *op.choice, op.rule->operands[ToSize(k)]));
      whole.push_back(emitter_.Reshard(op.operands[ToSize(k)], shape, tiling, Unsharded(tiling, shape.rank())));
    }
    const TilingRef all = Unsharded(op.results[0], i.shape().rank());
    return {{emitter_.Reshard(Clone(i, whole, i.shape()), i.shape(), all, op.results[0]), i.shape(), op.results[0]}};
  }
  std::vector<InstructionId> operands = op.operands;
  if (!op.windows->empty()) {
    const Opcode selected = SelectionOf(i.computation_attr(Attr::kSelect))->identity_of;
    operands[0] = AssembleOperand(op, 0, MakeIdentity(&emitter_, selected, type));
    const Opcode scatter = *BinaryOpcodeOf(i.computation_attr(Attr::kScatter));
    operands[1] = AssembleOperand(op, 1, MakeIdentity(&emitter_, scatter, type));
  }
  const InstructionId id = Clone(i, operands, builder().shape_of(operands[0]));
  std::vector<int64_t> fields = ToVector(i.list_attr(Attr::kWindow));
  std::vector<int64_t> starts(ToSize(i.shape().rank()), 0), limits = ToVector(builder().shape_of(id).dims());
  const std::vector<int64_t> part = LocalSizes(i.shape().dims(), *op.results[0]);
  for (int64_t d = 0; d < i.shape().rank() && d < window.rank(); ++d) {
    if (!IsWindowed(op, 0, d)) continue;
    fields[ToSize(d * WindowView::kFields + 2)] = fields[ToSize(d * WindowView::kFields + 3)] = 0;
    starts[ToSize(d)] = Reach(window[d]).before;
    limits[ToSize(d)] = starts[ToSize(d)] + part[ToSize(d)];
  }
  module_.SetAttr(id, Attr::kWindow, module_.ListPayload(fields));
  return {{emitter_.Slice(id, starts, limits), i.shape(), op.results[0]}};
}

}  // namespace hlokit::spmd

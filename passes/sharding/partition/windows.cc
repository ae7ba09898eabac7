// SPDX-License-Identifier: Apache-2.0
// Operations with windows along tiled dimensions: slice, pad, reduce-window, convolution, reverse, and concatenate,
// whose operands are windows of the result. Each device assembles the input of its own results from neighbors, and runs
// the operation without padding.
#include <algorithm>
#include <utility>

#include "ir/graph/attribute_views.h"
#include "ir/sharding/tile_assignment.h"
#include "passes/annotations/annotations.h"
#include "passes/sharding/contraction_dims.h"
#include "passes/sharding/partition/identity.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {
namespace {

HaloWindow WindowOf(const WindowDim& w, int64_t input, int64_t output) {
  HaloWindow window;
  window.input = input;
  window.output = window.end = output;
  window.stride = w.stride;
  window.low = w.padding_low;
  window.base_dilation = w.base_dilation;
  window.size = (w.size - 1) * w.window_dilation + 1;
  return window;
}

// Assembles what a device needs of a tiled dimension `dim` for its part of the results.
class HaloAssembler {
 public:
  // `fill`: the padding value; invalid: 0.
  HaloAssembler(Emitter* emitter, int64_t dim, const HaloWindow& window, const Tiling& frame, const AxisList& axes,
                InstructionId fill)
      : emitter_(*emitter),
        dim_(dim),
        window_(window),
        frame_(frame),
        axes_(axes),
        fill_(fill),
        plan_(PlanHalo(window, SizeOf(axes))) {}

  InstructionId Assemble(InstructionId part) {
    const InstructionId fetched = Fetch(part);
    const ElementType type = builder().shape_of(fetched).element_type();
    if (!fill_.valid()) fill_ = emitter_.Scalar(type, 0);
    const InstructionId padded = Pad(fetched, plan_.fetch_begin - plan_.begin, plan_.end - plan_.fetch_end);
    tile_ = emitter_.TileNumber(frame_, axes_);
    InstructionId array = OwnWindow(padded);
    if (plan_.outside) array = FillOutside(array);
    return window_.base_dilation == 1 ? array : Dilate(array);
  }

 private:
  Builder& builder() { return emitter_.builder(); }

  InstructionId Along(InstructionId array, int64_t begin, int64_t end) {
    std::vector<int64_t> limits = ToVector(builder().shape_of(array).dims()), starts(limits.size(), 0);
    starts[ToSize(dim_)] = begin;
    limits[ToSize(dim_)] = end;
    return emitter_.Slice(array, starts, limits);
  }
  InstructionId SliceAt(InstructionId value, InstructionId start, int64_t size) {
    std::vector<int64_t> sizes = ToVector(builder().shape_of(value).dims());
    sizes[ToSize(dim_)] = size;
    std::vector<InstructionId> starts(sizes.size(), emitter_.Constant(0));
    starts[ToSize(dim_)] = start;
    return emitter_.DynamicSlice(value, starts, sizes);
  }
  InstructionId Pad(InstructionId value, int64_t low, int64_t high) {
    const auto rank = static_cast<size_t>(builder().shape_of(value).rank());
    std::vector<int64_t> lows(rank, 0), highs(rank, 0);
    lows[ToSize(dim_)] = low;
    highs[ToSize(dim_)] = high;
    return emitter_.Pad(value, fill_, lows, highs);
  }

  // The pieces of this part and of others that some device needs, from fetch_begin to fetch_end.
  InstructionId Fetch(InstructionId part);
  // What this device needs of that.
  InstructionId OwnWindow(InstructionId padded);
  // The number of its first element, first(i), rounded down.
  InstructionId FirstElement();
  // Gives elements that do not exist the padding value.
  InstructionId FillOutside(InstructionId array);
  // The positions of the dilated input.
  InstructionId Dilate(InstructionId array);

  // A device whose results count.
  int64_t some_device() const { return plan_.output_part == 0 ? 0 : window_.begin / plan_.output_part; }
  int64_t step() const { return plan_.output_part * window_.stride; }

  Emitter& emitter_;
  const int64_t dim_;
  const HaloWindow& window_;
  const Tiling& frame_;
  const AxisList& axes_;
  InstructionId fill_;
  const HaloPlan plan_;
  InstructionId tile_;
  InstructionId first_;  // once it is needed
};

InstructionId HaloAssembler::Fetch(InstructionId part) {
  std::vector<InstructionId> pieces;
  int64_t at = plan_.fetch_begin;
  const auto skip_to = [&](int64_t position) {
    // Elements in between that no device needs.
    if (position > at) {
      std::vector<int64_t> gap = ToVector(builder().shape_of(part).dims());
      gap[ToSize(dim_)] = position - at;
      const ElementType type = builder().shape_of(part).element_type();
      pieces.push_back(emitter_.Splat(builder().shapes().Array(type, gap), emitter_.Scalar(type, 0)));
    }
    at = position;
  };
  const int64_t tiles = SizeOf(axes_);
  for (const HaloPlan::Piece& piece : plan_.pieces) {
    skip_to(piece.hop * plan_.input_part + piece.begin);
    at += piece.end - piece.begin;
    if (piece.hop == 0) {
      pieces.push_back(Along(part, piece.begin, piece.end));
      continue;
    }
    std::vector<int64_t> source(piece.needed.size(), -1);
    for (int64_t i = 0; i < tiles; ++i) {
      if (piece.needed[ToSize(i)] && i + piece.hop >= 0 && i + piece.hop < tiles) source[ToSize(i)] = i + piece.hop;
    }
    pieces.push_back(emitter_.SliceFromTiles(part, dim_, piece.begin, piece.end, frame_, axes_, source));
  }
  skip_to(plan_.fetch_end);
  return emitter_.Concatenate(pieces, dim_);
}

InstructionId HaloAssembler::FirstElement() {
  if (first_.valid()) return first_;
  if (window_.base_dilation == 1) {
    const InstructionId low = emitter_.Constant(-window_.low);
    first_ = emitter_.Plus(emitter_.Times(tile_, step()), low);
    return first_;
  }
  const int64_t lift = window_.low > 0 ? CeilOfRatio(window_.low, window_.base_dilation) : 0;
  const InstructionId low = emitter_.Constant(lift * window_.base_dilation - window_.low);
  const InstructionId lifted = emitter_.Plus(emitter_.Times(tile_, step()), low);
  const InstructionId ratio = emitter_.Divide(lifted, window_.base_dilation);
  first_ = emitter_.Plus(ratio, emitter_.Constant(-lift));
  return first_;
}

InstructionId HaloAssembler::OwnWindow(InstructionId padded) {
  if (plan_.same_start) {
    const int64_t start = plan_.First(window_, some_device()) - some_device() * plan_.input_part - plan_.begin;
    return Along(padded, start, start + plan_.width);
  }
  const InstructionId own = emitter_.Times(tile_, -plan_.input_part);
  const InstructionId begin = emitter_.Constant(-plan_.begin);
  const InstructionId start = emitter_.Plus(emitter_.Plus(FirstElement(), own), begin);
  return SliceAt(padded, start, plan_.width);
}

InstructionId HaloAssembler::FillOutside(InstructionId array) {
  const Shape shape = builder().shape_of(array);
  const InstructionId index = emitter_.Iota(shape.dims(), dim_);
  const InstructionId position = emitter_.Plus(index, emitter_.Splat(shape, FirstElement()));
  const auto bound = [&](ComparisonDirection direction, int64_t value) {
    return builder().MakeCompare(direction, position, emitter_.Splat(shape, emitter_.Constant(value)));
  };
  const InstructionId from = bound(ComparisonDirection::kGe, 0), to = bound(ComparisonDirection::kLt, window_.input);
  const InstructionId inside = builder().Make(Opcode::kAnd, builder().shape_of(from), {from, to});
  return emitter_.Select(inside, array, emitter_.Splat(shape, fill_));
}

InstructionId HaloAssembler::Dilate(InstructionId array) {
  const Shape shape = builder().shape_of(array);
  std::vector<int64_t> padding(ToSize(shape.rank() * 3), 0), sizes = ToVector(shape.dims());
  padding[ToSize(dim_ * 3 + 2)] = window_.base_dilation - 1;
  const int64_t spread = (sizes[ToSize(dim_)] - 1) * window_.base_dilation + 1;
  const int64_t wanted = plan_.dilated_width + window_.base_dilation - 1;
  padding[ToSize(dim_ * 3 + 1)] = std::max<int64_t>(wanted - spread, 0);
  sizes[ToSize(dim_)] = std::max(spread, wanted);
  array = builder().Make(Opcode::kPad, builder().shapes().Array(shape.element_type(), sizes), {array, fill_},
                         {builder().List(Attr::kPadding, padding)});
  if (plan_.same_hole) {
    const int64_t hole = plan_.Hole(window_, some_device());
    return Along(array, hole, hole + plan_.dilated_width);
  }
  const InstructionId before = emitter_.Times(FirstElement(), -window_.base_dilation);
  const InstructionId low = emitter_.Constant(-window_.low);
  const InstructionId hole = emitter_.Plus(emitter_.Plus(emitter_.Times(tile_, step()), low), before);
  return SliceAt(array, hole, plan_.dilated_width);
}

}  // namespace

void ComputationPartitioner::AddWindow(DividedOp* op, int64_t operand, int64_t dim, const HaloWindow& window) {
  const size_t f = ToSize(op->rule->operands[ToSize(operand)][ToSize(dim)][0]);
  if (window.input == 0 || window.output == 0) {
    op->divisible[f] = false;
    return;
  }
  op->divisible[f] = true;
  op->windows.push_back({operand, dim, f, window});
}

bool ComputationPartitioner::DivideSlice(Instruction i, DividedOp* op) {
  const SliceView slice = SliceView::Of(i);
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    const int64_t input = i.operand(0).shape().dim(d), output = i.shape().dim(d);
    if (slice.start(d) == 0 && slice.stride(d) == 1 && input == output) continue;
    HaloWindow window;
    window.input = input;
    window.output = window.end = output;
    window.stride = slice.stride(d);
    window.low = -slice.start(d);
    AddWindow(op, 0, d, window);
  }
  return true;
}

bool ComputationPartitioner::DividePad(Instruction i, DividedOp* op) {
  const PaddingView padding = PaddingView::Of(i);
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    if (padding.low(d) == 0 && padding.high(d) == 0 && padding.interior(d) == 0) continue;
    HaloWindow window;
    window.input = i.operand(0).shape().dim(d);
    window.output = window.end = i.shape().dim(d);
    window.low = padding.low(d);
    window.base_dilation = padding.interior(d) + 1;
    AddWindow(op, 0, d, window);
  }
  return true;
}

bool ComputationPartitioner::DivideReduceWindow(Instruction i, DividedOp* op) {
  const WindowView window = WindowView::Of(i);
  const Shape input = i.operand(0).shape(), output = Leaves(i.shape())[0];
  // The initial value counts once, so what does not exist needs an identity.
  const std::optional<Opcode> opcode = BinaryOpcodeOf(i.computation_attr(Attr::kToApply));
  if (i.operand_count() != 2 || !opcode || !HasIdentity(*opcode, input.element_type())) return true;
  for (int64_t d = 0; d < output.rank() && d < window.rank(); ++d) {
    if (op->rule->factors[ToSize(op->rule->operands[0][ToSize(d)][0])].kind != FactorKind::kWindow) continue;
    AddWindow(op, 0, d, WindowOf(window[d], input.dim(d), output.dim(d)));
  }
  return true;
}

bool ComputationPartitioner::DivideConvolution(Instruction i, DividedOp* op) {
  DivideContraction(i, op);
  if (!op->rule->known || i.has(Attr::kSparsityConfig)) return true;
  const ConvolutionDims dims = ConvolutionDims::Of(i);
  const WindowView window = WindowView::Of(i);
  for (int64_t s = 0; s < dims.spatial_rank() && s < window.rank(); ++s) {
    if (sharding::SpatialKindOf(i, s) != sharding::ConvolutionSpatialKind::kWindow) continue;
    const int64_t d = dims.input_spatial[ToSize(s)];
    AddWindow(op, 0, d,
              WindowOf(window[s], i.operand(0).shape().dim(d), i.shape().dim(dims.output_spatial[ToSize(s)])));
  }
  return true;
}

bool ComputationPartitioner::DivideKernel(Instruction i, DividedOp* op) {
  if (!op->rule->known || i.has(Attr::kSparsityConfig) || IsInteger(i.shape().element_type())) return false;
  DivideConvolution(i, op);
  const ConvolutionDims dims = ConvolutionDims::Of(i);
  const WindowView window = WindowView::Of(i);
  const Leaf &input = LeafOf(i.operand(0)), &kernel = LeafOf(i.operand(1));
  bool any = false;
  for (int64_t s = 0; s < dims.spatial_rank() && s < window.rank(); ++s) {
    const int64_t d = dims.input_spatial[ToSize(s)], k = dims.kernel_spatial[ToSize(s)];
    const bool is_window = sharding::SpatialKindOf(i, s) == sharding::ConvolutionSpatialKind::kWindow;
    const int64_t output = i.shape().dim(dims.output_spatial[ToSize(s)]);
    // A large kernel, as of the gradient of weights, is divided as the input is.
    const bool large = kernel.shape.dim(k) > output && input.tiling->tiles(d) > 1;
    if (!is_window || window[s].reversal || (kernel.tiling->tiles(k) == 1 && !large)) continue;
    // Kernel element k needs the inputs of all results: a window whose size is that of the result.
    HaloWindow along;
    along.input = i.operand(0).shape().dim(d);
    along.output = along.end = kernel.shape.dim(k);
    along.stride = window[s].window_dilation;
    along.low = window[s].padding_low;
    along.base_dilation = window[s].base_dilation;
    along.size = (output - 1) * window[s].stride + 1;
    if (output == 0) continue;
    const std::vector<int32_t> factor = {static_cast<int32_t>(op->rule->factors.size())};
    op->rule->factors.push_back({along.output, FactorKind::kReduced});
    op->divisible[ToSize(op->rule->operands[0][ToSize(d)][0])] = false;
    op->divisible.push_back(true);
    op->combined.push_back(true);
    op->gathered.push_back(false);
    op->exact.push_back(false);
    op->rule->operands[0][ToSize(d)] = op->rule->operands[1][ToSize(k)] = factor;
    std::erase_if(op->windows, [&](const DividedOp::Window& w) { return w.operand == 0 && w.dim == d; });
    AddWindow(op, 0, d, along);
    any = true;
  }
  return any;
}

bool ComputationPartitioner::DivideReverse(Instruction i, DividedOp* op) {
  for (int64_t d : i.list_attr(Attr::kDimensions)) {
    HaloWindow window;
    window.input = window.output = window.end = i.shape().dim(d);
    window.low = kReversed;
    AddWindow(op, 0, d, window);
  }
  return true;
}

bool ComputationPartitioner::DivideConcatenate(Instruction i, DividedOp* op) {
  const int64_t dim = i.list_attr(Attr::kDimensions)[0];
  int64_t offset = 0;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const Instruction operand = i.operand(k);
    HaloWindow window;
    window.input = operand.shape().dim(dim);
    window.output = i.shape().dim(dim);
    window.low = window.begin = offset;
    window.end = offset + window.input;
    offset = window.end;
    if (operand.opcode() == Opcode::kSlice && operand.operand(0).shape().IsArray()) {
      // Of slices only what is needed is fetched, from where it is.
      const SliceView slice = SliceView::Of(operand);
      bool along = slice.stride(dim) == 1;
      for (int64_t d = 0; d < slice.rank(); ++d) {
        along = along && (d == dim || operand.shape().dim(d) == operand.operand(0).shape().dim(d));
      }
      if (along) {
        op->sources[ToSize(k)] = operand.operand(0);
        window.low -= slice.start(dim);
        window.input = operand.operand(0).shape().dim(dim);
      }
    }
    AddWindow(op, k, dim, window);
    if (!op->divisible[ToSize(op->rule->operands[ToSize(k)][ToSize(dim)][0])]) {
      // An empty operand: all as they are.
      op->windows.clear();
      for (int64_t n = 0; n < i.operand_count(); ++n) op->sources[ToSize(n)] = i.operand(n);
      return true;
    }
  }
  return true;
}

InstructionId ComputationPartitioner::Assemble(InstructionId part, int64_t dim, const HaloWindow& window,
                                               const Tiling& frame, const AxisList& axes, InstructionId fill) {
  return HaloAssembler(&emitter_, dim, window, frame, axes, fill).Assemble(part);
}

InstructionId ComputationPartitioner::AssembleOperand(const LocalOp& op, int64_t operand, InstructionId fill) {
  InstructionId array = op.operands[ToSize(operand)];
  for (const DividedOp::Window& w : *op.windows) {
    const AxisList& axes = op.choice->axes[w.factor];
    if (w.operand == operand && !axes.empty()) array = Assemble(array, w.dim, w.window, op.choice->frame, axes, fill);
  }
  return array;
}

bool ComputationPartitioner::IsWindowed(const LocalOp& op, int64_t operand, int64_t dim) const {
  return std::any_of(op.windows->begin(), op.windows->end(), [&](const DividedOp::Window& w) {
    return w.operand == operand && w.dim == dim && !op.choice->axes[w.factor].empty();
  });
}

Value ComputationPartitioner::EmitSlice(const LocalOp& op) {
  const Instruction i = op.whole;
  const InstructionId array = AssembleOperand(op, 0, InstructionId());
  const Shape result = LocalShapeOf(i.shape(), op.results);
  std::vector<int64_t> ranges = ToVector(i.list_attr(Attr::kSlice));
  for (int64_t d = 0; d < result.rank(); ++d) {
    int64_t* range = ranges.data() + d * 3;
    if (IsWindowed(op, 0, d)) {
      range[0] = 0;
      range[1] = builder().shape_of(array).dim(d);
    } else if (op.whole.shape().dim(d) != result.dim(d)) {
      range[0] = 0;
      range[1] = result.dim(d);
    }
  }
  const InstructionId id = Clone(i, {array}, result);
  module_.SetAttr(id, Attr::kSlice, module_.ListPayload(ranges));
  return {{id, i.shape(), op.results[0]}};
}

Value ComputationPartitioner::EmitPad(const LocalOp& op) {
  const Instruction i = op.whole;
  const InstructionId array = AssembleOperand(op, 0, op.operands[1]);
  std::vector<int64_t> padding = ToVector(i.list_attr(Attr::kPadding));
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    if (IsWindowed(op, 0, d)) std::fill_n(padding.begin() + d * 3, 3, 0);
  }
  const InstructionId id = Clone(i, {array, op.operands[1]}, LocalShapeOf(i.shape(), op.results));
  module_.SetAttr(id, Attr::kPadding, module_.ListPayload(padding));
  return {{id, i.shape(), op.results[0]}};
}

Value ComputationPartitioner::EmitReduceWindow(const LocalOp& op) {
  const Instruction i = op.whole;
  std::vector<InstructionId> operands = op.operands;
  if (!op.windows->empty()) {
    const Opcode opcode = *BinaryOpcodeOf(i.computation_attr(Attr::kToApply));
    operands[0] = AssembleOperand(op, 0, MakeIdentity(&emitter_, opcode, i.operand(0).shape().element_type()));
  }
  std::vector<int64_t> window = ToVector(i.list_attr(Attr::kWindow));
  for (int64_t d = 0; d < i.operand(0).shape().rank(); ++d) {
    if (!IsWindowed(op, 0, d)) continue;
    int64_t* w = window.data() + d * WindowView::kFields;
    w[2] = w[3] = 0;
    w[4] = 1;
  }
  const InstructionId id = Clone(i, operands, LocalShapeOf(i.shape(), op.results));
  module_.SetAttr(id, Attr::kWindow, module_.ListPayload(window));
  return Unpack(id, i.shape(), op.results);
}

Value ComputationPartitioner::EmitConvolution(const LocalOp& op) {
  const Instruction i = op.whole;
  LocalOp local = op;
  MaskOperands(i, *op.rule, *op.choice, &local.operands);
  local.operands[0] = AssembleOperand(local, 0, InstructionId());
  const InstructionId id = Clone(i, local.operands, LocalShapeOf(i.shape(), op.results));
  LocalizeAttributes(i, *op.choice, id);
  const ConvolutionDims dims = ConvolutionDims::Of(i);
  std::vector<int64_t> window = ToVector(module_.instruction(id).list_attr(Attr::kWindow));
  for (int64_t s = 0; s < dims.spatial_rank() && !window.empty(); ++s) {
    if (!IsWindowed(op, 0, dims.input_spatial[ToSize(s)])) continue;
    int64_t* w = window.data() + s * WindowView::kFields;
    w[0] = module_.instruction(id).operand(1).shape().dim(dims.kernel_spatial[ToSize(s)]);
    w[2] = w[3] = 0;
    w[4] = 1;
  }
  if (!window.empty()) module_.SetAttr(id, Attr::kWindow, module_.ListPayload(window));
  return {{id, i.shape(), op.results[0]}};
}

// The reversed parts are those of the opposite tiles.
Value ComputationPartitioner::EmitReverse(const LocalOp& op) {
  const Instruction i = op.whole;
  InstructionId array = Clone(i, {op.operands[0]}, LocalShapeOf(i.shape(), op.results));
  Tiling frame = op.choice->frame;
  for (const DividedOp::Window& w : *op.windows) {
    if (!op.choice->axes[w.factor].empty()) frame = WithReversedTiles(frame, op.choice->axes[w.factor]);
  }
  for (const DividedOp::Window& w : *op.windows) {
    const AxisList& axes = op.choice->axes[w.factor];
    if (axes.empty()) continue;
    // What was behind the end is before the beginning.
    HaloWindow window = w.window;
    window.input = CeilOfRatio(window.output, SizeOf(axes)) * SizeOf(axes);
    window.low = window.output - window.input;
    if (window.low != 0) array = Assemble(array, w.dim, window, frame, axes, InstructionId());
  }
  const TilingRef tiling = state_.tilings.Intern(WithDims(frame, DimsOf(*op.results[0], i.shape().rank())));
  return {{array, i.shape(), tiling}};
}

Value ComputationPartitioner::EmitConcatenate(const LocalOp& op) {
  const Instruction i = op.whole;
  const int64_t dim = i.list_attr(Attr::kDimensions)[0];
  const Shape result = LocalShapeOf(i.shape(), op.results);
  if (op.windows->empty() || !IsWindowed(op, 0, dim)) {
    std::vector<InstructionId> operands = op.operands;
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      // A slice that was looked through.
      if ((*op.sources)[ToSize(k)] == i.operand(k)) continue;
      const SliceView slice = SliceView::Of(i.operand(k));
      const int64_t start = slice.start(dim), limit = slice.limit(dim);
      std::vector<int64_t> limits = ToVector(builder().shape_of(operands[ToSize(k)]).dims()), starts(limits.size(), 0);
      starts[ToSize(dim)] = start;
      limits[ToSize(dim)] = limit;
      operands[ToSize(k)] = emitter_.Slice(operands[ToSize(k)], starts, limits);
      MergeMetadata(module_, i.operand(k).id(), operands[ToSize(k)]);
    }
    return {{Clone(i, operands, result), i.shape(), op.results[0]}};
  }
  // By position, from the operand that has it.
  InstructionId joined;
  const AxisList& axes = op.choice->axes[(*op.windows)[0].factor];
  const InstructionId tile = emitter_.TileNumber(op.choice->frame, axes);
  const InstructionId first = emitter_.Times(tile, result.dim(dim));
  const InstructionId index = emitter_.Iota(result.dims(), dim);
  const InstructionId position = emitter_.Plus(index, emitter_.Splat(result, first));
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    HaloWindow window = (*op.windows)[ToSize(k)].window;
    const InstructionId part = Assemble(op.operands[ToSize(k)], dim, window, op.choice->frame, axes, InstructionId());
    if ((*op.sources)[ToSize(k)] != i.operand(k)) MergeMetadata(module_, i.operand(k).id(), part);
    if (!joined.valid()) {
      joined = part;
      continue;
    }
    const InstructionId begin = emitter_.Splat(result, emitter_.Constant(window.begin));
    joined = emitter_.Select(builder().MakeCompare(ComparisonDirection::kGe, position, begin), part, joined);
  }
  return {{joined, i.shape(), op.results[0]}};
}

}  // namespace hlokit::spmd

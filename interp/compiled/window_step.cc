// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/window_step.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interp/compiled/library_step.h"
#include "interp/compiled/loop_layout.h"
#include "interp/compiled/window_kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/builder/scalar_function.h"
#include "interp/exact/kernels/window_geometry.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/processor/instruction_set.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp::compiled {
namespace {

constexpr int64_t kMaxWindow = 1024;       // elements
constexpr int64_t kMaxTable = 1 << 18;     // offsets of a line with features minor, in scratch memory
constexpr int64_t kMinElements = 1 << 10;  // of the operand
constexpr int64_t kMinFeatures = 8;

bool IsTrivial(const WindowDimension& axis) {
  return axis.window.size == 1 && axis.window.stride == 1 && axis.window.padding_low == 0 && axis.output == axis.input;
}

// Where the window lies, in the order of memory. The operand and the results of the window are dense.
struct WindowGeometry {
  struct Axis {
    WindowDimension window;
    int64_t stride = 1;  // of elements in memory
    bool trivial = true;

    // Calls add(offset) for each element that the window covers at a position.
    template <typename Add>
    void ForEach(int64_t position, const Add& add) const {
      if (trivial) return add(position * stride);
      for (int64_t k = 0; k < window.window.size; ++k) {
        const int64_t element = window.ElementAt(position, k);
        if (element >= 0) add(element * stride);
      }
    }
  };
  std::vector<Axis> outer;  // before the line
  Axis line;
  std::vector<LineRange> ranges;  // where the line is minor
  bool features_minor = false;
  int64_t features = 1;
  int64_t window = 1;       // elements
  int64_t lines = 1;        // of results
  int64_t input_count = 1;  // elements of the operand
  int64_t batch = 1;        // product of the leading dimensions without a window
  size_t batch_rank = 0;    // number of them
  MemoryOrder order;

  int64_t positions() const { return line.window.output; }
  int64_t result_line() const { return positions() * features; }
  // Elements of 8 bytes that a thread needs: the table of LineRows, or a value for each position.
  int64_t scratch() const {
    return features_minor ? positions() + 1 + positions() * line.window.window.size : positions();
  }
};

// Returns the window of an instruction over an operand; nullopt, with the reason in `why`, if it is none for the
// kernels here. The order of memory is `order` if dimensions with a window are in their declared order, else the
// declared one.
std::optional<WindowGeometry> GeometryOf(Instruction instruction, absl::Span<const int64_t> input,
                                         absl::Span<const int64_t> output, MemoryOrder order, std::string* why) {
  const auto fails = [&](const char* reason) {
    *why = reason;
    return std::nullopt;
  };
  const WindowView window = WindowView::Of(instruction);
  const size_t rank = input.size();
  if (!window.ok() || window.rank() != static_cast<int64_t>(rank) || output.size() != rank || rank == 0) {
    return fails("no window");
  }
  std::vector<WindowDimension> axes(rank);
  WindowGeometry g;
  for (size_t d = 0; d < rank; ++d) {
    axes[d].window = window[static_cast<int64_t>(d)];
    axes[d].input = input[d];
    axes[d].output = output[d];
    if (!axes[d].Valid() || axes[d].window.base_dilation != 1) return fails("a dilated operand");
    if (axes[d].window.size > kMaxWindow) return fails("a large window");
    g.window *= axes[d].window.size;
    if (g.window > kMaxWindow || g.window == 0) return fails("a large window");
    g.input_count *= input[d];
  }
  if (g.input_count < kMinElements || g.input_count > INT32_MAX || ElementCount(output) == 0) return fails("small");
  size_t last = 0;
  bool any = false, in_order = true;
  for (size_t d : order) {
    if (IsTrivial(axes[d])) continue;
    in_order = in_order && (!any || d > last);
    last = d;
    any = true;
  }
  if (!any) return fails("no window");
  if (!in_order) order = DeclaredOrder(rank);
  g.order = order;
  std::vector<int64_t> strides(rank, 1);
  for (size_t k = rank - 1; k-- > 0;) strides[k] = strides[k + 1] * input[order[k + 1]];
  size_t end = rank;
  while (IsTrivial(axes[order[end - 1]])) g.features *= input[order[--end]];
  g.features_minor = g.features >= kMinFeatures;
  if (!g.features_minor && g.features != 1) return fails("few features");
  const WindowDimension& line = axes[order[end - 1]];
  g.line = {line, strides[end - 1], false};
  if (g.features_minor) {
    if (line.output * line.window.size > kMaxTable) return fails("a large window");
  } else {
    for (int64_t k = 0; k < line.window.size; ++k) {
      const WindowDimension::Range r = line.PositionsCovering(k);
      if (r.first < r.end) g.ranges.push_back({r.first, r.end, r.element, r.element_step});
    }
  }
  bool leading = true;
  for (size_t k = 0; k + 1 < end; ++k) {
    const WindowDimension& axis = axes[order[k]];
    g.outer.push_back({axis, strides[k], IsTrivial(axis)});
    g.lines *= axis.output;
    leading = leading && g.outer.back().trivial;
    if (leading) {
      g.batch *= axis.output;
      ++g.batch_rank;
    }
  }
  return g;
}

// Offsets of the window of one line. `table`: scratch memory, for offsets along the line where features are minor.
class LineRows {
 public:
  LineRows(const WindowGeometry& geometry, int64_t* table) : g_(geometry) {
    rows_.reserve(static_cast<size_t>(g_.window));
    line_.positions = g_.positions();
    line_.features = g_.features;
    line_.ranges = g_.ranges.data();
    line_.range_count = static_cast<int64_t>(g_.ranges.size());
    if (!g_.features_minor) return;
    int64_t* const offsets = table + g_.positions() + 1;
    int64_t count = 0;
    for (int64_t p = 0; p < g_.positions(); ++p) {
      table[p] = count;
      g_.line.ForEach(p, [&](int64_t offset) { offsets[count++] = offset; });
    }
    table[g_.positions()] = count;
    line_.column_begin = table;
    line_.column_offsets = offsets;
  }

  // The offsets in the other dimensions are in the order of the window, and valid until the next call.
  WindowLine At(int64_t line) {
    rows_.assign(1, 0);
    for (size_t k = g_.outer.size(); k-- > 0;) {
      const WindowGeometry::Axis& axis = g_.outer[k];
      const int64_t position = line % axis.window.output;
      line /= axis.window.output;
      next_.clear();
      axis.ForEach(position, [&](int64_t offset) {
        for (int64_t row : rows_) next_.push_back(row + offset);
      });
      rows_.swap(next_);
    }
    line_.rows = rows_.data();
    line_.row_count = static_cast<int64_t>(rows_.size());
    return line_;
  }

 private:
  const WindowGeometry& g_;
  WindowLine line_;
  std::vector<int64_t> rows_, next_;
};

struct PoolPlan : ThunkParams {
  WindowGeometry geometry;
  PoolOp op = PoolOp::kMaximum;
  const WindowKernels* kernels = nullptr;
};

void RunPool(const ThunkParams* plan, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const auto& p = *static_cast<const PoolPlan*>(plan);
  const WindowGeometry& g = p.geometry;
  const auto* from = reinterpret_cast<const float*>(in[0]);
  const float initial = *reinterpret_cast<const float*>(in[1]);
  auto* to = reinterpret_cast<float*>(out[0]);
  context.ParallelFor(g.lines, 0.1 * static_cast<double>(g.window * g.result_line()), [&](int64_t begin, int64_t end) {
    std::byte* const memory = ThreadScratch(8 * g.scratch());
    if (memory == nullptr)
      return context.Fail("out of memory: no scratch memory for a window", DiagnosticKind::kTooLarge);
    LineRows rows(g, reinterpret_cast<int64_t*>(memory));
    auto* const sums = reinterpret_cast<double*>(memory);
    for (int64_t line = begin; line < end; ++line) {
      if (context.ShouldStop()) return;
      float* const result = to + line * g.result_line();
      if (g.features_minor) {
        p.kernels->pool_features(p.op, rows.At(line), from, initial, result);
      } else {
        p.kernels->pool_line(p.op, rows.At(line), from, initial, result, sums);
      }
    }
  });
}

struct ScatterPlan : ThunkParams {
  WindowGeometry geometry;
  bool greater = true, equal = true;
  const WindowKernels* kernels = nullptr;
};

void RunScatter(const ThunkParams* plan, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const auto& p = *static_cast<const ScatterPlan*>(plan);
  const WindowGeometry& g = p.geometry;
  const auto* from = reinterpret_cast<const float*>(in[0]);
  const auto* source = reinterpret_cast<const float*>(in[1]);
  const float initial = *reinterpret_cast<const float*>(in[2]);
  auto* to = reinterpret_cast<float*>(out[0]);
  const int64_t lines = g.lines / g.batch;
  const int64_t elements = g.input_count / g.batch;
  const bool has_rows = g.batch_rank < g.outer.size();  // dimensions with a window before the line
  const int64_t slice = has_rows ? elements / g.outer[g.batch_rank].window.input : elements;
  // Windows of one element of the leading dimensions overlap: one thread adds to them, in the order of the source.
  context.ParallelFor(
      g.batch, 0.2 * static_cast<double>(g.window * lines * g.result_line()), [&](int64_t begin, int64_t end) {
        std::byte* const memory = ThreadScratch(8 * g.scratch());
        if (memory == nullptr)
          return context.Fail("out of memory: no scratch memory for a window", DiagnosticKind::kTooLarge);
        LineRows rows(g, reinterpret_cast<int64_t*>(memory));
        auto* const best = reinterpret_cast<float*>(memory);
        auto* const chosen = reinterpret_cast<int32_t*>(memory + 4 * g.positions());
        for (int64_t b = begin; b < end; ++b) {
          int64_t filled = b * elements;
          const auto fill = [&](int64_t to_element) {
            if (to_element <= filled) return;
            std::fill(to + filled, to + to_element, initial);
            filled = to_element;
          };
          for (int64_t k = 0; k < lines; ++k) {
            if (context.ShouldStop()) return;
            const int64_t line = b * lines + k;
            const WindowLine window = rows.At(line);
            // Memory is filled shortly before it is added to.
            if (window.row_count > 0) {
              const int64_t last = window.rows[window.row_count - 1] - b * elements;
              fill(b * elements + (last / slice + 1) * slice);
            }
            const float* const given = source + line * g.result_line();
            if (g.features_minor) {
              p.kernels->scatter_features(p.greater, p.equal, window, from, given, to);
            } else if (window.row_count > 0) {
              p.kernels->scatter_line(p.greater, p.equal, window, from, given, to, best, chosen);
            }
          }
          fill((b + 1) * elements);
        }
      });
}

// Returns the view in an order of memory, dense.
View DenseInOrder(CompiledComputationBuilder& b, const View& view, const MemoryOrder& order) {
  return b.MakeDense(InMemoryOrder(b, view, order));
}

}  // namespace

bool PreparePool(CompiledComputationBuilder& b, std::string* why) {
  const Instruction i = b.instruction();
  if (i.operand_count() != 2 || !i.shape().IsArray() || b.shape().element_type() != ElementType::kF32) return false;
  const View& operand = b.operand(0);
  if (operand.type() != ElementType::kF32 || b.operand(1).type() != ElementType::kF32 ||
      b.operand(1).shape.rank() != 0 || operand.shape.rank() != i.shape().rank()) {
    return false;
  }
  const ScalarFunction* const function = b.program().FunctionOf(i.computation_attr(Attr::kToApply));
  if (function == nullptr || function->parameter_count() != 2 || function->parameter_type(0) != ElementType::kF32 ||
      function->parameter_type(1) != ElementType::kF32) {
    return false;
  }
  auto plan = std::make_unique<PoolPlan>();
  using Op = ScalarFunction::RecognizedOp;
  const Op op = function->recognized_op();
  if (op != Op::kMaximum && op != Op::kMinimum && op != Op::kAdd) {
    *why = "the function";
    return false;
  }
  plan->op = op == Op::kMaximum ? PoolOp::kMaximum : op == Op::kMinimum ? PoolOp::kMinimum : PoolOp::kSum;
  const View views[] = {operand};
  std::optional<WindowGeometry> geometry =
      GeometryOf(i, operand.dims(), b.shape().dims(), ChooseOrder(operand.dims(), views), why);
  if (!geometry || !HasThreadScratch(b, 8 * geometry->scratch())) return false;
  plan->geometry = *std::move(geometry);
  plan->kernels = &WindowKernelsOf(HostInstructionSet());
  const MemoryOrder order = plan->geometry.order;
  const View operands[] = {DenseInOrder(b, operand, order), b.operand(1)};
  const Shape result = b.program_shapes().Array(ElementType::kF32, Permuted(b.shape().dims(), order));
  const View made = b.EmitTo(RunPool, std::move(plan), operands, {&result, 1})[0];
  b.SetResult(InDeclaredOrder(b, made, order, b.shape()));
  return true;
}

bool PrepareSelectAndScatterStep(CompiledComputationBuilder& b, std::string* why) {
  const Instruction i = b.instruction();
  if (i.operand_count() != 3 || !i.shape().IsArray() || b.shape().element_type() != ElementType::kF32) return false;
  for (int64_t k = 0; k < 3; ++k) {
    if (b.operand(k).type() != ElementType::kF32) return false;
  }
  const View operand = b.operand(0), source = b.operand(1);
  if (operand.dims() != b.shape().dims() || source.shape.rank() != operand.shape.rank() ||
      b.operand(2).shape.rank() != 0) {
    return false;
  }
  const Computation select = i.computation_attr(Attr::kSelect);
  const ScalarFunction* const scatter = b.program().FunctionOf(i.computation_attr(Attr::kScatter));
  if (scatter == nullptr || scatter->parameter_count() != 2 || scatter->parameter_type(0) != ElementType::kF32 ||
      scatter->recognized_op() != ScalarFunction::RecognizedOp::kAdd || !select.valid() ||
      select.parameter_count() != 2) {
    *why = "the functions";
    return false;
  }
  const Instruction root = select.root();
  const Shape scalar = b.operand(2).shape;
  if (root.opcode() != Opcode::kCompare || root.operand(0) != select.parameter(0) ||
      root.operand(1) != select.parameter(1) || root.operand(0).shape().dims() != scalar.dims() ||
      root.operand(0).shape().element_type() != ElementType::kF32 ||
      root.operand(1).shape().element_type() != ElementType::kF32 || root.has(Attr::kControlPredecessors) ||
      root.enum_attr(Attr::kCompareType, ComparisonType::kFloat) != ComparisonType::kFloat) {
    *why = "the functions";
    return false;
  }
  auto plan = std::make_unique<ScatterPlan>();
  switch (root.enum_attr(Attr::kDirection, ComparisonDirection::kEq)) {
    case ComparisonDirection::kGe:
      break;
    case ComparisonDirection::kGt:
      plan->equal = false;
      break;
    case ComparisonDirection::kLe:
      plan->greater = false;
      break;
    case ComparisonDirection::kLt:
      plan->greater = plan->equal = false;
      break;
    case ComparisonDirection::kEq:
    case ComparisonDirection::kNe:
      *why = "the functions";
      return false;
  }
  const View views[] = {operand};
  std::optional<WindowGeometry> geometry =
      GeometryOf(i, operand.dims(), source.dims(), ChooseOrder(operand.dims(), views), why);
  if (!geometry || !HasThreadScratch(b, 8 * geometry->scratch())) return false;
  plan->geometry = *std::move(geometry);
  plan->kernels = &WindowKernelsOf(HostInstructionSet());
  const MemoryOrder order = plan->geometry.order;
  const View operands[] = {DenseInOrder(b, operand, order), DenseInOrder(b, source, order), b.operand(2)};
  const Shape result = b.program_shapes().Array(ElementType::kF32, Permuted(b.shape().dims(), order));
  const View made = b.EmitTo(RunScatter, std::move(plan), operands, {&result, 1})[0];
  b.SetResult(InDeclaredOrder(b, made, order, b.shape()));
  return true;
}

}  // namespace hlokit::interp::compiled

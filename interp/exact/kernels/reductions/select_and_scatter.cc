// SPDX-License-Identifier: Apache-2.0
// Select-and-scatter: combines each element of the source with the result at the position in its window of the operand
// that the select function prefers. Windows are visited in row-major order of the source; padding is never selected.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "interp/exact/builder/applied_function.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/builder/scalar_function.h"
#include "interp/exact/kernels/window_geometry.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/machine/strided_copy.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp {
namespace {

struct SelectAndScatterParams : ThunkParams, WindowRows {
  std::vector<WindowDimension> axes;  // the last one is the minor dimension
  Dims operand_strides, source_strides, result_strides;
  int64_t bytes = 0;
  StridedCopy fill;
  const ScalarFunction* select = nullptr;
  const ScalarFunction* scatter = nullptr;
};

// Selected positions for one row of the source (linear index of the result; -1: none), computed for all columns at a
// time.
class RowSelection {
 public:
  RowSelection(const SelectAndScatterParams& p, RunContext& context)
      : p_(p),
        context_(context),
        scratch_(*p.select, p.width),
        chosen_(static_cast<size_t>(p.width)),
        values_(static_cast<size_t>(p.width * p.bytes)),
        current_(static_cast<size_t>(p.width * p.bytes)),
        keep_(static_cast<size_t>(p.width)) {}

  void Run(const std::byte* operand, const Dims& position) {
    std::fill(chosen_.begin(), chosen_.end(), -1);
    const size_t outer = p_.axes.size() - 1;
    Dims place(outer, 0);
    for (int64_t i = 0; i < p_.num_offsets && !context_.failed(); ++i) {
      bool inside = true;
      int64_t from = 0;
      int64_t to = 0;
      for (size_t d = 0; d < outer && inside; ++d) {
        const int64_t element = p_.axes[d].ElementAt(position[d], place[d]);
        inside = element >= 0;
        from += element * p_.operand_strides[d];
        to += element * p_.result_strides[d];
      }
      for (size_t k = 0; inside && k < p_.minor.size(); ++k) Visit(p_.minor[k], operand, from, to);
      for (size_t d = outer; d-- > 0;) {
        if (++place[d] < p_.axes[d].window.size) break;
        place[d] = 0;
      }
    }
  }
  const std::vector<int64_t>& chosen() const { return chosen_; }

 private:
  void Visit(const WindowDimension::Range& r, const std::byte* operand, int64_t from, int64_t to) {
    if (r.first >= r.end) return;
    const int64_t bytes = p_.bytes;
    const int64_t n = (r.end - r.first + r.step - 1) / r.step;
    constexpr int64_t kBetweenChecks = int64_t{1} << 16;
    visited_ += n;
    if (visited_ >= kBetweenChecks) {
      visited_ = 0;
      if (context_.ShouldStop()) return;
    }
    const int64_t from_stride = p_.operand_strides.back() * r.element_step;
    const int64_t to_stride = p_.result_strides.back() * r.element_step;
    const std::byte* elements = operand + (from + r.element * p_.operand_strides.back()) * bytes;
    // keep = select(selected so far, element)
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(current_.data() + i * bytes, values_.data() + (r.first + i * r.step) * bytes,
                  static_cast<size_t>(bytes));
    }
    const std::byte* parameters[] = {current_.data(), elements};
    const int64_t strides[] = {1, from_stride};
    std::byte* results[] = {keep_.data()};
    p_.select->Run(parameters, strides, results, n, scratch_, context_);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t column = r.first + i * r.step;
      if (chosen_[column] >= 0 && keep_[i] != std::byte{0}) continue;
      chosen_[column] = to + r.element * p_.result_strides.back() + i * to_stride;
      std::memcpy(values_.data() + column * bytes, elements + i * from_stride * bytes, static_cast<size_t>(bytes));
    }
  }

  const SelectAndScatterParams& p_;
  RunContext& context_;
  ScalarFunction::BlockScratch scratch_;
  std::vector<int64_t> chosen_;
  std::vector<std::byte> values_;
  std::vector<std::byte> current_;
  std::vector<std::byte> keep_;
  int64_t visited_ = 0;  // elements since the last check of the time
};

void RunSelectAndScatter(const SelectAndScatterParams& p, const std::byte* const* in, std::byte* const* out,
                         RunContext& context) {
  p.fill.Run(out[0], in[2], context);
  if (p.rows * p.width == 0) return;
  RowSelection selection(p, context);
  ScalarFunction::BlockScratch scratch(*p.scatter, 1);
  const size_t outer = p.axes.size() - 1;
  Dims position(outer, 0);
  const int64_t strides[] = {1, 1};
  for (int64_t row = 0; row < p.rows; ++row) {
    if ((row & 0xff) == 0xff && !context.CheckTime()) return;
    selection.Run(in[0], position);
    if (context.failed()) return;
    int64_t source = 0;
    for (size_t d = 0; d < outer; ++d) source += position[d] * p.source_strides[d];
    for (int64_t column = 0; column < p.width; ++column) {
      const int64_t chosen = selection.chosen()[column];
      if (chosen < 0) continue;
      std::byte* to = out[0] + chosen * p.bytes;
      const std::byte* parameters[] = {in[1] + (source + column * p.source_strides.back()) * p.bytes, to};
      std::byte* results[] = {to};
      p.scatter->Run(parameters, strides, results, 1, scratch, context);
    }
    for (size_t d = outer; d-- > 0;) {
      if (++position[d] < p.axes[d].output) break;
      position[d] = 0;
    }
  }
}

}  // namespace

void PrepareSelectAndScatter(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const View views[] = {b.operand(0), b.operand(1), b.operand(2)};
  const Shape shape = b.shape();
  auto params = std::make_unique<SelectAndScatterParams>();
  const ElementType type = shape.element_type();
  params->select =
      b.program().FunctionOf(instruction.computation_attr(Attr::kSelect), {{type, type}}, {{ElementType::kPred}});
  params->scatter = AccumulatingFunction(b, Attr::kScatter, 1);
  const WindowView window = WindowView::Of(instruction);
  const int64_t rank = shape.rank();
  bool small = true;
  bool fits = params->select != nullptr && params->scatter != nullptr && window.ok() &&
              (window.rank() == rank || window.rank() == 0) && views[0].dims() == shape.dims() &&
              views[1].shape.rank() == rank && views[2].shape.rank() == 0;
  for (const View& v : views) fits = fits && v.type() == type;
  for (int64_t d = 0; fits && d < rank; ++d) {
    WindowDimension axis;
    if (window.rank() != 0) axis.window = window[d];
    axis.input = shape.dim(d);
    axis.output = views[1].shape.dim(d);
    axis.Normalize();
    small = small && axis.Valid();
    params->axes.push_back(axis);
  }
  if (!fits) {
    b.FailMismatch("a window for each dimension of operand 0, and functions of two elements of its type");
    return;
  }
  if (!small) {
    b.Fail("the window is too large");
    return;
  }
  params->bytes = BytesOf(type);
  params->operand_strides = StridesOf(views[0]);
  params->source_strides = StridesOf(views[1]);
  params->result_strides = DenseStrides(shape.dims());
  params->fill = StridedCopy({shape.element_count()}, {1}, {0}, params->bytes);
  if (rank == 0) {
    params->axes.push_back({WindowDim(), 1, 1});
    for (Dims* s : {&params->operand_strides, &params->source_strides, &params->result_strides}) s->push_back(0);
  }
  if (!params->Init(params->axes)) {
    b.Fail("the window is too large");
    return;
  }
  b.Emit(kKernel<RunSelectAndScatter>, std::move(params), views);
}

}  // namespace hlokit::interp

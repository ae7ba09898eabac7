// SPDX-License-Identifier: Apache-2.0
// Reduce-window, with any number of operands and any function.
//
// Computes a row of results along the minor dimension at a time: for each window offset, the elements at that offset
// for all these results are combined with the row of accumulators. Padding is skipped. Recognized functions of one
// operand have typed loops with the accumulators of reduce.
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
#include "interp/exact/kernels/reductions/reduction_kernels.h"
#include "interp/exact/kernels/window_geometry.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/program/element_op.h"
#include "interp/exact/program/loop_nest.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp {
namespace {

struct ReduceWindowParams : ThunkParams, WindowRows {
  std::vector<WindowDimension> axes;  // the last one is the minor dimension
  size_t count = 0;                   // of operands
  std::vector<Dims> strides;          // of each operand, in elements
  std::vector<int64_t> bytes;
  const ScalarFunction* function = nullptr;
  ReductionKernels fold;
  ConvertFn load = nullptr;
  ConvertFn store = nullptr;
};

// Calls body(element_offsets) for every window offset in the outer dimensions that is in bounds, in row-major order;
// `offsets` are those of the row's first column in each operand.
template <typename Body>
void ForEachOuterPosition(const ReduceWindowParams& p, int64_t row, Body body) {
  const size_t outer = p.axes.size() - 1;
  Dims position(outer), place(outer, 0);
  for (size_t d = outer; d-- > 0;) {
    position[d] = row % p.axes[d].output;
    row /= p.axes[d].output;
  }
  absl::InlinedVector<int64_t, 4> offsets(p.count);
  for (int64_t i = 0; i < p.num_offsets; ++i) {
    bool inside = true;
    std::fill(offsets.begin(), offsets.end(), 0);
    for (size_t d = 0; d < outer && inside; ++d) {
      const int64_t element = p.axes[d].ElementAt(position[d], place[d]);
      inside = element >= 0;
      for (size_t k = 0; k < p.count; ++k) offsets[k] += element * p.strides[k][d];
    }
    if (inside) body(static_cast<const int64_t*>(offsets.data()));
    for (size_t d = outer; d-- > 0;) {
      if (++place[d] < p.axes[d].window.size) break;
      place[d] = 0;
    }
  }
}

// Returns elements from + i * stride, i < n, as contiguous values of the compute type.
const std::byte* Gather(const ReduceWindowParams& p, const std::byte* from, int64_t stride, int64_t n,
                        std::byte* values) {
  const int64_t bytes = p.bytes[0];
  if (stride == 1) {
    if (p.load == nullptr) return from;
    p.load(values, from, n);
    return values;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (p.load != nullptr) {
      p.load(values + i * p.fold.value_bytes, from + i * stride * bytes, 1);
    } else {
      std::memcpy(values + i * bytes, from + i * stride * bytes, static_cast<size_t>(bytes));
    }
  }
  return values;
}

void RunFold(const ReduceWindowParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  alignas(16) std::byte initial[16];
  if (p.load != nullptr) {
    p.load(initial, in[1], 1);
  } else {
    std::memcpy(initial, in[1], static_cast<size_t>(p.bytes[0]));
  }
  const int64_t acc_bytes = p.fold.accumulator_bytes;
  const int64_t minor_stride = p.strides[0].back();
  const double cost = static_cast<double>(p.num_offsets) * static_cast<double>(p.minor.size()) *
                      (10 + 0.5 * static_cast<double>(p.width));
  context.ParallelFor(p.rows, cost, [&](int64_t begin, int64_t end) {
    std::vector<std::byte> acc(static_cast<size_t>(p.width * 8));
    std::vector<std::byte> values(static_cast<size_t>(p.width * 8));
    for (int64_t row = begin; row < end; ++row) {
      p.fold.init(acc.data(), initial, p.width);
      ForEachOuterPosition(p, row, [&](const int64_t* offsets) {
        for (const WindowDimension::Range& r : p.minor) {
          if (r.first >= r.end) continue;
          const int64_t n = (r.end - r.first + r.step - 1) / r.step;
          const std::byte* from = in[0] + (offsets[0] + r.element * minor_stride) * p.bytes[0];
          const std::byte* x = Gather(p, from, r.element_step * minor_stride, n, values.data());
          if (r.step == 1) {
            p.fold.accumulate_row(acc.data() + r.first * acc_bytes, x, n);
          } else {
            for (int64_t i = 0; i < n; ++i) {
              p.fold.accumulate_row(acc.data() + (r.first + i * r.step) * acc_bytes, x + i * p.fold.value_bytes, 1);
            }
          }
        }
      });
      std::byte* to = out[0] + row * p.width * p.bytes[0];
      if (p.store == nullptr) {
        p.fold.finalize(to, acc.data(), p.width);
      } else {
        p.fold.finalize(values.data(), acc.data(), p.width);
        p.store(to, values.data(), p.width);
      }
    }
  });
}

void RunFunction(const ReduceWindowParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const size_t count = p.count;
  const auto run = [&](int64_t begin, int64_t end) {
    ScalarFunction::BlockScratch scratch(*p.function, p.width);
    std::vector<const std::byte*> parameters(2 * count);
    std::vector<int64_t> strides(2 * count, 1);
    std::vector<std::byte*> results(count);
    for (int64_t row = begin; row < end && !context.failed(); ++row) {
      for (size_t k = 0; k < count; ++k) {
        std::byte* to = out[k] + row * p.width * p.bytes[k];
        for (int64_t i = 0; i < p.width; ++i) {
          std::memcpy(to + i * p.bytes[k], in[count + k], static_cast<size_t>(p.bytes[k]));
        }
      }
      ForEachOuterPosition(p, row, [&](const int64_t* offsets) {
        for (const WindowDimension::Range& r : p.minor) {
          if (r.first >= r.end) continue;
          const int64_t n = (r.end - r.first + r.step - 1) / r.step;
          // Results that are not contiguous are computed one by one.
          const int64_t calls = r.step == 1 ? 1 : n;
          for (int64_t c = 0; c < calls; ++c) {
            for (size_t k = 0; k < count; ++k) {
              const int64_t minor_stride = p.strides[k].back();
              results[k] = out[k] + (row * p.width + r.first + c * r.step) * p.bytes[k];
              parameters[k] = results[k];
              strides[count + k] = r.element_step * minor_stride;
              parameters[count + k] =
                  in[k] + (offsets[k] + r.element * minor_stride + c * strides[count + k]) * p.bytes[k];
            }
            p.function->Run(parameters.data(), strides.data(), results.data(), r.step == 1 ? n : 1, scratch, context);
          }
        }
      });
    }
  };
  p.function->ParallelFor(context, p.rows,
                          static_cast<double>(p.num_offsets) * static_cast<double>(p.minor.size()) *
                              (30 + static_cast<double>(p.width) * p.function->cost()),
                          run);
}

// ---- cumulative: windows from one end of a dimension to the result's position ----

// Copies n elements between strides, in elements.
void CopyElements(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride, int64_t n,
                  int64_t bytes) {
  const size_t size = static_cast<size_t>(bytes);
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(n) * size);
    return;
  }
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_stride * bytes, from + i * from_stride * bytes, size);
}

struct CumulativeParams : ThunkParams {
  int64_t length = 0;  // of the dimension
  int64_t step = 0;    // operand step to the next element, negative from the other end
  int64_t out_step = 0;
  LoopNest lines;  // operands: result, operand; the innermost dimension is handled as a whole
  ReductionKernels fold;
  ConvertFn load = nullptr;
  ConvertFn store = nullptr;
  int64_t bytes = 0;
  int64_t in_offset = 0;  // of the first element, in elements
  int64_t out_offset = 0;
};

// Lines next to each other in memory advance together, element by element.
void RunCumulativeRows(const CumulativeParams& p, const std::byte* const* in, std::byte* const* out,
                       const std::byte* initial, RunContext& context) {
  constexpr int64_t kBlock = 256;
  const int64_t width = p.lines.inner_size();
  const int64_t block = std::min(width, kBlock);
  const int64_t blocks = (width + block - 1) / block;
  const int64_t out_stride = p.lines.inner_strides()[0];
  const int64_t in_stride = p.lines.inner_strides()[1];
  const auto run = [&](int64_t begin, int64_t end) {
    alignas(16) std::byte acc[kBlock * 8];
    alignas(16) std::byte values[kBlock * 8];
    alignas(16) std::byte stored[kBlock * 8];
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item % blocks * block;
      const int64_t n = std::min(block, width - first);
      p.lines.ForEachRun(item / blocks, item / blocks + 1, [&](const int64_t* at) {
        const std::byte* from = in[0] + (p.in_offset + at[1] + first * in_stride) * p.bytes;
        std::byte* to = out[0] + (p.out_offset + at[0] + first * out_stride) * p.bytes;
        p.fold.init(acc, initial, n);
        for (int64_t i = 0; i < p.length; ++i, from += p.step * p.bytes, to += p.out_step * p.bytes) {
          const std::byte* x = from;
          if (in_stride != 1 && n != 1) {
            CopyElements(stored, 1, from, in_stride, n, p.bytes);
            x = stored;
          }
          if (p.load != nullptr) {
            p.load(values, x, n);
            x = values;
          }
          p.fold.accumulate_row(acc, x, n);
          p.fold.finalize(values, acc, n);
          const std::byte* result = values;
          if (p.store != nullptr) {
            p.store(stored, values, n);
            result = stored;
          }
          CopyElements(to, out_stride, result, 1, n, p.bytes);
        }
      });
    }
  };
  context.ParallelFor(p.lines.outer_count() * blocks, static_cast<double>(p.length) * (10 + static_cast<double>(block)),
                      run);
}

// Lines whose own elements are next to each other: a few side by side.
void RunCumulativeLines(const CumulativeParams& p, const std::byte* const* in, std::byte* const* out,
                        const std::byte* initial, RunContext& context) {
  const int64_t width = p.lines.inner_size();
  const int64_t blocks = (width + kScanLines - 1) / kScanLines;
  const int64_t* strides = p.lines.inner_strides();
  const auto run = [&](int64_t begin, int64_t end) {
    alignas(16) std::byte acc[kScanLines * 8];
    for (int64_t item = begin; item < end && !context.failed(); ++item) {
      const int64_t first = item % blocks * kScanLines;
      const int64_t n = std::min(kScanLines, width - first);
      p.lines.ForEachRun(item / blocks, item / blocks + 1, [&](const int64_t* at) {
        const std::byte* from = in[0] + (p.in_offset + at[1] + first * strides[1]) * p.bytes;
        std::byte* to = out[0] + (p.out_offset + at[0] + first * strides[0]) * p.bytes;
        p.fold.init(acc, initial, n);
        constexpr int64_t kPiece = int64_t{1} << 16;  // between checks whether the run is to stop
        for (int64_t i = 0; i < p.length; i += kPiece) {
          if (i != 0 && context.ShouldStop()) return;
          p.fold.scan(acc, from + i * p.step * p.bytes, {strides[1], p.step}, to + i * p.out_step * p.bytes,
                      {strides[0], p.out_step}, n, std::min(kPiece, p.length - i));
        }
      });
    }
  };
  context.ParallelFor(p.lines.outer_count() * blocks, static_cast<double>(p.length * kScanLines) * 2, run);
}

void RunCumulative(const CumulativeParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  alignas(16) std::byte initial[16];
  if (p.load != nullptr) {
    p.load(initial, in[1], 1);
  } else {
    std::memcpy(initial, in[1], static_cast<size_t>(p.bytes));
  }
  const bool rows = p.lines.inner_strides()[0] == 1 && p.lines.inner_size() > kScanLines;
  if (rows || p.load != nullptr || p.store != nullptr) {
    RunCumulativeRows(p, in, out, initial, context);
  } else {
    RunCumulativeLines(p, in, out, initial, context);
  }
}

// Returns the parameters if the window covers exactly the elements up to (or from) the result's position in one
// dimension, else null.
std::unique_ptr<CumulativeParams> MakeCumulative(const ReduceWindowParams& p, const View& operand, Shape result) {
  int64_t dim = -1;
  bool forward = true;
  for (size_t d = 0; d < p.axes.size(); ++d) {
    const WindowDimension& a = p.axes[d];
    if (a.window.stride != 1 || a.window.base_dilation != 1 || a.window.window_dilation != 1 || a.input != a.output) {
      return nullptr;
    }
    if (a.window.size == 1 && a.window.padding_low == 0) continue;
    if (dim >= 0 || a.window.size < a.input) return nullptr;
    dim = static_cast<int64_t>(d);
    if (a.window.padding_low != a.window.size - 1 && a.window.padding_low != 0) return nullptr;
    forward = a.window.padding_low != 0;
  }
  if (dim < 0) return nullptr;
  auto params = std::make_unique<CumulativeParams>();
  const Dims in_strides = StridesOf(operand);
  const Dims out_strides = DenseStrides(result.dims());
  params->length = result.dim(dim);
  params->step = forward ? in_strides[dim] : -in_strides[dim];
  params->out_step = forward ? out_strides[dim] : -out_strides[dim];
  if (!forward) {
    params->in_offset = (params->length - 1) * in_strides[dim];
    params->out_offset = (params->length - 1) * out_strides[dim];
  }
  Dims sizes;
  std::vector<Dims> strides(2);
  for (int64_t d = 0; d < result.rank(); ++d) {
    if (d == dim) continue;
    sizes.push_back(result.dim(d));
    strides[0].push_back(out_strides[d]);
    strides[1].push_back(in_strides[d]);
  }
  params->lines = LoopNest(sizes, strides);
  params->fold = p.fold;
  params->load = LoadFn(operand.type());
  params->store = StoreFn(operand.type());
  params->bytes = BytesOf(operand.type());
  return params;
}

}  // namespace

void PrepareReduceWindow(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const size_t count = static_cast<size_t>(instruction.operand_count()) / 2;
  const ScalarFunction* function = AccumulatingFunction(b, Attr::kToApply, count);
  if (function == nullptr || count == 0 || instruction.operand_count() % 2 != 0) {
    b.FailMismatch("arrays, a scalar initial value for each, and a reducer of two elements of each");
    return;
  }
  auto params = std::make_unique<ReduceWindowParams>();
  params->count = count;
  params->function = function;
  std::vector<View> views;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) views.push_back(b.operand(i));
  std::vector<Shape> results;
  AppendLeaves(b.shape(), &results);
  const absl::Span<const int64_t> dims = views[0].dims();
  const WindowView window = WindowView::Of(instruction);
  bool small = true;
  bool fits = results.size() == count && window.ok();
  for (size_t k = 0; fits && k < count; ++k) {
    const ElementType type = views[k].type();
    fits = views[k].dims() == dims && views[count + k].shape.rank() == 0 && views[count + k].type() == type &&
           results[k].element_type() == type && results[k].rank() == static_cast<int64_t>(dims.size()) &&
           results[k].dims() == results[0].dims();
    params->strides.push_back(StridesOf(views[k]));
    params->bytes.push_back(BytesOf(type));
  }
  // A missing window is one element in each dimension.
  fits = fits && (window.rank() == 0 || window.rank() == static_cast<int64_t>(dims.size()));
  for (size_t d = 0; fits && d < dims.size(); ++d) {
    WindowDimension axis;
    if (window.rank() != 0) axis.window = window[static_cast<int64_t>(d)];
    axis.input = dims[d];
    axis.output = results[0].dim(static_cast<int64_t>(d));
    axis.Normalize();
    small = small && axis.Valid();
    params->axes.push_back(axis);
  }
  if (!fits) {
    b.FailMismatch("a window for each dimension of the arrays, and a reducer of two elements of each");
    return;
  }
  if (results[0].element_count() == 0) {
    b.Emit(RunNothing, nullptr, views);
    return;
  }
  if (!small) {
    b.Fail("the window is too large");
    return;
  }
  if (count == 1) {
    // Sums and products of narrow floats are rounded at every step, as the function specifies.
    const bool rounds = IsFloat(views[0].type()) && BitsOf(views[0].type()) < 32 &&
                        (function->recognized_op() == ScalarFunction::RecognizedOp::kAdd ||
                         function->recognized_op() == ScalarFunction::RecognizedOp::kMultiply);
    if (!rounds) params->fold = ReductionKernelsOf(function->recognized_op(), views[0].type());
    std::unique_ptr<CumulativeParams> cumulative;
    if (params->fold.accumulate_row != nullptr) cumulative = MakeCumulative(*params, views[0], results[0]);
    if (cumulative != nullptr) {
      b.Emit(kKernel<RunCumulative>, std::move(cumulative), views);
      return;
    }
  }
  // Rows run along the last dimension with a window.
  if (params->axes.empty()) {
    params->axes.push_back({WindowDim(), 1, 1});
    for (Dims& s : params->strides) s.push_back(0);
  }
  while (params->axes.size() > 1 && params->axes.back().output == 1 && params->axes.back().window.size == 1 &&
         params->axes.back().ElementAt(0, 0) == 0) {
    params->axes.pop_back();
    for (Dims& s : params->strides) s.pop_back();
  }
  if (!params->Init(params->axes)) {
    b.Fail("the window is too large");
    return;
  }
  if (params->fold.accumulate_row != nullptr) {
    params->load = LoadFn(views[0].type());
    params->store = StoreFn(views[0].type());
    b.Emit(kKernel<RunFold>, std::move(params), views);
  } else {
    b.Emit(kKernel<RunFunction>, std::move(params), views);
  }
}

}  // namespace hlokit::interp

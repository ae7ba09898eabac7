// SPDX-License-Identifier: Apache-2.0
// Gather: a window of the operand for each index vector, clamped to be in bounds.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/kernels/movement/indexed_windows.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/machine/strided_copy.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp {
namespace {

struct GatherParams : ThunkParams {
  IndexedWindows windows;
  StridedCopy copy;       // of one window
  int64_t bytes = 0;      // of an element
  int64_t run_bytes = 0;  // of a window that is contiguous on both sides, else 0
};

void RunGather(const GatherParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const IndexedWindows& w = p.windows;
  if (w.empty) return;
  const int64_t n = w.outer.inner_size();
  const int64_t* strides = w.outer.inner_strides();
  const double cost = 10 + static_cast<double>(p.copy.bytes()) * 0.3;
  // Long windows at places that no pattern foretells are asked for while others are copied.
  constexpr int64_t kAhead = 2, kMinRun = 256, kMaxPrefetched = 2048;
  const int64_t ahead = p.run_bytes >= kMinRun ? std::min(p.run_bytes, kMaxPrefetched) : 0;
  // Gathers windows [first, last) of each of the runs [begin, end).
  const auto run = [&](int64_t begin, int64_t end, int64_t first, int64_t last) {
    w.outer.ForEachRun(begin, end, [&](const int64_t* at) {
      for (int64_t i = first; i < last; ++i) {
        const std::byte* from = in[0] + w.ClampedStart(in[1], at, strides, i) * p.bytes;
        if (ahead > 0 && i + kAhead < last) {
          const std::byte* later = in[0] + w.ClampedStart(in[1], at, strides, i + kAhead) * p.bytes;
          for (int64_t line = 0; line < ahead; line += 64) __builtin_prefetch(later + line);
        }
        std::byte* to = out[0] + (at[2] + i * strides[2]) * p.bytes;
        if (p.run_bytes == 4) {
          std::memcpy(to, from, 4);
        } else if (p.run_bytes != 0) {
          std::memcpy(to, from, static_cast<size_t>(p.run_bytes));
        } else {
          p.copy.RunSerial(to, from);
        }
      }
    });
  };
  const int64_t runs = w.outer.outer_count();
  if (runs >= n) {
    context.ParallelFor(runs, cost * static_cast<double>(n),
                        [&](int64_t begin, int64_t end) { run(begin, end, 0, n); });
    return;
  }
  for (int64_t outer = 0; outer < runs && !context.failed(); ++outer) {
    context.ParallelFor(n, cost, [&](int64_t first, int64_t last) { run(outer, outer + 1, first, last); });
  }
}

void RunZeros(const GatherParams& p, const std::byte* const*, std::byte* const* out, RunContext&) {
  std::memset(out[0], 0, static_cast<size_t>(p.bytes));
}

}  // namespace

void PrepareGather(CompiledComputationBuilder& b) {
  const View views[] = {b.operand(0), b.operand(1)};
  const Shape shape = b.shape();
  const GatherDims dims = GatherDims::Of(b.instruction());
  const IndexedDims indexed = {dims.offset_dims,           dims.collapsed_slice_dims,        dims.start_index_map,
                               dims.operand_batching_dims, dims.start_indices_batching_dims, dims.index_vector_dim};
  auto params = std::make_unique<GatherParams>();
  if (views[0].count() == 0) {
    // Windows of size 0 in a collapsed dimension have no elements, but the result may.
    params->bytes = shape.element_count() * BytesOf(shape.element_type());
    b.Emit(kKernel<RunZeros>, std::move(params), {});
    return;
  }
  const Dims out_strides = DenseStrides(shape.dims());
  if (!params->windows.Init(indexed, views[0].dims(), StridesOf(views[0]), views[1], shape.dims(), {&out_strides, 1})) {
    b.FailMismatch("dimension numbers in range of the operand, the indices and the result");
    return;
  }
  params->bytes = BytesOf(shape.element_type());
  const IndexedWindows& w = params->windows;
  params->copy = StridedCopy(w.window_sizes, w.windows_strides[0], w.array_strides, params->bytes);
  if (AreDense(w.window_sizes, w.windows_strides[0]) && AreDense(w.window_sizes, w.array_strides)) {
    params->run_bytes = params->copy.bytes();
  }
  b.Emit(kKernel<RunGather>, std::move(params), views);
}

}  // namespace hlokit::interp

// SPDX-License-Identifier: Apache-2.0
// Reduce, with any number of operands and any function.
//
// The greatest or least value with its index has a kernel of its own (arg_reduce.h).
// Sums, products, minima, maxima and logical operations of one operand have typed loops. Floating-point sums and
// products are accumulated in double and rounded once at the end. One thread computes a result. With few results of
// many elements, the elements are divided into chunks that depend on the shapes alone, and the results of the chunks
// are combined in order, so that no result depends on the number of threads. Other functions are applied in the order
// of XLA's evaluator: row-major over the reduced dimensions, f(accumulator, element).
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "interp/exact/builder/applied_function.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/builder/scalar_function.h"
#include "interp/exact/kernels/reductions/arg_reduce.h"
#include "interp/exact/kernels/reductions/reduction_kernels.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/program/element_op.h"
#include "interp/exact/program/loop_nest.h"

namespace hlokit::interp {
namespace {

constexpr int64_t kBlock = 512;  // results or elements per block

// ---- fast path: one operand, a recognized function ----

struct FastReduceParams : ThunkParams {
  ReductionKernels fold;
  LoopNest kept;     // operands: result, input
  LoopNest reduced;  // operands: input
  ConvertFn load = nullptr;
  ConvertFn store = nullptr;
  int64_t bytes = 0;  // of a stored element, of operand and result
};

// Returns n elements, `stride` elements apart, as contiguous values of the compute type: `from` itself if they are that
// already.
const std::byte* LoadValues(const FastReduceParams& p, const std::byte* from, int64_t stride, int64_t n,
                            std::byte* values) {
  if (stride == 1) {
    if (p.load == nullptr) return from;
    p.load(values, from, n);
    return values;
  }
  for (int64_t i = 0; i < n; ++i) {
    const std::byte* element = from + i * stride * p.bytes;
    if (p.load != nullptr) {
      p.load(values + i * p.fold.value_bytes, element, 1);
    } else {
      std::memcpy(values + i * p.bytes, element, static_cast<size_t>(p.bytes));
    }
  }
  return values;
}

void StoreResults(const FastReduceParams& p, const std::byte* acc, std::byte* to, int64_t stride, int64_t n) {
  alignas(16) std::byte values[kBlock * 8];
  alignas(16) std::byte stored[kBlock * 8];
  p.fold.finalize(values, acc, n);
  const std::byte* from = values;
  if (p.store != nullptr) {
    p.store(stored, values, n);
    from = stored;
  }
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(n * p.bytes));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to + i * stride * p.bytes, from + i * p.bytes, static_cast<size_t>(p.bytes));
  }
}

// A block of n results, whose elements at one position are `stride` apart.
struct Columns {
  int64_t base;  // element of the first one's first position
  int64_t stride;
  int64_t n;
};

// Accumulates positions [begin, end) of the reduced dimensions into `acc`. by_row: position by position, for all
// columns; otherwise all positions of the single column. `fresh`: acc is uninitialized and starts with the first
// position.
void FoldPositions(const FastReduceParams& p, const std::byte* input, const Columns& columns, bool by_row,
                   int64_t begin, int64_t end, bool fresh, std::byte* acc) {
  alignas(64) std::byte values[kBlock * 8];
  const int64_t length = p.reduced.inner_size();
  const int64_t stride = p.reduced.inner_strides()[0];
  int64_t at = begin;
  p.reduced.ForEachRun(begin / length, (end + length - 1) / length, [&](const int64_t* line) {
    int64_t first = at % length;
    const int64_t last = std::min(length, first + end - at);
    at += last - first;
    const std::byte* from = input + (columns.base + line[0]) * p.bytes;
    if (fresh) {
      const std::byte* start = LoadValues(p, from + first * stride * p.bytes, columns.stride, columns.n, values);
      for (int64_t i = 0; i < columns.n; ++i) {
        p.fold.init(acc + i * p.fold.accumulator_bytes, start + i * p.fold.value_bytes, 1);
      }
      fresh = false;
      ++first;
    }
    from += first * stride * p.bytes;
    if (by_row) {
      for (int64_t j = first; j < last; ++j, from += stride * p.bytes) {
        p.fold.accumulate_row(acc, LoadValues(p, from, columns.stride, columns.n, values), columns.n);
      }
    } else if (p.load == nullptr) {
      p.fold.accumulate_strided(acc, from, stride, last - first);
    } else {
      for (int64_t j = first; j < last; j += kBlock, from += kBlock * stride * p.bytes) {
        const int64_t count = std::min(kBlock, last - j);
        p.fold.accumulate_strided(acc, LoadValues(p, from, stride, count, values), 1, count);
      }
    }
  });
}

// Accumulates all positions, in pieces of whole lines unless one is very long; between them the run may stop.
void FoldAll(const FastReduceParams& p, const std::byte* input, const Columns& columns, bool by_row, int64_t positions,
             std::byte* acc, RunContext& context) {
  constexpr int64_t kPiece = int64_t{1} << 22, kLongLine = int64_t{1} << 26;
  const int64_t length = p.reduced.inner_size();
  const int64_t piece =
      length > kLongLine ? kLongLine : (kPiece / columns.n / std::max<int64_t>(length, 1) + 1) * length;
  for (int64_t at = 0; at < positions; at += piece) {
    if (at != 0 && context.ShouldStop()) return;
    FoldPositions(p, input, columns, by_row, at, std::min(positions, at + piece), /*fresh=*/false, acc);
  }
}

// With few results of many elements a work item is a chunk of the elements of a block of results.
constexpr int64_t kChunk = int64_t{1} << 16;  // in elements
constexpr int64_t kMinParallelItems = 16;

void ReduceInChunks(const FastReduceParams& p, const std::byte* input, const std::byte* initial, bool by_row,
                    int64_t block, std::byte* out, RunContext& context) {
  const int64_t width = p.kept.inner_size();
  const int64_t out_stride = p.kept.inner_strides()[0];
  const int64_t in_stride = p.kept.inner_strides()[1];
  const int64_t blocks = (width + block - 1) / block;
  const int64_t items = p.kept.outer_count() * blocks;
  const int64_t positions = p.reduced.outer_count() * p.reduced.inner_size();
  const int64_t per_chunk = std::max<int64_t>(1, kChunk / block);
  const int64_t chunks = (positions + per_chunk - 1) / per_chunk;
  const Scratch partial(context, items * chunks * block * p.fold.accumulator_bytes);
  if (partial.data() == nullptr) return;
  const auto accumulators = [&](int64_t item, int64_t chunk) {
    return partial.data() + (item * chunks + chunk) * block * p.fold.accumulator_bytes;
  };
  const auto results = [&](int64_t item) { return std::min(block, width - item % blocks * block); };
  context.ParallelFor(items * chunks, static_cast<double>(kChunk) * 0.5, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t item = i / chunks;
      const int64_t chunk = i % chunks;
      std::byte* acc = accumulators(item, chunk);
      if (chunk == 0) p.fold.init(acc, initial, results(item));
      p.kept.ForEachRun(item / blocks, item / blocks + 1, [&](const int64_t* at) {
        const Columns columns = {at[1] + item % blocks * block * in_stride, in_stride, results(item)};
        const int64_t first = chunk * per_chunk;
        FoldPositions(p, input, columns, by_row, first, std::min(positions, first + per_chunk), chunk != 0, acc);
      });
    }
  });
  if (context.failed()) return;
  for (int64_t item = 0; item < items; ++item) {
    for (int64_t chunk = 1; chunk < chunks; ++chunk) {
      p.fold.combine(accumulators(item, 0), accumulators(item, chunk), results(item));
    }
    p.kept.ForEachRun(item / blocks, item / blocks + 1, [&](const int64_t* at) {
      std::byte* to = out + (at[0] + item % blocks * block * out_stride) * p.bytes;
      StoreResults(p, accumulators(item, 0), to, out_stride, results(item));
    });
  }
}

void RunFastReduce(const FastReduceParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const std::byte* input = in[0];
  alignas(16) std::byte initial[8];
  if (p.load != nullptr) {
    p.load(initial, in[1], 1);
  } else {
    std::memcpy(initial, in[1], static_cast<size_t>(p.bytes));
  }
  const int64_t width = p.kept.inner_size();
  const int64_t out_stride = p.kept.inner_strides()[0];
  const int64_t in_stride = p.kept.inner_strides()[1];
  const int64_t positions = p.reduced.outer_count() * p.reduced.inner_size();
  const double per_result = static_cast<double>(positions) * 0.5;

  // If results are along the minor dimension of the operand, accumulates a block of them at a time.
  const bool by_row = width > 1 && std::abs(in_stride) < std::abs(p.reduced.inner_strides()[0]);
  const int64_t block = by_row ? std::min(width, kBlock) : 1;
  const int64_t blocks = (width + block - 1) / block;
  const int64_t items = p.kept.outer_count() * blocks;
  if (items < kMinParallelItems && positions >= 2 * std::max<int64_t>(1, kChunk / block)) {
    ReduceInChunks(p, input, initial, by_row, block, out[0], context);
    return;
  }
  if (by_row) {
    context.ParallelFor(items, per_result * static_cast<double>(block), [&](int64_t begin, int64_t end) {
      alignas(64) std::byte acc[kBlock * 8];
      for (int64_t item = begin; item < end; ++item) {
        const int64_t first = item % blocks * block;
        const int64_t n = std::min(block, width - first);
        p.kept.ForEachRun(item / blocks, item / blocks + 1, [&](const int64_t* at) {
          p.fold.init(acc, initial, n);
          const Columns columns = {at[1] + first * in_stride, in_stride, n};
          FoldAll(p, input, columns, /*by_row=*/true, positions, acc, context);
          StoreResults(p, acc, out[0] + (at[0] + first * out_stride) * p.bytes, out_stride, n);
        });
      }
    });
    return;
  }
  // Computes each result separately, along the reduced dimensions.
  context.ParallelFor(items, per_result + 20, [&](int64_t begin, int64_t end) {
    alignas(64) std::byte acc[8];
    for (int64_t item = begin; item < end;) {
      const int64_t column = item % width;
      const int64_t n = std::min(width - column, end - item);
      p.kept.ForEachRun(item / width, item / width + 1, [&](const int64_t* at) {
        for (int64_t i = column; i < column + n; ++i) {
          p.fold.init(acc, initial, 1);
          const Columns columns = {at[1] + i * in_stride, in_stride, 1};
          FoldAll(p, input, columns, /*by_row=*/false, positions, acc, context);
          StoreResults(p, acc, out[0] + (at[0] + i * out_stride) * p.bytes, 1, 1);
        }
      });
      item += n;
    }
  });
}

// ---- any function ----

struct GeneralReduceParams : ThunkParams {
  const ScalarFunction* function = nullptr;
  size_t count = 0;            // of operands
  LoopNest kept;               // operands: result, each input
  LoopNest reduced;            // operands: each input
  std::vector<int64_t> bytes;  // of each input's elements
};

void RunGeneralReduce(const GeneralReduceParams& p, const std::byte* const* in, std::byte* const* out,
                      RunContext& context) {
  const size_t count = p.count;
  const int64_t width = p.kept.inner_size();
  const int64_t block = std::min(width, ScalarFunction::kBlock);
  const int64_t blocks = (width + block - 1) / block;
  const int64_t lines = p.reduced.outer_count();
  const int64_t length = p.reduced.inner_size();
  const auto run = [&](int64_t begin, int64_t end) {
    ScalarFunction::BlockScratch scratch(*p.function, block);
    std::vector<const std::byte*> parameters(2 * count);
    std::vector<int64_t> strides(2 * count, 1);
    std::vector<std::byte*> results(count);
    for (size_t k = 0; k < count; ++k) strides[count + k] = p.kept.inner_strides()[1 + k];
    for (int64_t item = begin; item < end && !context.failed(); ++item) {
      const int64_t first = item % blocks * block;
      const int64_t n = std::min(block, width - first);
      p.kept.ForEachRun(item / blocks, item / blocks + 1, [&](const int64_t* at) {
        // The results are the accumulators. (The nest keeps the result's minor dimension innermost, so its stride
        // is 1.)
        for (size_t k = 0; k < count; ++k) {
          const int64_t bytes = p.bytes[k];
          results[k] = out[k] + (at[0] + first) * bytes;
          parameters[k] = results[k];
          for (int64_t i = 0; i < n; ++i)
            std::memcpy(results[k] + i * bytes, in[count + k], static_cast<size_t>(bytes));
        }
        p.reduced.ForEachRun(0, lines, [&](const int64_t* line) {
          for (int64_t j = 0; j < length; ++j) {
            for (size_t k = 0; k < count; ++k) {
              const int64_t element =
                  at[1 + k] + first * strides[count + k] + line[k] + j * p.reduced.inner_strides()[k];
              parameters[count + k] = in[k] + element * p.bytes[k];
            }
            p.function->Run(parameters.data(), strides.data(), results.data(), n, scratch, context);
          }
        });
      });
    }
  };
  const int64_t items = p.kept.outer_count() * blocks;
  p.function->ParallelFor(
      context, items,
      static_cast<double>(lines) * static_cast<double>(length) * (30 + static_cast<double>(block) * p.function->cost()),
      run);
}

// ---- nothing to reduce: the initial values ----

struct FillParams : ThunkParams {
  std::vector<int64_t> counts;
  std::vector<int64_t> bytes;
};

void RunFillInitial(const FillParams& p, const std::byte* const* in, std::byte* const* out, RunContext&) {
  for (size_t k = 0; k < p.counts.size(); ++k) {
    for (int64_t i = 0; i < p.counts[k]; ++i) {
      std::memcpy(out[k] + i * p.bytes[k], in[k], static_cast<size_t>(p.bytes[k]));
    }
  }
}

}  // namespace

void PrepareReduce(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const size_t count = static_cast<size_t>(instruction.operand_count()) / 2;
  const ScalarFunction* function = AccumulatingFunction(b, Attr::kToApply, count);
  if (function == nullptr || count == 0 || instruction.operand_count() % 2 != 0) {
    b.FailMismatch("arrays of one shape, a scalar initial value for each, and a reducer of two elements of each");
    return;
  }
  std::vector<View> views;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) views.push_back(b.operand(i));
  const View& input = views[0];
  const absl::Span<const int64_t> input_dims = input.dims();
  std::vector<bool> is_reduced(input_dims.size(), false);
  for (int64_t d : instruction.list_attr(Attr::kDimensions)) {
    if (d < 0 || d >= input.shape.rank()) {
      b.FailMismatch("dimensions in range of operand 0");
      return;
    }
    is_reduced[d] = true;
  }
  for (size_t k = 0; k < count; ++k) {
    if (views[k].dims() != input_dims || views[count + k].shape.rank() != 0 ||
        views[count + k].type() != views[k].type()) {
      b.FailMismatch("arrays of one shape, a scalar initial value for each, and a reducer of two elements of each");
      return;
    }
  }

  Dims kept_dims, reduced_dims;
  for (size_t d = 0; d < input_dims.size(); ++d) (is_reduced[d] ? reduced_dims : kept_dims).push_back(input_dims[d]);
  const int64_t results = ElementCount(kept_dims);
  if (results == 0 || ElementCount(reduced_dims) == 0) {
    auto params = std::make_unique<FillParams>();
    std::vector<View> initial(views.begin() + static_cast<int64_t>(count), views.end());
    for (const View& v : initial) {
      params->counts.push_back(results);
      params->bytes.push_back(BytesOf(v.type()));
    }
    b.Emit(kKernel<RunFillInitial>, std::move(params), initial);
    return;
  }

  std::vector<Dims> kept_strides = {DenseStrides(kept_dims)};
  std::vector<Dims> reduced_strides;
  for (size_t k = 0; k < count; ++k) {
    const Dims strides = StridesOf(views[k]);
    Dims kept, reduced;
    for (size_t d = 0; d < input_dims.size(); ++d) (is_reduced[d] ? reduced : kept).push_back(strides[d]);
    kept_strides.push_back(std::move(kept));
    reduced_strides.push_back(std::move(reduced));
  }
  const ReductionKernels fold =
      count == 1 ? ReductionKernelsOf(function->recognized_op(), input.type()) : ReductionKernels();
  if (fold.accumulate_row != nullptr) {
    auto params = std::make_unique<FastReduceParams>();
    params->fold = fold;
    params->kept = LoopNest(kept_dims, kept_strides);
    params->reduced = LoopNest(reduced_dims, reduced_strides);
    params->load = LoadFn(input.type());
    params->store = StoreFn(input.type());
    params->bytes = BytesOf(input.type());
    b.Emit(kKernel<RunFastReduce>, std::move(params), views);
    return;
  }
  const LoopNest kept(kept_dims, kept_strides), reduced(reduced_dims, reduced_strides);
  if (count == 2 && EmitArgReduce(b, views, kept, reduced)) return;
  auto params = std::make_unique<GeneralReduceParams>();
  params->function = function;
  params->count = count;
  params->kept = kept;
  params->reduced = reduced;
  for (size_t k = 0; k < count; ++k) params->bytes.push_back(BytesOf(views[k].type()));
  b.Emit(kKernel<RunGeneralReduce>, std::move(params), views);
}

}  // namespace hlokit::interp

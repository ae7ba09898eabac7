// SPDX-License-Identifier: Apache-2.0
// Scatter: combines windows of updates with the input at computed indices, in row-major order of the updates. Skips
// windows that are partly out of bounds.
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
#include "interp/exact/kernels/movement/indexed_windows.h"
#include "interp/exact/kernels/movement/scatter_elements.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/machine/strided_copy.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp {
namespace {

struct ScatterParams : ThunkParams {
  IndexedWindows windows;
  const ScalarFunction* function = nullptr;
  size_t count = 0;                      // of inputs
  std::vector<int64_t> bytes;            // of an element of each
  std::vector<StridedCopy> whole;        // input to result, if they do not share memory
  LoopNest window;                       // operands: the input, each update
  StridedCopy assign;                    // of a window, where the function returns the update
  ElementFn combine = nullptr;           // the function, if it is one operation on contiguous elements of one input
  ScatterElementsFn elements = nullptr;  // if windows of one input are contiguous, at one index
  // Windows with different starts have no elements in common.
  bool disjoint = false;
};

constexpr int64_t kElementsBetweenChecks = int64_t{1} << 18;

// As ApplyUpdates, for `elements`.
void ApplyElements(const ScatterParams& p, const std::byte* const* in, std::byte* out, int64_t begin, int64_t end,
                   ScatterShare share, RunContext& context) {
  const IndexedWindows& w = p.windows;
  const IndexedWindows::Component& c = w.components[0];
  const int64_t n = w.outer.inner_size(), index_bytes = BytesOf(w.index_type);
  const int64_t* strides = w.outer.inner_strides();
  const int64_t between_checks = std::max<int64_t>(1, kElementsBetweenChecks / p.window.inner_size());
  int64_t until_check = between_checks;
  w.outer.ForEachRun(begin, end, [&](const int64_t* at) {
    for (int64_t first = 0; first < n && !context.failed(); first += between_checks) {
      const int64_t m = std::min(between_checks, n - first);
      const ScatterRun run = {in[1] + (at[0] + first * strides[0] + c.offset) * index_bytes,
                              strides[0],
                              in[2] + (at[2] + first * strides[2]) * p.bytes[0],
                              strides[2],
                              at[1] + first * strides[1],
                              strides[1],
                              c.array_stride,
                              c.limit,
                              p.window.inner_size()};
      p.elements(run, out, m, share);
      until_check -= m;
      if (until_check > 0) continue;
      if (context.ShouldStop()) return;
      until_check = between_checks;
    }
  });
}

// Applies the updates of outer runs [begin, end) in order.
void ApplyUpdates(const ScatterParams& p, const std::byte* const* in, std::byte* const* out, int64_t begin, int64_t end,
                  ScatterShare share, RunContext& context) {
  const size_t count = p.count;
  const IndexedWindows& w = p.windows;
  const std::byte* indices = in[count];
  const std::byte* const* updates = in + count + 1;
  const int64_t n = w.outer.inner_size();
  const int64_t* outer_strides = w.outer.inner_strides();
  const bool assign = p.function->recognized_op() == ScalarFunction::RecognizedOp::kSecond;
  if (p.elements != nullptr) return ApplyElements(p, in, out[0], begin, end, share, context);

  constexpr int64_t kBlock = ScalarFunction::kBlock;
  const int64_t run = p.window.inner_size();
  const int64_t input_stride = p.window.inner_strides()[0];
  ScalarFunction::BlockScratch scratch(*p.function, std::min(run, kBlock));
  std::vector<const std::byte*> parameters(2 * count);
  std::vector<int64_t> strides(2 * count, 1);
  std::vector<std::byte*> results(count);
  for (size_t k = 0; k < count; ++k) strides[count + k] = p.window.inner_strides()[1 + k];
  // Elements of the input that are not contiguous are combined in a temporary block.
  const bool direct = input_stride == 1 || run == 1;
  std::vector<std::byte> block(direct ? 0 : count * static_cast<size_t>(kBlock) * 16);

  const int64_t between_checks =
      std::max<int64_t>(1, kElementsBetweenChecks / std::max<int64_t>(1, p.window.outer_count() * run));
  int64_t until_check = between_checks;
  w.outer.ForEachRun(begin, end, [&](const int64_t* at) {
    if (context.failed()) return;
    for (int64_t i = 0; i < n; ++i) {
      if (--until_check == 0) {
        if (context.ShouldStop()) return;
        until_check = between_checks;
      }
      int64_t start;
      if (!w.Start(indices, at, outer_strides, i, &start)) continue;
      if (!share.Has(start)) continue;
      if (assign) {
        p.assign.RunSerial(out[0] + start * p.bytes[0], updates[0] + (at[2] + i * outer_strides[2]) * p.bytes[0]);
        continue;
      }
      if (p.combine != nullptr) {
        std::byte* to = out[0] + start * p.bytes[0];
        const std::byte* from = updates[0] + (at[2] + i * outer_strides[2]) * p.bytes[0];
        if (p.window.outer_count() == 1) {
          p.combine(to, to, from, nullptr, run, 0);
          continue;
        }
        p.window.ForEachRun(0, p.window.outer_count(), [&](const int64_t* window_at) {
          std::byte* elements = to + window_at[0] * p.bytes[0];
          p.combine(elements, elements, from + window_at[1] * p.bytes[0], nullptr, run, 0);
        });
        continue;
      }
      p.window.ForEachRun(0, p.window.outer_count(), [&](const int64_t* window_at) {
        for (int64_t first = 0; first < run; first += kBlock) {
          const int64_t m = std::min(kBlock, run - first);
          for (size_t k = 0; k < count; ++k) {
            std::byte* to = out[k] + (start + window_at[0] + first * input_stride) * p.bytes[k];
            if (direct) {
              results[k] = to;
            } else {
              results[k] = block.data() + static_cast<int64_t>(k) * kBlock * 16;
              for (int64_t e = 0; e < m; ++e) {
                std::memcpy(results[k] + e * p.bytes[k], to + e * input_stride * p.bytes[k],
                            static_cast<size_t>(p.bytes[k]));
              }
            }
            parameters[k] = results[k];
            const int64_t from = at[2 + k] + i * outer_strides[2 + k] + window_at[1 + k] + first * strides[count + k];
            parameters[count + k] = updates[k] + from * p.bytes[k];
          }
          p.function->Run(parameters.data(), strides.data(), results.data(), m, scratch, context);
          if (direct) continue;
          for (size_t k = 0; k < count; ++k) {
            std::byte* to = out[k] + (start + window_at[0] + first * input_stride) * p.bytes[k];
            for (int64_t e = 0; e < m; ++e) {
              std::memcpy(to + e * input_stride * p.bytes[k], results[k] + e * p.bytes[k],
                          static_cast<size_t>(p.bytes[k]));
            }
          }
        }
      });
    }
  });
}

// The function as one operation on elements of this type; null: it is none.
ElementFn CombineFn(ScalarFunction::RecognizedOp op, ElementType type) {
  using Op = ScalarFunction::RecognizedOp;
  if (LoadFn(type) != nullptr || type == ElementType::kPred || ComputeType(type) != type) return nullptr;
  const auto fn = [&](Opcode opcode) { return ElementFnTable::Get().At(opcode, type).fn; };
  switch (op) {
    case Op::kAdd:
      return fn(Opcode::kAdd);
    case Op::kMultiply:
      return fn(Opcode::kMultiply);
    case Op::kMinimum:
      return fn(Opcode::kMinimum);
    case Op::kMaximum:
      return fn(Opcode::kMaximum);
    case Op::kAnd:
      return fn(Opcode::kAnd);
    case Op::kOr:
      return fn(Opcode::kOr);
    case Op::kXor:
      return fn(Opcode::kXor);
    case Op::kNone:
    case Op::kFirst:
    case Op::kSecond:
      break;
  }
  return nullptr;
}

void RunScatter(const ScatterParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  for (size_t k = 0; k < p.count; ++k) {
    if (in[k] != out[k]) p.whole[k].Run(out[k], in[k], context);
  }
  if (p.windows.empty) return;
  const int64_t runs = p.windows.outer.outer_count();
  const int64_t n = p.windows.outer.inner_size();
  // Each position sees its updates in order, regardless of the worker.
  const double window = 50 + 0.5 * static_cast<double>(p.window.outer_count() * p.window.inner_size());
  constexpr double kWorthwhile = 2e5;  // nanoseconds
  const bool shared = p.disjoint && p.function->parallel() && context.threads() > 1 &&
                      static_cast<double>(runs) * static_cast<double>(n) * window >= kWorthwhile;
  const int64_t parts = shared ? context.threads() : 1;
  const int64_t piece = std::max<int64_t>(1, (int64_t{1} << 22) / n);  // runs between checks of the clock
  for (int64_t begin = 0; begin < runs && !context.failed(); begin += piece) {
    if (begin != 0 && !context.CheckTime()) return;
    const int64_t end = std::min(runs, begin + piece);
    if (!shared) {
      ApplyUpdates(p, in, out, begin, end, {}, context);
      continue;
    }
    context.ForEach(parts, static_cast<double>((end - begin) * n) * window / static_cast<double>(parts),
                    [&](int64_t part) {
                      ApplyUpdates(p, in, out, begin, end, {part, parts}, context);
                    });
  }
}

}  // namespace

void PrepareScatter(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const size_t count = static_cast<size_t>(instruction.operand_count()) / 2;
  const ScalarFunction* function = AccumulatingFunction(b, Attr::kToApply, count);
  if (function == nullptr || instruction.operand_count() % 2 != 1) {
    b.FailMismatch("operands, indices and as many updates, and an update computation of two elements of each operand");
    return;
  }
  std::vector<View> views;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) views.push_back(b.operand(i));
  const ScatterDims dims = ScatterDims::Of(instruction);
  const IndexedDims indexed = {
      dims.update_window_dims,  dims.inserted_window_dims,          dims.scatter_dims_to_operand_dims,
      dims.input_batching_dims, dims.scatter_indices_batching_dims, dims.index_vector_dim};
  auto params = std::make_unique<ScatterParams>();
  params->function = function;
  params->count = count;
  const absl::Span<const int64_t> input_dims = views[0].dims();
  const Dims input_strides = DenseStrides(input_dims);
  std::vector<Dims> update_strides;
  for (size_t k = 0; k < count; ++k) {
    views[k] = b.MakeDense(views[k]);
    const View& update = views[count + 1 + k];
    const ElementType type = views[k].type();
    if (views[k].dims() != input_dims || update.dims() != views[count + 1].dims() || update.type() != type) {
      b.FailMismatch(
          "operands, indices and as many updates, and an update computation of two elements of each operand");
      return;
    }
    params->bytes.push_back(BytesOf(type));
    params->whole.push_back(StridedCopy(input_dims, input_strides, input_strides, params->bytes[k]));
    update_strides.push_back(StridesOf(update));
  }
  if (!params->windows.Init(indexed, input_dims, input_strides, views[count], views[count + 1].dims(),
                            update_strides)) {
    b.FailMismatch("dimension numbers in range of the operands, the indices and the updates");
    return;
  }
  const IndexedWindows& w = params->windows;
  if (!w.empty) {
    std::vector<Dims> strides = {w.array_strides};
    strides.insert(strides.end(), w.windows_strides.begin(), w.windows_strides.end());
    params->window = LoopNest(w.window_sizes, strides);
    const int64_t* inner = params->window.inner_strides();
    const bool contiguous = params->window.inner_size() == 1 || (inner[0] == 1 && inner[1] == 1);
    if (count == 1 && contiguous) params->combine = CombineFn(function->recognized_op(), views[0].type());
    if (count == 1 && contiguous && w.components.size() == 1 && w.long_batches.empty() &&
        params->window.outer_count() == 1) {
      params->elements = ScatterElementsOf(function->recognized_op(), views[0].type(), w.index_type);
    }
    if (count == 1)
      params->assign = StridedCopy(w.window_sizes, w.array_strides, w.windows_strides[0], params->bytes[0]);
  }
  params->disjoint = std::all_of(w.components.begin(), w.components.end(),
                                 [](const IndexedWindows::Component& c) { return c.is_point; });
  b.EmitInPlace(kKernel<RunScatter>, std::move(params), views, count);
}

}  // namespace hlokit::interp

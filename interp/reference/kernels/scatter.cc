// Scatter: windows of updates are combined with the input at the places that an index array names, in row-major order
// of the updates. A window that does not lie inside the input is left out as a whole.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "interp/reference/kernels.h"
#include "interp/reference/kernels/indexed_windows.h"
#include "interp/reference/program_builder.h"
#include "interp/reference/routine_builder.h"
#include "interp/reference/run_context.h"
#include "interp/reference/scalar_function.h"
#include "interp/reference/strided_copy.h"
#include "ir/attribute_views.h"

namespace hlokit::interp {
namespace {

struct ScatterPlan : Plan {
  IndexedWindows windows;
  const ScalarFunction* function = nullptr;
  size_t count = 0;                // of inputs
  std::vector<int64_t> bytes;      // of an element of each
  std::vector<StridedCopy> whole;  // input to result, for when they are not the same bytes
  LoopNest window;                 // operands: the input, each update
  StridedCopy assign;              // of a window, where the function returns the update
};

void RunScatter(const Plan* plan, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const auto& p = *static_cast<const ScatterPlan*>(plan);
  const size_t count = p.count;
  for (size_t k = 0; k < count; ++k) {
    if (in[k] != out[k]) p.whole[k].Run(out[k], in[k], context);
  }
  const IndexedWindows& w = p.windows;
  if (w.empty) return;
  const std::byte* indices = in[count];
  const std::byte* const* updates = in + count + 1;
  const int64_t n = w.outer.inner_size();
  const int64_t* outer_strides = w.outer.inner_strides();
  const bool assign = p.function->known() == ScalarFunction::Known::kSecond;

  constexpr int64_t kBlock = ScalarFunction::kBlock;
  const int64_t run = p.window.inner_size();
  const int64_t input_stride = p.window.inner_strides()[0];
  ScalarFunction::Scratch scratch(*p.function, std::min(run, kBlock));
  std::vector<const std::byte*> parameters(2 * count);
  std::vector<int64_t> strides(2 * count, 1);
  std::vector<std::byte*> results(count);
  for (size_t k = 0; k < count; ++k) strides[count + k] = p.window.inner_strides()[1 + k];
  // Elements of the input that are not contiguous are combined in a block of their own.
  const bool direct = input_stride == 1 || run == 1;
  std::vector<std::byte> block(direct ? 0 : count * static_cast<size_t>(kBlock) * 16);

  int64_t runs_done = 0;
  w.outer.ForEachRun(0, w.outer.outer_count(), [&](const int64_t* at) {
    if (context.failed()) return;
    if ((++runs_done & 0xfff) == 0 && !context.CheckTime()) return;
    for (int64_t i = 0; i < n; ++i) {
      int64_t start;
      if (!w.Start(indices, at[0] + i * outer_strides[0], &start)) continue;
      start += at[1] + i * outer_strides[1];
      if (assign) {
        p.assign.RunSerial(out[0] + start * p.bytes[0], updates[0] + (at[2] + i * outer_strides[2]) * p.bytes[0]);
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

}  // namespace

void PrepareScatter(RoutineBuilder& b) {
  const Instruction instruction = b.instruction();
  const size_t count = static_cast<size_t>(instruction.operand_count()) / 2;
  const ScalarFunction* function = b.program().FunctionOf(instruction.computation_attr(Attr::kToApply));
  if (function == nullptr || instruction.operand_count() % 2 != 1 || function->parameter_count() != 2 * count ||
      function->result_count() != count) {
    b.Fail("the function of the scatter does not fit its operands");
    return;
  }
  std::vector<View> views;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) views.push_back(b.operand(i));
  const ScatterDims dims = ScatterDims::Of(instruction);
  const IndexedDims indexed = {
      dims.update_window_dims,  dims.inserted_window_dims,          dims.scatter_dims_to_operand_dims,
      dims.input_batching_dims, dims.scatter_indices_batching_dims, dims.index_vector_dim};
  auto plan = std::make_unique<ScatterPlan>();
  plan->function = function;
  plan->count = count;
  const absl::Span<const int64_t> input_dims = views[0].dims();
  const Dims input_strides = DenseStrides(input_dims);
  std::vector<Dims> update_strides;
  for (size_t k = 0; k < count; ++k) {
    views[k] = b.Dense(views[k]);
    const View& update = views[count + 1 + k];
    const ElementType type = views[k].type();
    if (views[k].dims() != input_dims || update.dims() != views[count + 1].dims() || update.type() != type ||
        function->parameter_type(k) != type || function->parameter_type(count + k) != type ||
        function->result_type(k) != type) {
      b.Fail("the function of the scatter does not fit its operands");
      return;
    }
    plan->bytes.push_back(BytesOf(type));
    plan->whole.push_back(StridedCopy(input_dims, input_strides, input_strides, plan->bytes[k]));
    update_strides.push_back(StridesOf(update));
  }
  if (!plan->windows.Init(indexed, input_dims, input_strides, views[count], views[count + 1].dims(), update_strides)) {
    b.Fail("dimension numbers do not fit the operands");
    return;
  }
  const IndexedWindows& w = plan->windows;
  if (!w.empty) {
    std::vector<Dims> strides = {w.array_strides};
    strides.insert(strides.end(), w.windows_strides.begin(), w.windows_strides.end());
    plan->window = LoopNest(w.window_sizes, strides);
    if (count == 1) plan->assign = StridedCopy(w.window_sizes, w.array_strides, w.windows_strides[0], plan->bytes[0]);
  }
  b.EmitReusing(RunScatter, std::move(plan), views, count);
}

}  // namespace hlokit::interp

// SPDX-License-Identifier: Apache-2.0
// Map: a scalar computation applied to each element.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/builder/scalar_function.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/program/loop_nest.h"

namespace hlokit::interp {
namespace {

struct MapParams : ThunkParams {
  LoopNest nest;  // operands: result, then the instruction's
  const ScalarFunction* function = nullptr;
  std::vector<int64_t> in_bytes;
  int64_t out_bytes = 0;
};

void RunMap(const MapParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const size_t count = p.in_bytes.size();
  const int64_t n = p.nest.inner_size();
  const int64_t block = std::min(n, ScalarFunction::kBlock);
  const int64_t blocks = (n + block - 1) / block;
  const auto run = [&](int64_t begin, int64_t end) {
    ScalarFunction::BlockScratch scratch(*p.function, block);
    std::vector<const std::byte*> parameters(count);
    for (int64_t item = begin; item < end && !context.failed(); ++item) {
      const int64_t first = item % blocks * block;
      p.nest.ForEachRun(item / blocks, item / blocks + 1, [&](const int64_t* at) {
        for (size_t k = 0; k < count; ++k) {
          parameters[k] = in[k] + (at[1 + k] + first * p.nest.inner_strides()[1 + k]) * p.in_bytes[k];
        }
        std::byte* results[] = {out[0] + (at[0] + first) * p.out_bytes};
        p.function->Run(parameters.data(), p.nest.inner_strides() + 1, results, std::min(block, n - first), scratch,
                        context);
      });
    }
  };
  const int64_t items = p.nest.outer_count() * blocks;
  p.function->ParallelFor(context, items, static_cast<double>(block) * p.function->cost() + 50, run);
}

}  // namespace

void PrepareMap(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const Shape shape = b.shape();
  auto params = std::make_unique<MapParams>();
  params->function = b.program().FunctionOf(instruction.computation_attr(Attr::kToApply));
  std::vector<View> views;
  std::vector<Dims> strides = {DenseStrides(shape.dims())};
  bool fits = params->function != nullptr && params->function->result_count() == 1 &&
              params->function->parameter_count() == static_cast<size_t>(instruction.operand_count()) &&
              params->function->result_type(0) == shape.element_type();
  for (int64_t i = 0; fits && i < instruction.operand_count(); ++i) {
    views.push_back(b.operand(i));
    fits = views.back().dims() == shape.dims() &&
           views.back().type() == params->function->parameter_type(static_cast<size_t>(i));
    strides.push_back(StridesOf(views.back()));
    params->in_bytes.push_back(BytesOf(views.back().type()));
  }
  if (!fits) {
    b.FailMismatch(
        "operands of the dimensions of the result and of the types of the parameters of the mapped computation");
    return;
  }
  if (shape.element_count() == 0) {
    b.Emit(RunNothing, nullptr, views);
    return;
  }
  params->out_bytes = BytesOf(shape.element_type());
  params->nest = LoopNest(shape.dims(), strides);
  b.Emit(kKernel<RunMap>, std::move(params), views);
}

}  // namespace hlokit::interp

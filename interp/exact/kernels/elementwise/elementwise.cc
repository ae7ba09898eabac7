// SPDX-License-Identifier: Apache-2.0
// Elementwise instructions: an ElementOp in a nest of loops over operands and result.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/emit.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/program/element_op.h"
#include "interp/exact/program/loop_nest.h"

namespace hlokit::interp {
namespace {

struct ElementwiseParams : ThunkParams {
  ElementOp op;
  LoopNest nest;  // operands: the result, then the instruction's
  int arity = 0;
  int64_t outer = 0;
  int64_t inner = 0;
  int64_t in_bytes[ElementOp::kMaxOperands] = {};
  int64_t out_bytes = 0;
};

void RunElementwise(const ElementwiseParams& p, const std::byte* const* in, std::byte* const* out,
                    RunContext& context) {
  const int64_t* strides = p.nest.inner_strides() + 1;
  if (p.outer == 1) {
    constexpr int64_t kSmall = 2048;
    if (p.inner <= kSmall) {
      // The operation reads kMaxOperands pointers regardless of the operand count.
      const std::byte* from[ElementOp::kMaxOperands] = {};
      for (int i = 0; i < p.arity; ++i) from[i] = in[i];
      p.op.Run(out[0], from, strides, p.inner);
      return;
    }
    context.ParallelFor(p.inner, p.op.cost(), [&](int64_t begin, int64_t end) {
      const std::byte* from[ElementOp::kMaxOperands] = {};
      for (int i = 0; i < p.arity; ++i) from[i] = in[i] + begin * strides[i] * p.in_bytes[i];
      p.op.Run(out[0] + begin * p.out_bytes, from, strides, end - begin);
    });
    return;
  }
  context.ParallelFor(p.outer, 5 + static_cast<double>(p.inner) * p.op.cost(), [&](int64_t begin, int64_t end) {
    p.nest.ForEachRun(begin, end, [&](const int64_t* at) {
      const std::byte* from[ElementOp::kMaxOperands] = {};
      for (int i = 0; i < p.arity; ++i) from[i] = in[i] + at[i + 1] * p.in_bytes[i];
      p.op.Run(out[0] + at[0] * p.out_bytes, from, strides, p.inner);
    });
  });
}

}  // namespace

std::optional<View> EmitElementwise(CompiledComputationBuilder& b, Opcode opcode, const AttrReader& attrs,
                                    absl::Span<const View> operands, Shape shape) {
  absl::InlinedVector<ElementType, ElementOp::kMaxOperands> types;
  for (const View& v : operands) types.push_back(v.type());
  std::string error;
  std::optional<ElementOp> op = ElementOp::Create(opcode, attrs, types, shape.element_type(), &error);
  if (!op) {
    b.Fail(std::move(error));
    return std::nullopt;
  }
  if (op->identity() && operands[0].dims() == shape.dims()) {
    View view = operands[0];
    view.shape = shape;
    return view;
  }
  auto params = std::make_unique<ElementwiseParams>();
  params->op = *op;
  params->arity = op->arity();
  params->out_bytes = BytesOf(shape.element_type());
  absl::InlinedVector<Dims, ElementOp::kMaxOperands + 1> strides = {DenseStrides(shape.dims())};
  for (size_t i = 0; i < operands.size(); ++i) {
    params->in_bytes[i] = BytesOf(types[i]);
    if (operands[i].shape.rank() == 0 && shape.rank() != 0) {
      // clamp and select broadcast scalars.
      strides.push_back(Dims(static_cast<size_t>(shape.rank()), 0));
    } else if (operands[i].dims() == shape.dims()) {
      strides.push_back(StridesOf(operands[i]));
    } else {
      b.FailMismatch("operands of the same dimensions");
      return std::nullopt;
    }
  }
  if (shape.element_count() == 0) return b.EmitTo(RunNothing, nullptr, operands, {&shape, 1})[0];
  params->nest = LoopNest(shape.dims(), strides);
  params->outer = params->nest.outer_count();
  params->inner = params->nest.inner_size();
  constexpr InPlaceReuse kAny[] = {{0, 0}, {1, 0}, {2, 0}};
  return b.EmitTo(kKernel<RunElementwise>, std::move(params), operands, {&shape, 1}, kAny, /*elementwise=*/true)[0];
}

void PrepareElementwise(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  ViewList views;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    if (b.leaves(instruction.operand(i)).size() != 1 || !b.operand(i).shape.IsArray() || !b.shape().IsArray()) {
      b.Fail("expected array operands of an elementwise instruction");
      return;
    }
    views.push_back(b.operand(i));
  }
  const std::optional<View> result = EmitElementwise(b, instruction.opcode(), instruction, views, b.shape());
  if (result) b.SetResult(*result);
}

}  // namespace hlokit::interp

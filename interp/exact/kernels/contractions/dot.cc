// SPDX-License-Identifier: Apache-2.0
// Dot with any batch, free and contracting dimensions, as a batch of matrix products.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/emit.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/kernels/contractions/matrix_product.h"
#include "interp/exact/kernels/contractions/packed_operands.h"
#include "interp/exact/kernels/contractions/strided_source.h"
#include "interp/exact/kernels/reshape_view.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp {
namespace {

struct DotParams : ThunkParams {
  ProductShape shape;
  StridedSource lhs;
  StridedSource rhs;
  ElementType result;
};

void RunDot(const DotParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  if (p.shape.batch * p.shape.m * p.shape.n == 0) return;
  const StridedPanels lhs(p.lhs, in[0]);
  const StridedPanels rhs(p.rhs, in[1]);
  MultiplyMatrices(p.shape, lhs, rhs, p.result, out[0], context);
}

}  // namespace

std::optional<View> EmitDotTo(CompiledComputationBuilder& b, const View& lhs, const View& rhs, const DotDims& dims,
                              Shape shape) {
  auto params = std::make_unique<DotParams>();
  params->result = shape.element_type();
  if (!params->lhs.Init(lhs, dims.lhs_batch, dims.lhs_contracting, params->result) ||
      !params->rhs.Init(rhs, dims.rhs_batch, dims.rhs_contracting, params->result)) {
    b.FailMismatch("dimension numbers in range of the operands, and types that convert to that of the result");
    return std::nullopt;
  }
  params->shape = {params->lhs.batch.count(), params->lhs.free.count(), params->rhs.free.count(),
                   params->lhs.contracting.count()};
  if (params->rhs.batch.count() != params->shape.batch || params->rhs.contracting.count() != params->shape.k ||
      params->shape.batch * params->shape.m * params->shape.n != shape.element_count()) {
    b.FailMismatch("operands of the same sizes in batch and contracting dimensions");
    return std::nullopt;
  }
  const View operands[] = {lhs, rhs};
  return b.EmitTo(kKernel<RunDot>, std::move(params), operands, {&shape, 1})[0];
}

void EmitDot(CompiledComputationBuilder& b, const View& lhs, const View& rhs, const DotDims& dims) {
  const std::optional<View> product = EmitDotTo(b, lhs, rhs, dims, b.shape());
  if (product) b.SetResult(*product);
}

void PrepareDot(CompiledComputationBuilder& b) {
  if (b.instruction().operand_count() != 2) {
    b.Fail("expected two operands: HLO defines no meaning of a dot of more");
    return;
  }
  const std::optional<OperandPacking> packing = OperandPackingOf(b);
  if (!packing) return;
  const DotDims dims = DotDims::Of(b.instruction());
  if (*packing == OperandPacking::kNone) {
    EmitDot(b, b.operand(0), b.operand(1), dims);
    return;
  }
  // Both nibbles of an element are contracted: along the last contracting dimension, or along an added one.
  const absl::Span<const int64_t> of[] = {dims.lhs_contracting, dims.rhs_contracting};
  View sides[2];
  Dims contracting[2];
  for (int i = 0; i < 2; ++i) {
    sides[i] = b.operand(i);
    contracting[i].assign(of[i].begin(), of[i].end());
    if (contracting[i].empty()) {
      contracting[i].push_back(sides[i].shape.rank());
      Dims sizes(sides[i].dims().begin(), sides[i].dims().end());
      sizes.push_back(1);
      sides[i] = ReshapeView(b, sides[i], b.program_shapes().Array(sides[i].type(), sizes));
    }
    sides[i] = EmitNibbles(b, sides[i], contracting[i].back());
  }
  EmitDot(b, sides[0], sides[1], {dims.lhs_batch, contracting[0], dims.rhs_batch, contracting[1]});
}

// Prepares operands times scales. A scale has the rank of its operand and in each dimension a divisor of its size: one
// number for a block of elements.
void PrepareScaledDot(CompiledComputationBuilder& b) {
  if (!OperandPackingOf(b)) return;
  ShapeTable& shapes = b.program_shapes();
  const ElementType type = b.shape().element_type() == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
  View scaled[2];
  for (int i = 0; i < 2; ++i) {
    const View operand = b.operand(i);
    View scale = b.operand(i + 2);
    const Shape wide = shapes.Array(type, operand.dims());
    const std::optional<View> values = EmitElementwise(b, Opcode::kConvert, b.instruction(), {&operand, 1}, wide);
    const std::optional<View> factors =
        EmitElementwise(b, Opcode::kConvert, b.instruction(), {&scale, 1}, shapes.Array(type, scale.dims()));
    if (!values || !factors) return;
    scale = *factors;
    if (scale.shape.rank() != 0) {
      // Each dimension of the scale, followed by one for the elements that share it.
      const Dims from = StridesOf(scale);
      Dims sizes, strides;
      for (int64_t d = 0; d < scale.shape.rank(); ++d) {
        const int64_t n = scale.shape.dim(d);
        if (scale.shape.rank() != operand.shape.rank() || n == 0 || operand.shape.dim(d) % n != 0) {
          b.Fail("a dimension of a scale does not divide that of its operand");
          return;
        }
        sizes.push_back(n);
        strides.push_back(from[d]);
        sizes.push_back(operand.shape.dim(d) / n);
        strides.push_back(0);
      }
      scale.shape = shapes.Array(type, sizes);
      scale.strides = b.NewStrides(strides, sizes);
      scale = ReshapeView(b, scale, wide);
    }
    const View factors_of[] = {*values, scale};
    const std::optional<View> product = EmitElementwise(b, Opcode::kMultiply, b.instruction(), factors_of, wide);
    if (!product) return;
    scaled[i] = *product;
  }
  EmitDot(b, scaled[0], scaled[1], DotDims::Of(b.instruction()));
}

}  // namespace hlokit::interp

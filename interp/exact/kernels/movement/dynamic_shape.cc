// SPDX-License-Identifier: Apache-2.0
// Sizes of static dimensions. Programs with dynamic ones are made static before they run (interp/dynamic).
#include <cstdint>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/kernels/reshape_view.h"

namespace hlokit::interp {
namespace {

// Returns the dimension of an instruction, or -1.
int64_t DimensionOf(Instruction instruction) {
  const absl::Span<const int64_t> dimensions = instruction.list_attr(Attr::kDimensions);
  if (dimensions.size() != 1) return -1;
  return dimensions[0];
}

}  // namespace

void PrepareSetDimensionSize(CompiledComputationBuilder& b) {
  View view = b.operand(0);
  view.shape = b.shape();
  b.SetResult(view);
}

void PrepareGetDimensionSize(CompiledComputationBuilder& b) {
  const int64_t dim = DimensionOf(b.instruction());
  const Instruction operand = b.instruction().operand(0);
  if (dim < 0 || dim >= operand.shape().rank()) {
    b.Fail("the dimension is out of range for the operand");
    return;
  }
  auto* size = b.program().program().arena.AllocateArray<int64_t>(1);
  *size = operand.shape().dim(dim);  // s32 are its low bytes
  b.SetResult(b.Constant(b.shape(), reinterpret_cast<const std::byte*>(size)));
}

void PrepareDynamicReshape(CompiledComputationBuilder& b) {
  if (b.operand(0).count() != b.shape().element_count()) {
    b.EmitTrap("dynamic-reshape between different bounds");
    return;
  }
  b.SetResult(ReshapeView(b, b.operand(0), b.shape()));
}

}  // namespace hlokit::interp

// SPDX-License-Identifier: Apache-2.0
// Time of matmuls and convolutions on systolic arrays.
#ifndef HLOKIT_PASSES_TARGET_MATRIX_COST_H_
#define HLOKIT_PASSES_TARGET_MATRIX_COST_H_

#include <cstdint>

#include "ir/graph/module.h"
#include "passes/target/device_description.h"

namespace hlokit::tpu {

// A matmul in the form that the matrix unit executes: `batch` times [m,k] x [k,n].
struct MatmulShape {
  double batch = 1;
  double m = 1;
  double n = 1;
  double k = 1;
  double lhs_bytes = 0;  // of the operands, padded
  double rhs_bytes = 0;
  double passes = 1;   // through the matrix unit, for the operand precision
  double speedup = 1;  // of the operand type over bf16
  // Arrays outside the kernel from which the operands are computed; invalid if there are none.
  InstructionId lhs_source = {};
  InstructionId rhs_source = {};
};

// Returns the shape of a dot, ragged or scaled dot, or convolution. A convolution becomes a matmul over its window
// (im2col) that counts the multiplications outside of padding and holes.
MatmulShape MatmulShapeOf(const DeviceDescription& machine, Instruction instruction);

struct MatmulCycleCount {
  double total = 0;
  double streaming = 0;  // of rows alone: the push of the next weights takes the rest, where there are few rows
};
// Returns the cycles of the matrix units of a device, at their peak rate, with the better of the operands stationary.
MatmulCycleCount MatmulCycles(const DeviceDescription& machine, const MatmulShape& product);

struct MatmulTime {
  double mxu = 0;              // in seconds, including efficiency losses
  double streaming = 0;        // of it, without waits for weights, which are pushed into the arrays as they arrive
  double refetched_bytes = 0;  // bytes that tiles read from HBM again, beyond one read of each operand
};
// `lhs_in_vmem`, `rhs_in_vmem`: operands that tiles need not fetch from HBM.
MatmulTime TimeOf(const DeviceDescription& machine, const MatmulShape& product, bool lhs_in_vmem, bool rhs_in_vmem);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_MATRIX_COST_H_

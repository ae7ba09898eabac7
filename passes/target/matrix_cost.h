// SPDX-License-Identifier: Apache-2.0
// Time of matrix products and convolutions on systolic arrays.
#ifndef HLOKIT_PASSES_TARGET_MATRIX_COST_H_
#define HLOKIT_PASSES_TARGET_MATRIX_COST_H_

#include <cstdint>

#include "ir/graph/module.h"
#include "passes/target/device_description.h"

namespace hlokit::tpu {

// A product as the matrix unit sees it: `batch` times [m,k] x [k,n].
struct MatmulShape {
  double batch = 1;
  double m = 1;
  double n = 1;
  double k = 1;
  double lhs_bytes = 0;  // of operands and result, padded
  double rhs_bytes = 0;
  double out_bytes = 0;
  double passes = 1;   // over the array, for operand precision
  double speedup = 1;  // of the operand type over bf16
  // Arrays outside the kernel that most of an operand is made of; none if it is made in the kernel.
  InstructionId lhs_source;
  InstructionId rhs_source;
};

// Of a dot, ragged or scaled dot, or convolution. A convolution is the product over its window (im2col), counting the
// multiplications that meet no padding or hole.
MatmulShape MatmulShapeOf(const DeviceDescription& machine, Instruction instruction);

struct MatmulTime {
  double mxu = 0;              // seconds, without efficiency loss hidden: the loss is in
  double ideal = 0;            // at the peak rate, no padding
  double refetched_bytes = 0;  // bytes that tiles read again from HBM, beyond each operand once
};
// `lhs_in_vmem`, `rhs_in_vmem`: operands that no tile has to fetch.
MatmulTime TimeOf(const DeviceDescription& machine, const MatmulShape& product, bool lhs_in_vmem, bool rhs_in_vmem);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_MATRIX_COST_H_

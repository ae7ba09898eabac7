// SPDX-License-Identifier: Apache-2.0
// Constraints on the arguments of a program: index bounds, positive values, and scale of contraction operands. Inferred
// from the instructions alone, independent of names.
#ifndef HLOKIT_CHECK_ARGUMENTS_ARGUMENT_CONSTRAINTS_H_
#define HLOKIT_CHECK_ARGUMENTS_ARGUMENT_CONSTRAINTS_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module_fwd.h"

namespace hlokit::interp {

struct ArgumentConstraints {
  // n: the elements are used as indices, of which 0, ..., n - 1 are in bounds at every use. 0: not an index.
  int64_t index_bound = 0;
  // A square root or logarithm is taken of the elements, or of sums, products and quotients of them.
  bool positive = false;
  // Right operand of a dot or kernel of a convolution: the largest number of products in a sum of the result. 0:
  // neither.
  int64_t contraction_size = 0;
};

// Returns the constraints for each leaf of the entry's parameters, tuples flattened.
//
// Indices of gather, scatter, dynamic-slice and dynamic-update-slice, sizes of set-dimension-size and branch indices of
// conditional are traced back through instructions that only move or convert values, and through calls, loops and
// conditionals. Arithmetic ends the trace. Operands of sqrt, rsqrt and log and the variances of batch-norm-inference
// and batch-norm-grad are also traced through add, multiply, divide and reductions, whose results are positive if their
// operands are; the square of a value has no constraint. Right operands and kernels are traced like indices.
std::vector<ArgumentConstraints> InferArgumentConstraints(const Module& module);

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_ARGUMENTS_ARGUMENT_CONSTRAINTS_H_

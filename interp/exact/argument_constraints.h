// SPDX-License-Identifier: Apache-2.0
// What the arguments of a program must be for it to make sense: where they are used as indices, where they may not be
// negative, and where they weigh what is summed up. Found from the instructions alone, so it is the same however the
// program names things.
#ifndef HLOKIT_INTERP_EXACT_ARGUMENT_CONSTRAINTS_H_
#define HLOKIT_INTERP_EXACT_ARGUMENT_CONSTRAINTS_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit::interp {

struct ArgumentConstraints {
  // n: the elements are used as indices, of which 0, ..., n - 1 are in bounds everywhere. 0: they are not.
  int64_t index_bound = 0;
  // A square root or logarithm takes the elements, or sums, products and quotients of them.
  bool positive = false;
  // n: they are the right side of a dot or the kernel of a convolution, whose results are sums of n products; the
  // longest such sum. 0: they are not.
  int64_t contraction_size = 0;
};

// For each leaf of the entry's parameters, tuples flattened.
//
// An index of gather, scatter, dynamic-slice, dynamic-update-slice, a size for set-dimension-size and a branch of
// conditional are followed back through instructions that only move or convert values, and through calls, loops and
// conditionals; where they went through arithmetic the trail ends. So are operands of sqrt, rsqrt and log and the
// variances of batch-norm-inference and batch-norm-grad, also through add, multiply, divide and reductions, whose
// results are positive if what they combine is; a product of a value with itself needs nothing. Right sides and kernels
// are followed as indices are.
std::vector<ArgumentConstraints> InferArgumentConstraints(const Module& module);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_ARGUMENT_CONSTRAINTS_H_

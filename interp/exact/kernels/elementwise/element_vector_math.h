// SPDX-License-Identifier: Apache-2.0
// Vectorized mathematical functions of f32.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_ELEMENTWISE_ELEMENT_VECTOR_MATH_H_
#define HLOKIT_INTERP_EXACT_KERNELS_ELEMENTWISE_ELEMENT_VECTOR_MATH_H_

#include "interp/exact/program/element_op.h"

namespace hlokit::interp {

// Fills the rows of f32 for exponential, exponential-minus-one, log, logistic and tanh.
void RegisterVectorMath(ElementFnTable* table);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_ELEMENTWISE_ELEMENT_VECTOR_MATH_H_

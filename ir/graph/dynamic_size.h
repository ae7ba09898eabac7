// SPDX-License-Identifier: Apache-2.0
// Sizes of dynamic dimensions: which instruction computes the size of an array's dimension. A small part of XLA's
// DynamicDimensionInference: within one computation, through operations that keep the dimension.
#ifndef HLOKIT_IR_GRAPH_DYNAMIC_SIZE_H_
#define HLOKIT_IR_GRAPH_DYNAMIC_SIZE_H_

#include <cstdint>

#include "ir/graph/module.h"

namespace hlokit {

// Returns the size that a set-dimension-size gave to dimension `dim` of `array`, found through identities and, where
// the dimension is dynamic, elementwise operations, reverse, transpose, and the arrays that scatter and
// dynamic-update-slice update. Returns an invalid instruction if there is none. Linear in the computation.
Instruction FindDynamicSize(Instruction array, int64_t dim);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_DYNAMIC_SIZE_H_

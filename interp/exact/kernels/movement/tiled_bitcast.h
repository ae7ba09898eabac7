// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_INTERP_EXACT_KERNELS_MOVEMENT_TILED_BITCAST_H_
#define HLOKIT_INTERP_EXACT_KERNELS_MOVEMENT_TILED_BITCAST_H_

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/program/view.h"
#include "ir/types/shape.h"

namespace hlokit::interp {

// Sets the result of a bitcast to what lies in the memory of `view`, an array with the layout of `operand`: a view
// where nothing is padded and strides can express it, else a copy. What lies in padding of the operand or beyond its
// end is zero.
void EmitTiledBitcast(CompiledComputationBuilder& b, const View& view, Shape operand);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_MOVEMENT_TILED_BITCAST_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_INTERP_EXACT_KERNELS_RESHAPE_VIEW_H_
#define HLOKIT_INTERP_EXACT_KERNELS_RESHAPE_VIEW_H_

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/program/view.h"

namespace hlokit::interp {

// Returns `view` with other dimensions and the same row-major order. Emits a copy if strides cannot express it.
View ReshapeView(CompiledComputationBuilder& builder, View view, Shape shape);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_RESHAPE_VIEW_H_

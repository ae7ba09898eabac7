// SPDX-License-Identifier: Apache-2.0
// Steps of convolutions and their gradients.
#ifndef HLOKIT_INTERP_COMPILED_CONVOLUTIONS_CONVOLUTION_THUNK_H_
#define HLOKIT_INTERP_COMPILED_CONVOLUTIONS_CONVOLUTION_THUNK_H_

#include "interp/compiled/products/library_thunk.h"
#include "interp/compiled/programs/prepare_result.h"
#include "interp/exact/builder/compiled_computation_builder.h"

namespace hlokit::interp::compiled {

// Prepares a convolution.
PrepareResult PrepareConvolutionThunk(CompiledComputationBuilder& builder, PackedWeights* packed);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_CONVOLUTIONS_CONVOLUTION_THUNK_H_

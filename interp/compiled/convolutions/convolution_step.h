// SPDX-License-Identifier: Apache-2.0
// Steps of convolutions and their gradients.
#ifndef HLOKIT_INTERP_COMPILED_CONVOLUTIONS_CONVOLUTION_STEP_H_
#define HLOKIT_INTERP_COMPILED_CONVOLUTIONS_CONVOLUTION_STEP_H_

#include <string>

#include "interp/compiled/products/library_step.h"
#include "interp/exact/builder/compiled_computation_builder.h"

namespace hlokit::interp::compiled {

// Prepares a convolution. Returns false, with the reason in `why`, if it is left to the exact engine.
bool PrepareConvolutionStep(CompiledComputationBuilder& builder, PackedWeights* packed, std::string* why);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_CONVOLUTIONS_CONVOLUTION_STEP_H_

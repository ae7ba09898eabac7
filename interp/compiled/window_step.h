// SPDX-License-Identifier: Apache-2.0
// Steps for pooling of f32 (reduce-window with a sum, maximum or minimum) and the gradient of maximum pooling
// (select-and-scatter), in any order of memory. Values are those of the exact engine, bit for bit.
#ifndef HLOKIT_INTERP_COMPILED_WINDOW_STEP_H_
#define HLOKIT_INTERP_COMPILED_WINDOW_STEP_H_

#include <string>

#include "interp/exact/builder/compiled_computation_builder.h"

namespace hlokit::interp::compiled {

// Prepares builder.instruction(). Returns false, with the reason in `why`, if it is left to the exact engine.
bool PreparePool(CompiledComputationBuilder& builder, std::string* why);
bool PrepareSelectAndScatterStep(CompiledComputationBuilder& builder, std::string* why);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_WINDOW_STEP_H_

// SPDX-License-Identifier: Apache-2.0
// Checks torch's requirements on arguments: dimensions in range, tensors of the right rank and type, lists of the right
// length. Lowerings may rely on them.
#ifndef HLOKIT_TRACER_LOWERING_ARGUMENT_CHECKS_H_
#define HLOKIT_TRACER_LOWERING_ARGUMENT_CHECKS_H_

#include "tracer/lowering/lowering_context.h"

namespace hlokit::lazy {

// Returns false after an error, which is in the emitter.
bool CheckArguments(LoweringContext& n);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_LOWERING_ARGUMENT_CHECKS_H_

// SPDX-License-Identifier: Apache-2.0
// What torch demands of arguments before an op computes anything: dimensions in range, tensors of the right rank and
// type, lists of the right length. Lowerings may rely on it.
#ifndef HLOKIT_TRACER_LOWERING_ARGUMENT_CHECKS_H_
#define HLOKIT_TRACER_LOWERING_ARGUMENT_CHECKS_H_

#include "tracer/lowering/lowering_context.h"

namespace hlokit::lazy {

// False after an error, which is in the emitter.
bool CheckArguments(LoweringContext& n);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_LOWERING_ARGUMENT_CHECKS_H_

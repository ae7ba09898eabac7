// SPDX-License-Identifier: Apache-2.0
// Reductions of (value, index) pairs to the greatest or least value and its first index, as JAX writes argmax and
// argmin.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_ARG_REDUCE_H_
#define HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_ARG_REDUCE_H_

#include "absl/types/span.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/program/loop_nest.h"
#include "interp/exact/program/view.h"

namespace hlokit::interp {

// Emits the reduction, if the function of the instruction is such a one and elements along the reduced dimensions are
// near to each other. `views`: two arrays and two initial values; `kept`: operands are the results and both arrays;
// `reduced`: both arrays. Returns false if the reduction is left to others.
bool EmitArgReduce(CompiledComputationBuilder& builder, absl::Span<const View> views, const LoopNest& kept,
                   const LoopNest& reduced);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_ARG_REDUCE_H_

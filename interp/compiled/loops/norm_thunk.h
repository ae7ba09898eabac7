// SPDX-License-Identifier: Apache-2.0
// Batch normalizations: a thunk computes sums over the elements of each feature, in double, and from them the
// coefficients of the elements. The elements are part of a loop, with what comes after them.
//
//   training, inference   result = a * x + b
//   gradient              result = a * g + b * x + c
#ifndef HLOKIT_INTERP_COMPILED_LOOPS_NORM_THUNK_H_
#define HLOKIT_INTERP_COMPILED_LOOPS_NORM_THUNK_H_

#include <vector>

#include "absl/status/statusor.h"
#include "interp/compiled/code/code_cache.h"
#include "interp/compiled/loops/loop_builder.h"
#include "interp/exact/builder/compiled_computation_builder.h"

namespace hlokit::interp::compiled {

struct NormThunk {
  std::vector<View> coefficients;  // of each feature, f64: a, b and, of a gradient, c
  std::vector<View> results;       // the second and third one of training and gradient
  LoopProgram program;             // of the sums; without nodes for inference
};

// Emits the thunk of a batch normalization for which IsLoopNorm holds. Returns an error if its code cannot be
// had.
absl::StatusOr<NormThunk> PrepareNorm(CompiledComputationBuilder& builder, Instruction norm, ProgramCode* code);

// Adds the elements of the result. `coefficients`: nodes with their values.
void AddNormElements(LoopBuilder& loop, Instruction norm, const std::vector<uint16_t>& coefficients);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LOOPS_NORM_THUNK_H_

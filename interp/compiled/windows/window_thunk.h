// SPDX-License-Identifier: Apache-2.0
// Steps of reduce-window and select-and-scatter with the functions of pooling and its gradients. Sums may have a factor
// on either side, and a pad of zeros before, as in average pooling and its gradient:
//
//   scale(reduce-window(pad(scale(x), 0), 0)), scale(x) = x * s or x / s with a scalar s
#ifndef HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_THUNK_H_
#define HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_THUNK_H_

#include <functional>
#include <vector>

#include "interp/compiled/programs/prepare_result.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernel_provider.h"

namespace hlokit::interp::compiled {

// Prepares the instruction of the builder. `min_elements`: GroupOptions::min_window_elements.
PrepareResult PreparePool(CompiledComputationBuilder& builder, int64_t min_elements);
PrepareResult PrepareSelectAndScatterThunk(CompiledComputationBuilder& builder, int64_t min_elements);

// Adds groups of a reduce-window with what surrounds it, in place of groups of these instructions alone.
void AddPoolGroups(Computation computation, const std::function<bool(Instruction)>& may_join,
                   std::vector<InstructionGroup>* groups);
bool IsPoolGroup(const InstructionGroup& group);
// Prepares such a group.
PrepareResult PreparePoolGroup(CompiledComputationBuilder& builder, const InstructionGroup& group,
                               int64_t min_elements);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_THUNK_H_

// SPDX-License-Identifier: Apache-2.0
// Steps of reduce-window and select-and-scatter with the functions of pooling and its gradients. Sums may have a factor
// on either side, and a pad of zeros before, as in average pooling and its gradient:
//
//   scale(reduce-window(pad(scale(x), 0), 0)), scale(x) = x * s or x / s with a scalar s
#ifndef HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_STEP_H_
#define HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_STEP_H_

#include <functional>
#include <string>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernel_provider.h"

namespace hlokit::interp::compiled {

// Prepares the instruction of the builder. Returns false, with the reason in `why`, if it is left to the exact engine.
// `min_elements`: GroupOptions::min_window_elements.
bool PreparePool(CompiledComputationBuilder& builder, int64_t min_elements, std::string* why);
bool PrepareSelectAndScatterStep(CompiledComputationBuilder& builder, int64_t min_elements, std::string* why);

// Adds groups of a reduce-window with what surrounds it, in place of groups of these instructions alone.
void AddPoolGroups(Computation computation, const std::function<bool(Instruction)>& may_join,
                   std::vector<InstructionGroup>* groups);
bool IsPoolGroup(const InstructionGroup& group);
// Prepares such a group.
bool PreparePoolGroup(CompiledComputationBuilder& builder, const InstructionGroup& group, int64_t min_elements,
                      std::string* why);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_STEP_H_

// SPDX-License-Identifier: Apache-2.0
// Implementations of custom calls.
//
// Built in: TopK, decompositions of matrices (matrix_calls.h), and markers that return their operand unchanged
// (Sharding, SPMDFullToShardShape, SPMDShardToFullShape, MoveToHost, MoveToDevice, annotate_device_placement,
// xla.sdy.*, ...).
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_CUSTOM_CALLS_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_CUSTOM_CALLS_H_

#include <string>
#include <string_view>

#include "interp/interface/custom_call_registry.h"

namespace hlokit::interp {

// Returns true for built-in calls that return their operand.
bool IsMarkerTarget(std::string_view target);
// Returns true for built-in calls that do nothing: they stand for communication that control-flow-flattening removed.
bool IsNopTarget(std::string_view target);

// Returns the error of a call without a function, which lists the known targets. `registry` may be null.
std::string UnknownTargetMessage(std::string_view target, const CustomCallRegistry* registry);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_CUSTOM_CALLS_H_

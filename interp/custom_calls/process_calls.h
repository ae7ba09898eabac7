// SPDX-License-Identifier: Apache-2.0
// Functions of custom calls for all programs of the process, and stubs of calls without a function.
//
// A stub stands for a function that is not there, so that a program runs, and two versions of it can be compared: its
// results are a fixed function of the target and the operands, which changes little with them. Floats are between -2
// and 2, integers from 0 to 15.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_PROCESS_CALLS_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_PROCESS_CALLS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "interp/interface/custom_call_registry.h"
#include "ir/graph/module_fwd.h"

namespace hlokit::interp {

// Registers a function for all programs that are compiled from now on; replaces an earlier or built-in one. An empty
// function removes it.
void RegisterProcessCall(std::string target, CustomCallFunction function);
// Stubs calls without a function of which this returns true; an empty function stubs none.
void StubProcessCalls(std::function<bool(std::string_view target)> matches);
// Returns the targets that have been stubbed, sorted.
std::vector<std::string> StubbedTargets();

// Returns the function of a call: one that is registered for the process, a built-in one, or a stub; null if there is
// none. Of functions that engines know themselves (matrix_calls.h, markers, TopK) only registered ones.
CustomCallFunction FunctionFor(Instruction call);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_PROCESS_CALLS_H_

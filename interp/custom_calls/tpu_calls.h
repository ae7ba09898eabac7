// SPDX-License-Identifier: Apache-2.0
// Custom calls that TPU compilers add to programs:
//
//   a = ConcatBitcast(s0, s1, ...)    an array of its slices, which were copied one by one to places side by side
//   low = X64SplitLow(x)              the low 32 bits of integers; of an f64 what X64SplitHigh leaves, rounded to f32
//   high = X64SplitHigh(x)            the high 32 bits of integers; f64 rounded to f32
//   x = X64Combine(low, high)         the numbers of both parts; of floats the sum
//
// The last three are how 64-bit numbers are represented on a processor of 32 bits. Parts of c128 are of type c64. That
// an f64 is a sum is what the types say: the value of X64Combine of both parts of x is x, rounded to 48 bits.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_TPU_CALLS_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_TPU_CALLS_H_

#include <string_view>
#include <vector>

#include "interp/interface/custom_call_registry.h"
#include "ir/graph/module_fwd.h"

namespace hlokit::interp {

// Returns the targets of these calls.
std::vector<std::string_view> TpuCallTargets();

// Returns the function of such a call, or null. It depends on the call: the slices of a ConcatBitcast are operands in
// the order in which their copies began, and their places are those of the slices.
CustomCallFunction TpuCallFor(Instruction call);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_TPU_CALLS_H_

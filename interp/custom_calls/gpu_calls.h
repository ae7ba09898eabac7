// SPDX-License-Identifier: Apache-2.0
// Custom calls that XLA's GPU compiler makes of products, convolutions and attention, and those of JAX on GPUs:
//
//   __cublas$gemm, __cublas$lt$matmul, __cublas$lt$matmul$f8   alpha a b + beta c, a bias and an activation (epilogue)
//   __cudnn$convForward, $convBackwardInput, $convBackwardFilter, $convBiasActivationForward
//   __cudnn$fmhaSoftmax, __cudnn$fmhaScaleBiasSoftmax          attention, also with a causal mask
//   cu_threefry2x32, cu_threefry2x32_ffi                       random bits
//   PartialReduce, ApproxTopK                                  the first elements in order
//
// They follow from the backend_config and the attributes of the call. Sums are in double, rounded at the end; what is
// the workspace of a library is zero. A mode without a function is an error that names it.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_GPU_CALLS_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_GPU_CALLS_H_

#include <string_view>

#include "absl/types/span.h"
#include "interp/interface/custom_call_registry.h"
#include "ir/graph/module_fwd.h"

namespace hlokit::interp {

// Returns the targets of these calls.
absl::Span<const std::string_view> GpuCallTargets();

// Returns the function of such a call, or null.
CustomCallFunction GpuCallFor(Instruction call);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_GPU_CALLS_H_

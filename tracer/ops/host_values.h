// SPDX-License-Identifier: Apache-2.0
// Ops that run on the host: their arguments as literals, results as tensors.
#ifndef HLOKIT_TRACER_OPS_HOST_VALUES_H_
#define HLOKIT_TRACER_OPS_HOST_VALUES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "ir/types/literal.h"
#include "tracer/dispatch/op_kernel_context.h"

namespace hlokit::lazy {

// Returns the value on the host. Nullopt after an error, which is in the context.
std::optional<Literal> FetchOnHost(OpKernelContext& c, const Tensor& t);
// Counts a call that ran on the host.
void CountFallback(OpKernelContext& c);
Tensor Upload(OpKernelContext& c, Literal value);
Tensor UploadS64(OpKernelContext& c, Dims dims, absl::Span<const int64_t> values);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_OPS_HOST_VALUES_H_

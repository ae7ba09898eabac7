// SPDX-License-Identifier: Apache-2.0
// The custom-call LuDecomposition (matrix_calls.h).
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_LU_DECOMPOSITION_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_LU_DECOMPOSITION_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "interp/custom_calls/matrix_calls.h"
#include "interp/interface/custom_call_registry.h"

namespace hlokit::interp {

// A MatrixCall: batches of real or complex matrices of any height and width.
absl::Status LuDecomposition(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                             std::string_view config, const MatrixCallRun& run);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_LU_DECOMPOSITION_H_

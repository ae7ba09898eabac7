// SPDX-License-Identifier: Apache-2.0
// The custom-calls by which XLA's front ends ask for matrix decompositions:
//
//   (a', taus) = Qr(a)                                       Householder reflections as in LAPACK's geqrf
//   q = ProductOfElementaryHouseholderReflectors(a', taus)   as in LAPACK's orgqr
//   (v, w) = Eigh(a), backend_config="LOWER,SORT,SWEEPS,TOLERANCE"   symmetric eigendecomposition
//   (lu, pivots, permutation) = LuDecomposition(a)           row exchanges as in LAPACK's getrf, numbered from 0
//
// of batches of real matrices, all but Eigh of complex ones too, in double, rounded at the end. qr-expander and
// eigh-expander define the other operations.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_MATRIX_CALLS_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_MATRIX_CALLS_H_

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "interp/interface/custom_call_registry.h"

namespace hlokit::interp {

// What a call needs from the run.
struct MatrixCallRun {
  std::function<bool()> should_stop;
  // Returns memory for `count` doubles of any value until the call returns, or null after an error of the run, which
  // should_stop then reports. A call allocates once.
  std::function<double*(int64_t count)> allocate;
};

// Stops with results of any value when the run does. Returns an error if shapes or `config` are incompatible with it.
using MatrixCall = absl::Status (*)(absl::Span<const CustomCallOperand> operands,
                                    absl::Span<const CustomCallResult> results, std::string_view config,
                                    const MatrixCallRun& run);

// Returns null if the target is none of them.
MatrixCall FindMatrixCall(std::string_view target);
absl::Span<const std::string_view> MatrixCallTargets();

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_MATRIX_CALLS_H_

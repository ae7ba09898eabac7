// SPDX-License-Identifier: Apache-2.0
// Custom calls of jaxlib's CPU programs, lapack_?NAME_ffi with s, d, c or z for the type:
//
//   potrf trsm                        Cholesky decomposition, triangular systems
//   getrf geqrf geqp3 orgqr ungqr     LU and QR decompositions, also with column pivoting
//   ormqr unmqr                       products with the reflections of a QR decomposition
//   syevd heevd gesdd gesvd           eigenvalues of Hermitian matrices, singular values
//   geev gees gehrd                   eigenvalues, Schur and Hessenberg forms of any square matrix
//   sytrd hetrd gtsv                  tridiagonal forms of the lower triangle, tridiagonal systems
//
// of batches of matrices, in double, rounded at the end. Eigenvectors and singular vectors are those of LAPACK up to a
// factor of magnitude 1, and any basis where values are equal.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_LAPACK_CALLS_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_LAPACK_CALLS_H_

#include <string_view>

#include "interp/interface/custom_call_registry.h"

namespace hlokit::interp {

// Returns the function of a target, or null.
CustomCallFunction LapackCallFor(std::string_view target);

// "lapack_*_ffi", of the list of known targets.
inline constexpr std::string_view kLapackTargets = "lapack_*_ffi";

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_LAPACK_CALLS_H_

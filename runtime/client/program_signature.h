// SPDX-License-Identifier: Apache-2.0
// Whether a program takes and returns the arrays that its caller has and expects: of programs that were stored.
#ifndef HLOKIT_RUNTIME_CLIENT_PROGRAM_SIGNATURE_H_
#define HLOKIT_RUNTIME_CLIENT_PROGRAM_SIGNATURE_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/types/shape.h"

namespace hlokit::runtime {

// Checks the types and dimensions of the parameters, which may be the elements of one tuple, and of the elements of the
// root tuple. Layouts are the engine's.
absl::Status CheckSignature(const Module& module, absl::Span<const Shape> parameters, absl::Span<const Shape> results);

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_CLIENT_PROGRAM_SIGNATURE_H_

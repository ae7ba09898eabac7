// SPDX-License-Identifier: Apache-2.0
// Errors of passes about an instruction, with its place in the text that the module was read from.
#ifndef HLOKIT_PASSES_CORE_PASS_ERROR_H_
#define HLOKIT_PASSES_CORE_PASS_ERROR_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit {

// Returns an invalid argument error "NAME: message". Of an instruction that an earlier pass made, the place is that of
// an operand.
absl::Status ErrorAt(Instruction instruction, std::string_view message);

// The place of such an error; nullopt if it is not known.
std::optional<SourceRange> PlaceOf(const absl::Status& status);

// The status with another message, and its place.
absl::Status WithMessage(const absl::Status& status, std::string_view message);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_CORE_PASS_ERROR_H_

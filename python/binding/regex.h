// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PYTHON_BINDING_REGEX_H_
#define HLOKIT_PYTHON_BINDING_REGEX_H_

#include <functional>
#include <string_view>

#include "absl/status/statusor.h"

namespace hlokit::python {

using TextPredicate = std::function<bool(std::string_view)>;

// Compiles a regular expression, which is looked for anywhere in a text.
absl::StatusOr<TextPredicate> CompileRegex(std::string_view expression);

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_REGEX_H_

// SPDX-License-Identifier: Apache-2.0
// Regular expressions of queries.
#ifndef HLOKIT_TOOLS_CLI_TEXT_REGEX_H_
#define HLOKIT_TOOLS_CLI_TEXT_REGEX_H_

#include <functional>
#include <string_view>

#include "absl/status/statusor.h"

namespace hlokit::cli {

// Compiles an expression of RE2. The result returns true if it is found anywhere in a text, and is thread-safe.
absl::StatusOr<std::function<bool(std::string_view)>> CompileRegex(std::string_view expression);
// As above, of texts that match as a whole. The error begins with the expression in backquotes.
absl::StatusOr<std::function<bool(std::string_view)>> CompileWholeRegex(std::string_view expression);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_TEXT_REGEX_H_

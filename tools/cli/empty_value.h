// SPDX-License-Identifier: Apache-2.0
// Empty values of flags, as `--expect="$FILE"` has them where the variable is not set: they are errors, since the flag
// would do nothing, unless it has a meaning for them.
#ifndef HLOKIT_TOOLS_CLI_EMPTY_VALUE_H_
#define HLOKIT_TOOLS_CLI_EMPTY_VALUE_H_

#include <CLI/CLI.hpp>
#include <string>

namespace hlokit::cli {

// Returns the usage error of an argument with an empty value, of `app` or of the command that was named; "" if there is
// none. Requires parsed arguments.
std::string FindEmptyValue(const CLI::App& app);

// Returns the usage error of an option with an empty value.
std::string EmptyValueError(const CLI::Option& option);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_EMPTY_VALUE_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_TOOLS_CLI_FLAGS_GIVEN_FLAG_H_
#define HLOKIT_TOOLS_CLI_FLAGS_GIVEN_FLAG_H_

#include <CLI/CLI.hpp>

namespace hlokit::cli {

// Returns true if a flag is given, and not as its absence, as by --isolate=false and --passes=''.
bool IsGiven(const CLI::Option& flag);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FLAGS_GIVEN_FLAG_H_

// SPDX-License-Identifier: Apache-2.0
// The flag --stub-custom-calls of tools that compute values.
#ifndef HLOKIT_TOOLS_CLI_FLAGS_CUSTOM_CALL_FLAG_H_
#define HLOKIT_TOOLS_CLI_FLAGS_CUSTOM_CALL_FLAG_H_

#include <CLI/CLI.hpp>

namespace hlokit::cli {

// Adds --stub-custom-calls[=REGEX], which has its effect when it is read. Main says at the end which targets have been
// stubbed.
CLI::Option* AddStubCustomCalls(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FLAGS_CUSTOM_CALL_FLAG_H_

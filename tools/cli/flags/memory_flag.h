// SPDX-License-Identifier: Apache-2.0
// The flag --max-bytes of tools that run programs.
#ifndef HLOKIT_TOOLS_CLI_FLAGS_MEMORY_FLAG_H_
#define HLOKIT_TOOLS_CLI_FLAGS_MEMORY_FLAG_H_

#include <CLI/CLI.hpp>

#include "interp/interface/limits.h"

namespace hlokit::cli {

// Adds --max-bytes, and sets its default: the memory of the machine or of this process's control group.
CLI::Option* AddMaxBytes(CLI::App* app, interp::Limits* limits);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FLAGS_MEMORY_FLAG_H_

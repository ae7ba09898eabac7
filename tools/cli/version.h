// SPDX-License-Identifier: Apache-2.0
// Which version of hlokit a tool is of.
#ifndef HLOKIT_TOOLS_CLI_VERSION_H_
#define HLOKIT_TOOLS_CLI_VERSION_H_

namespace hlokit::cli {

// Made by cmake/HlokitVersion.cmake.
extern const char* const kVersion;  // "0.1.0"
extern const char* const kCommit;   // "61f29ed70ab1", "61f29ed70ab1, modified"; "" where it is not known

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_VERSION_H_

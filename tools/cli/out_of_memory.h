// SPDX-License-Identifier: Apache-2.0
// The end of a tool that gets no memory.
#ifndef HLOKIT_TOOLS_CLI_OUT_OF_MEMORY_H_
#define HLOKIT_TOOLS_CLI_OUT_OF_MEMORY_H_

#include <string_view>

namespace hlokit::cli {

// From here on the process ends with the message `TOOL: internal error: out of memory` and the exit code
//   - where a request fails and not even a mebibyte is left, in whichever thread: what would handle the exception needs
//     memory itself, and threads that wait for the one that it ends would wait for ever;
//   - where std::bad_alloc is caught by nobody, as in a destructor.
// A large request that fails throws std::bad_alloc, as always.
void InstallOutOfMemoryHandlers(std::string_view tool, int exit_code);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_OUT_OF_MEMORY_H_

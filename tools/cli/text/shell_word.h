// SPDX-License-Identifier: Apache-2.0
// Words of shell commands.
#ifndef HLOKIT_TOOLS_CLI_TEXT_SHELL_WORD_H_
#define HLOKIT_TOOLS_CLI_TEXT_SHELL_WORD_H_

#include <string>
#include <string_view>

namespace hlokit::cli {

// Returns the text as one word of the shell: in single quotes unless all of its characters are plain.
std::string ShellWord(std::string_view text);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_TEXT_SHELL_WORD_H_

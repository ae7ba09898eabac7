// SPDX-License-Identifier: Apache-2.0
// A note that a tool prints on standard error at its end.
#ifndef HLOKIT_TOOLS_CLI_FINAL_NOTE_H_
#define HLOKIT_TOOLS_CLI_FINAL_NOTE_H_

#include <string>

namespace hlokit::cli {

// Has Main call the function at the end of the tool, and print the text unless it is empty.
void SetFinalNote(std::string (*note)());

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FINAL_NOTE_H_

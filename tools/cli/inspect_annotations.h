// SPDX-License-Identifier: Apache-2.0
// hlo-inspect annotations.
#ifndef HLOKIT_TOOLS_CLI_INSPECT_ANNOTATIONS_H_
#define HLOKIT_TOOLS_CLI_INSPECT_ANNOTATIONS_H_

#include "tools/cli/inspect_command.h"

namespace hlokit::cli {

InspectCommand AddAnnotationsCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_INSPECT_ANNOTATIONS_H_

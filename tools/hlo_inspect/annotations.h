// SPDX-License-Identifier: Apache-2.0
// hlo-inspect annotations.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_ANNOTATIONS_H_
#define HLOKIT_TOOLS_HLO_INSPECT_ANNOTATIONS_H_

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

InspectCommand AddAnnotationsCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_ANNOTATIONS_H_

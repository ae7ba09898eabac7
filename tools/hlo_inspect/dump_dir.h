// SPDX-License-Identifier: Apache-2.0
// hlo-inspect dump-dir: a folder of XLA's dumps (--xla_dump_to) as a whole.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_DUMP_DIR_H_
#define HLOKIT_TOOLS_HLO_INSPECT_DUMP_DIR_H_

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

InspectCommand AddDumpDirCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_DUMP_DIR_H_

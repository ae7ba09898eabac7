// SPDX-License-Identifier: Apache-2.0
// Why a dump has several modules of one name: where each differs first from the one before.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_RECOMPILATIONS_H_
#define HLOKIT_TOOLS_HLO_INSPECT_RECOMPILATIONS_H_

#include <vector>

#include "ir/core/text_writer.h"
#include "tools/hlo_inspect/dump_contents.h"

namespace hlokit::cli {

// Prints, for each name of several modules whose first stages are read, how often it was compiled, and the first
// difference of each from the one before. Two modules are in memory at a time.
void WriteRecompilations(const std::vector<DumpedModule>& modules, const InputOptions& input, TextWriter* out);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_RECOMPILATIONS_H_

// SPDX-License-Identifier: Apache-2.0
// hlo-inspect dump-dir: a folder of XLA's dumps (--xla_dump_to) as a whole.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_DUMP_DIR_H_
#define HLOKIT_TOOLS_HLO_INSPECT_DUMP_DIR_H_

#include <string>
#include <string_view>
#include <vector>

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

// The name of a file of a dump: [PREFIX.]module_NNNN.MODULE.REST.
struct DumpFile {
  enum class Kind {
    kBeforeOptimizations,
    kPass,  // REST is NNNN.PIPELINE.after_PASS.before_NEXT.txt
    kAfterOptimizations,
    kProto,     // an HloProto or another message with a module
    kSnapshot,  // with values
    kBufferAssignment,
    kThunkSequence,
    kPassTimes,  // HloModuleMetadataProto
    kOther
  };

  std::string path;
  std::string module;  // [PREFIX.]module_NNNN
  std::string rest;    // after the module's number, with the module's name
  Kind kind = Kind::kOther;
  int64_t pass_number = -1;
  std::string pipeline, pass;  // kPass
};

// Returns false for a file that is not named so.
bool ParseDumpName(std::string_view file_name, DumpFile* file);

InspectCommand AddDumpDirCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_DUMP_DIR_H_

// SPDX-License-Identifier: Apache-2.0
// What the files of a dump say of each of its modules.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_DUMP_CONTENTS_H_
#define HLOKIT_TOOLS_HLO_INSPECT_DUMP_CONTENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parser/proto/hlo.pb.h"
#include "tools/cli/cli.h"
#include "tools/cli/dump_files.h"
#include "tools/hlo_inspect/assignment.h"
#include "tools/hlo_inspect/dump_stages.h"

namespace hlokit::cli {

struct DumpedModule {
  std::vector<const DumpFile*> files;  // at least one
  std::string name;
  std::vector<DumpStage> stages;
  std::vector<std::pair<std::string, int64_t>> thunks;  // by kind, the most frequent first
  std::optional<AssignmentSummary> assignment;
  std::vector<std::pair<const DumpFile*, std::string>> snapshots;  // with what they hold
  std::optional<xla::HloModuleMetadataProto> passes;

  std::string_view id() const { return files.front()->module; }
};

// Groups the files by module, in their order. `files` must outlive the result.
std::vector<DumpedModule> GroupFiles(const std::vector<DumpFile>& files);

// Returns the words that all files of a module have in common after its number; of one file the first.
std::string CommonName(const std::vector<const DumpFile*>& files);

// Reads the files of a module, with only_diffs its stages alone. Errors of files are printed.
void ReadDumpFiles(const StageOptions& options, DumpedModule* module, DiagnosticReporter* diagnostics);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_DUMP_CONTENTS_H_

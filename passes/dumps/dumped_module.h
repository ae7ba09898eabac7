// SPDX-License-Identifier: Apache-2.0
// What the files of a dump say of each of its modules.
#ifndef HLOKIT_PASSES_DUMPS_DUMPED_MODULE_H_
#define HLOKIT_PASSES_DUMPS_DUMPED_MODULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/dumps/dump_files.h"
#include "parser/proto/hlo.pb.h"
#include "passes/dumps/buffer_assignment.h"
#include "passes/dumps/dump_reader.h"
#include "passes/dumps/dump_stages.h"

namespace hlokit::dump {

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

// Reads the files of a module, with only_diffs its stages alone. Errors of files go to the reader.
void ReadDumpFiles(const StageOptions& options, DumpedModule* module, DumpReader* reader);

}  // namespace hlokit::dump

#endif  // HLOKIT_PASSES_DUMPS_DUMPED_MODULE_H_

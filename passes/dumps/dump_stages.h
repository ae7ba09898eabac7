// SPDX-License-Identifier: Apache-2.0
// The modules of a dump in the order of the compilation, and what each pass changed.
#ifndef HLOKIT_PASSES_DUMPS_DUMP_STAGES_H_
#define HLOKIT_PASSES_DUMPS_DUMP_STAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/dumps/dump_files.h"
#include "parser/text/parse_options.h"
#include "passes/diff/diff_text.h"
#include "passes/diff/module_diff.h"
#include "passes/dumps/dump_reader.h"

namespace hlokit::dump {

using OpcodeCounts = std::map<std::string, int64_t, std::less<>>;

// The difference from the stage before, names of instructions left out, as hlo-diff counts it.
struct StageChange {
  size_t from = 0;  // index of the stage before
  // False if passes ran between the two, or may have run, of which there are no files or none that can be read.
  bool of_one_pass = true;
  int64_t added = 0, removed = 0, changed = 0;
  std::array<int64_t, kAspects> count_by_aspect = {};
  std::vector<std::string> header;
  std::vector<DiffSummary::Row> by_opcode;
  std::string diff_text;  // if it was selected

  bool same() const { return added + removed + changed == 0 && header.empty(); }
};

// A module at one place of the compilation.
struct DumpStage {
  const DumpFile* file = nullptr;  // that was read, of several forms
  std::string name;                // "12 simplification/dce", "after optimizations"
  std::string module_name;
  int64_t instructions = 0;
  OpcodeCounts opcodes;
  std::optional<StageChange> change;  // nullopt: the first one
  int64_t microseconds = -1;          // of the pass, if that is recorded
};

struct StageOptions {
  ParseOptions parse;
  uint64_t max_bytes = uint64_t{1} << 32;           // of a file
  std::function<bool(const DumpFile&)> shows_diff;  // whether to fill diff_text
  bool only_diffs = false;                          // reads only these stages and those before them
  DiffTextOptions text;                             // without labels
};

// Returns the name of a stage for people.
std::string StageName(const DumpFile& file);

// Returns the names by which users call a stage, the preferred one first: of a pass its own, PIPELINE/PASS, its number;
// "after_optimizations". None of other files.
std::vector<std::string> StageNames(const DumpFile& file);

// Returns the files of each stage of one module, in the order of the compilation: a stage may be there in several
// forms, of which the texts come first.
std::vector<std::vector<const DumpFile*>> StageFiles(const std::vector<const DumpFile*>& files);

// Reads the stages among the files of one module; of a stage in several forms, the first that can be read. Two modules
// are in memory at a time, with what they share. Errors of files go to the reader.
std::vector<DumpStage> ReadStages(const std::vector<const DumpFile*>& files, const StageOptions& options,
                                  DumpReader* reader);

}  // namespace hlokit::dump

#endif  // HLOKIT_PASSES_DUMPS_DUMP_STAGES_H_

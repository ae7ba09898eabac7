// SPDX-License-Identifier: Apache-2.0
// Questions to the stages of a folder of dumps that need only a part of what hlo-inspect dump-dir reads of them.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_DUMP_SEARCH_H_
#define HLOKIT_TOOLS_HLO_INSPECT_DUMP_SEARCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "check/equivalence/equivalence_check.h"
#include "io/dumps/dump_files.h"
#include "ir/core/text_writer.h"
#include "passes/dumps/dump_reader.h"
#include "passes/dumps/dumped_module.h"

namespace hlokit::cli {

// A stage without what its files hold.
struct ListedStage {
  const DumpFile* file = nullptr;  // its first form
  uint64_t bytes = 0;              // of all forms
  int64_t since_us = -1;           // from when the stage before was written; -1: the first
};
struct ListedModule {
  const dump::DumpedModule* module = nullptr;
  std::string name;
  std::vector<ListedStage> stages;
};
// No file is opened.
std::vector<ListedModule> ListStages(const std::vector<dump::DumpedModule>& modules);

// Where lines of the text of a module match an expression.
struct DumpMatch {
  const dump::DumpedModule* module = nullptr;
  const DumpFile* first = nullptr;  // the stage
  const DumpFile* last = nullptr;
  bool in_last_stage = false;  // whether it is there to the end
  std::string line;            // of the first stage
  int64_t line_number = 0;     // of the file; 0: the file is no text
};
// Returns the modules that have matches, in order. Texts are not parsed.
std::vector<DumpMatch> FindFirst(const std::vector<dump::DumpedModule>& modules,
                                 const std::function<bool(std::string_view)>& matches, dump::DumpReader* reader);

// What running the stages of one module gives.
struct StageValues {
  enum class Outcome : uint8_t {
    kFirst,      // nothing to compare with
    kSame,       // the same program as the stage before
    kEqual,      // within the tolerance
    kDiffers,    // not
    kOtherForm,  // other parameters or results than the stage before; those that follow are compared with it
    kNotRun
  };
  const DumpFile* file = nullptr;
  Outcome outcome = Outcome::kFirst;
  std::string message;  // the difference, or why it was not run
};
// Runs each stage on the same arguments, and compares its results with those of the last stage that ran.
std::vector<StageValues> CompareStages(const dump::DumpedModule& module, const interp::EquivalenceOptions& options,
                                       const interp::Tolerance& tolerance, dump::DumpReader* reader);

void WriteListing(const std::vector<ListedModule>& modules, bool json, TextWriter* out);
void WriteMatches(const std::vector<DumpMatch>& matches, size_t modules, bool json, TextWriter* out);
struct ModuleValues {
  const dump::DumpedModule* module = nullptr;
  std::vector<StageValues> stages;
};
void WriteValues(const std::vector<ModuleValues>& modules, bool json, TextWriter* out);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_DUMP_SEARCH_H_

// SPDX-License-Identifier: Apache-2.0
// Modules of a dump that were compiled several times, and what differs from one time to the next.
#ifndef HLOKIT_PASSES_DUMPS_RECOMPILATIONS_H_
#define HLOKIT_PASSES_DUMPS_RECOMPILATIONS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "passes/dumps/dump_stages.h"
#include "passes/dumps/dumped_module.h"

namespace hlokit::dump {

struct Recompilations {
  std::string name;  // of the module
  size_t count = 0;
  struct Comparison {
    std::string before, after;  // their ids
    std::string difference;     // the first one; empty: the programs are the same
  };
  std::vector<Comparison> compared;  // as far as files can be read
  size_t left_out = 0;               // at the end, of many
};

// Compares the first stages of modules of one name. ReadDumpFiles has read these modules, and reported errors.
std::vector<Recompilations> FindRecompilations(const std::vector<DumpedModule>& modules, const StageOptions& options);

}  // namespace hlokit::dump

#endif  // HLOKIT_PASSES_DUMPS_RECOMPILATIONS_H_

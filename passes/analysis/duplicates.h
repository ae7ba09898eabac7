// SPDX-License-Identifier: Apache-2.0
// Instructions that compute the same from the same operands.
#ifndef HLOKIT_PASSES_ANALYSIS_DUPLICATES_H_
#define HLOKIT_PASSES_ANALYSIS_DUPLICATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

struct Duplicate {
  Instruction instruction;
  std::vector<std::string> apart;  // what keeps it from being merged with the first; empty: nothing
};

// The first is the one that common-subexpression elimination keeps.
struct DuplicateGroup {
  Instruction first;
  std::vector<Duplicate> others;
  int64_t bytes = 0;  // of the results of the others
};

// Returns the groups, those with most bytes first. Instructions whose operands are duplicates themselves are none.
std::vector<DuplicateGroup> FindDuplicates(const Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_DUPLICATES_H_

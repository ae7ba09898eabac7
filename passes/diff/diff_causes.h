// SPDX-License-Identifier: Apache-2.0
// Why two modules differ: the differences of all pairs by what changed and how, so that one change of the program that
// shows in many instructions is one line.
#ifndef HLOKIT_PASSES_DIFF_DIFF_CAUSES_H_
#define HLOKIT_PASSES_DIFF_DIFF_CAUSES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "passes/diff/module_diff.h"

namespace hlokit {

struct DiffCause {
  std::string what;                   // "replica_groups", "element type", "sizes", "source_line"
  std::string change;                 // "[2,64]<=[128] -> [2,128]<=[256]", "x 1/2 (128 -> 64, 64 -> 32)", "model.py +3"
  int64_t pairs = 0;                  // of counterparts that differ so
  std::vector<Instruction> examples;  // of b, the first few
};

// Returns the causes of the changed pairs: first those of opcodes, attributes, values and types, then those of sizes
// and layouts, then other operands and other computations, then shardings, metadata and names, which have no effect on
// values; within these the most frequent first. A pair may have several.
std::vector<DiffCause> CausesOf(const ModuleDiff& diff);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_DIFF_DIFF_CAUSES_H_

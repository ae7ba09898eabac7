// SPDX-License-Identifier: Apache-2.0
// Tables of the memory analysis: what is live at the peak, by instruction, opcode, computation, source line or scope.
#ifndef HLOKIT_PASSES_ANALYSIS_MEMORY_TABLE_H_
#define HLOKIT_PASSES_ANALYSIS_MEMORY_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/memory.h"

namespace hlokit {

// Live bytes at the peak for one key (KeyOf) of the instructions that produce them.
struct MemoryRow {
  std::string key;
  int64_t bytes = 0;
  int64_t buffers = 0;
};
// Returns the rows, largest first, then by key.
std::vector<MemoryRow> LiveAtPeakBy(const Module& module, const MemoryAnalysis& memory, CostKey by);

// Returns the first instruction at which the most bytes are live; invalid if there is none.
Instruction PeakInstruction(const Module& module, const MemoryUse& use);

// Returns "argument", "constant", "temporary" or "result".
std::string_view ToString(BufferKind kind);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_MEMORY_TABLE_H_

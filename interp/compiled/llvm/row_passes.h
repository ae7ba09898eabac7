// SPDX-License-Identifier: Apache-2.0
// Divides the nodes of a loop program with reductions along the row into passes over the row.
#ifndef HLOKIT_INTERP_COMPILED_LLVM_ROW_PASSES_H_
#define HLOKIT_INTERP_COMPILED_LLVM_ROW_PASSES_H_

#include <cstdint>
#include <vector>

#include "interp/compiled/programs/loop_program.h"

namespace hlokit::interp::compiled {

// Each pass computes some nodes for all elements, and then the values of the row that need them.
struct RowPasses {
  struct Pass {
    std::vector<uint16_t> elements;    // nodes computed for each element, in order
    std::vector<uint16_t> stores;      // outputs (by index) stored in this pass
    std::vector<uint16_t> saves;       // nodes saved for later passes
    std::vector<uint16_t> row_values;  // nodes computed once for the row after the pass, reductions included
  };
  std::vector<Pass> passes;
  std::vector<int> saved_index;  // by node: number of its row in the scratch memory, or -1
  int saved_count = 0;
  // Nodes without elements, computed before the first pass.
  std::vector<uint16_t> first_row_values;
};
RowPasses PlanPasses(const LoopProgram& program);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LLVM_ROW_PASSES_H_

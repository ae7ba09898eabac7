// SPDX-License-Identifier: Apache-2.0
// The layouts of a module: how many arrays have each, and what changes them.
#ifndef HLOKIT_PASSES_ANALYSIS_LAYOUT_STATISTICS_H_
#define HLOKIT_PASSES_ANALYSIS_LAYOUT_STATISTICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

struct LayoutCount {
  std::string layout;  // LayoutText
  int64_t arrays = 0;
  int64_t bytes = 0;
};

// Of all arrays with dimensions.
struct LayoutStatistics {
  std::vector<LayoutCount> counts;   // by bytes, the largest first
  std::vector<Instruction> changes;  // copies to another layout, the largest first
  int64_t change_bytes = 0;
};
LayoutStatistics CollectLayouts(const Module& module);

// Returns "{1,0:T(8,128)}", or "" without a layout.
std::string LayoutText(Shape shape);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_LAYOUT_STATISTICS_H_

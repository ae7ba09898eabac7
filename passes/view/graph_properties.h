// SPDX-License-Identifier: Apache-2.0
// What a viewer can highlight of instructions beyond their text: cost, memory, loops.
#ifndef HLOKIT_PASSES_VIEW_GRAPH_PROPERTIES_H_
#define HLOKIT_PASSES_VIEW_GRAPH_PROPERTIES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "passes/analysis/cost.h"

namespace hlokit {

// Bits of GraphProperties::flags.
enum InstructionHighlight : uint8_t {
  kHighlightRoot = 1 << 0,
  kHighlightLiveAtPeak = 1 << 1,  // defines a buffer that is live at the peak of memory (passes/analysis/memory.h)
  kHighlightDonated = 1 << 2,     // a parameter whose memory a result may reuse
  kHighlightDead = 1 << 3,        // without users and side effects, and not a root
  kHighlightRecomputed = 1 << 4,  // named by rematerialization: "dot.3.remat2"
  kHighlightSideEffect = 1 << 5,
};

struct GraphProperties {
  std::vector<uint8_t> flags;                                  // by InstructionId
  std::vector<std::pair<InstructionId, int64_t>> trip_counts;  // of loops, where known
  std::vector<int64_t> live_bytes;                             // by InstructionId: at the peak
  int64_t peak_bytes = 0;                                      // 0: unknown
};

// Requires: a module with an entry computation. Without memory if the analysis gives up on it.
GraphProperties PropertiesOf(const Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_VIEW_GRAPH_PROPERTIES_H_

// SPDX-License-Identifier: Apache-2.0
// Statistics of a module: operations, shapes, element types, bytes, depth. Counts are exact; byte counts are those of
// values without layout padding and saturate.
#ifndef HLOKIT_IR_GRAPH_MODULE_STATISTICS_H_
#define HLOKIT_IR_GRAPH_MODULE_STATISTICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/module_fwd.h"

namespace hlokit {

struct ModuleStatistics {
  // Number of occurrences, and the bytes of the results of those instructions (tuples count with their leaves, so a
  // value and the tuple that holds it both count).
  struct Count {
    std::string name;
    int64_t count = 0;
    int64_t bytes = 0;
  };

  std::string name;
  int64_t computations = 0;
  int64_t instructions = 0;
  int64_t entry_instructions = 0;
  int64_t operands = 0;  // of all instructions
  int64_t attributes = 0;
  int64_t call_sites = 0;  // instructions that call computations

  int64_t parameters = 0;  // of the entry computation
  int64_t parameter_bytes = 0;
  int64_t outputs = 0;  // leaves of the entry root
  int64_t output_bytes = 0;
  int64_t aliased_outputs = 0;  // that share memory with a parameter
  int64_t constants = 0;
  int64_t constant_bytes = 0;
  int64_t elided_constants = 0;
  int64_t elided_constant_bytes = 0;
  int64_t largest_constant_bytes = 0;
  std::string largest_constant;  // its name

  // Instructions on the longest path of operands and control predecessors in one computation.
  int64_t depth = 0;
  std::string deepest_computation;
  int64_t entry_depth = 0;
  int64_t call_depth = 0;  // computations on the longest call path; 1 without calls

  int64_t distinct_shapes = 0;  // ignoring layouts

  // Most frequent first, ties by name.
  std::vector<Count> opcodes;
  std::vector<Count> element_types;  // of result leaves
  std::vector<Count> shapes;         // of results, ignoring layouts
  std::vector<Count> fusion_kinds;
  std::vector<Count> custom_call_targets;
};

// Linear in the module.
ModuleStatistics CollectStatistics(const Module& module);

// Returns human-readable tables with the `top` most frequent rows of each list.
std::string RenderText(const ModuleStatistics& statistics, size_t top = 20);

// Returns human-readable bytes: "1.5 MiB".
std::string HumanBytes(int64_t bytes);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_MODULE_STATISTICS_H_

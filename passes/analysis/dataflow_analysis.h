// SPDX-License-Identifier: Apache-2.0
// Dataflow analysis: the defining instruction of each array that an instruction holds, through tuples and forwarding
// operations.
//
// Within one computation, a value is a leaf (array, token, ...) defined by an instruction. Parameters define all their
// leaves; so do calls, loops and conditionals, since the analysis does not follow callees. Asynchronous instructions
// and copies define theirs.
#ifndef HLOKIT_PASSES_ANALYSIS_DATAFLOW_ANALYSIS_H_
#define HLOKIT_PASSES_ANALYSIS_DATAFLOW_ANALYSIS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/instruction_map.h"
#include "ir/graph/module.h"

namespace hlokit {

struct DataflowValue {
  InstructionId defining_instruction;
  int64_t leaf;  // in the order of Leaves(shape)
  Shape shape;
};

class DataflowAnalysis {
 public:
  // Analyzes the instructions in `order`, all of one computation, operands first. Returns an error if they have too
  // many leaves.
  static absl::StatusOr<DataflowAnalysis> Create(const Module& module, absl::Span<const InstructionId> order);

  const std::vector<DataflowValue>& values() const { return values_; }
  // Returns the values that the leaves of `i` hold, as indices into values().
  absl::Span<const uint32_t> ValuesOf(Instruction i) const;

 private:
  struct Range {
    uint32_t begin = 0;
    uint32_t size = 0;
  };

  std::vector<DataflowValue> values_;
  std::vector<uint32_t> held_;
  InstructionMap<Range> ranges_;
};

// Returns true unless the shape is a tuple with tuples as elements.
bool IsFlat(Shape shape);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_DATAFLOW_ANALYSIS_H_

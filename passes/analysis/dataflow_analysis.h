// SPDX-License-Identifier: Apache-2.0
// Which instruction made each array that an instruction holds: tuples and what only passes values on are looked
// through.
//
// Within one computation, a value is a leaf (an array, token, ...) that an instruction made itself. A parameter makes
// all its leaves; so do calls, loops and conditionals, since what their callees do is their own affair. Asynchronous
// instructions and copies make theirs.
#ifndef HLOKIT_PASSES_ANALYSIS_DATAFLOW_ANALYSIS_H_
#define HLOKIT_PASSES_ANALYSIS_DATAFLOW_ANALYSIS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit {

struct DataflowValue {
  InstructionId defining_instruction;
  int64_t leaf;  // in the order of Leaves(shape)
  Shape shape;
};

class DataflowAnalysis {
 public:
  // Of the instructions in `order`, all of one computation, operands first. An error if their leaves are too many.
  static absl::StatusOr<DataflowAnalysis> Make(const Module& module, absl::Span<const InstructionId> order);

  const std::vector<DataflowValue>& values() const { return values_; }
  // The values that the leaves of `i` hold: indices of values().
  absl::Span<const uint32_t> ValuesOf(Instruction i) const;

 private:
  struct Range {
    uint32_t begin = 0;
    uint32_t size = 0;
  };

  std::vector<DataflowValue> values_;
  std::vector<uint32_t> held_;
  std::vector<Range> ranges_;  // by InstructionId, from lowest_
  uint32_t lowest_ = 0;
};

// True if no element of the tuple is a tuple, and for what is no tuple.
bool IsFlat(Shape shape);
}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_DATAFLOW_ANALYSIS_H_

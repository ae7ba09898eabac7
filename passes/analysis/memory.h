// SPDX-License-Identifier: Apache-2.0
// How much memory a program needs when its instructions run in order: which buffers are alive when, and when they take
// most.
//
// The order is that of the module's schedule, or XLA's post-order where it has none. Every array that an instruction
// makes is a buffer from there to the last instruction that reads it. Arguments are alive all the time, those whose
// memory a result may take over (aliased or donated) until their last use; results until the end. An instruction that
// may write over an operand nobody needs any more does so: elementwise ones, updates in place, loops on their state. A
// called computation adds what it needs beyond its arguments. Fusions need nothing inside; constants are kept apart, as
// part of the program. Bytes are those of BufferBytes, without padding or fragmentation.
#ifndef HLOKIT_PASSES_ANALYSIS_MEMORY_H_
#define HLOKIT_PASSES_ANALYSIS_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/analysis/call_graph.h"

namespace hlokit {

enum class BufferKind : uint8_t { kArgument, kConstant, kTemporary, kResult };

struct LiveBuffer {
  InstructionId defining_instruction;  // the first of those that write it
  int64_t leaf;                        // of the maker's shape
  int64_t bytes;
  BufferKind kind;
  int32_t begin;  // alive from this place of the order
  int32_t end;    // to this one, both included
};

struct MemoryUse {
  std::vector<InstructionId> order;
  std::vector<LiveBuffer> buffers;  // by begin
  std::vector<int64_t> live_bytes;  // at each place of the order, callees included, constants not
  int64_t peak_bytes = 0;
  int32_t peak_position = 0;  // the first
  int64_t argument_bytes = 0;
  int64_t result_bytes = 0;  // without what shares the memory of arguments
  int64_t constant_bytes = 0;
  // Bytes needed beyond the arguments.
  int64_t peak_bytes_beyond_arguments = 0;
};

class MemoryAnalysis {
 public:
  // An error if tuples have too many leaves to look at.
  static absl::StatusOr<MemoryAnalysis> Make(const Module& module);

  // Of computations whose instructions run one by one; empty for others.
  const MemoryUse& Of(Computation computation) const { return uses_[computation.id().value]; }
  const MemoryUse& OfModule() const { return uses_[entry_.value]; }

  // What is alive when the module takes most, constants aside: buffers of the entry computation and of those it is
  // running then, largest first.
  std::vector<LiveBuffer> LiveAtPeak(const Module& module) const;

 private:
  std::vector<MemoryUse> uses_;  // by ComputationId
  ComputationId entry_;
};

// Of one computation in `order`. `callee_bytes`: what the callees of each instruction need beyond their arguments, by
// place.
absl::StatusOr<MemoryUse> MemoryOf(Computation computation, std::vector<InstructionId> order,
                                   absl::Span<const int64_t> callee_bytes);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_MEMORY_H_

// SPDX-License-Identifier: Apache-2.0
// Memory use of a program whose instructions run in order: live ranges of buffers, and the peak.
//
// The order is the module's schedule, or XLA's post-order if there is none. Every array that an instruction defines is
// a buffer, live until its last use. Arguments are live throughout, but only until their last use if a result may reuse
// their memory (aliased or donated); results are live until the end. Elementwise instructions, updates in place and
// loops (for their state) reuse the buffer of an operand at its last use. A callee adds its memory beyond its
// arguments. Fusions need no temporary memory; constants count separately, as part of the program. Bytes are those of
// BufferBytes, without padding or fragmentation.
//
// Passes before layouts, units and tiles are known use these numbers, and analyze a computation again after each
// change. The plan of the simulated TPU (simulator/memory/memory_plan.h) knows the target: it pads arrays, counts the
// units of the kernel plan, takes transposes and reshapes that only rename bytes for aliases, and keeps arrays in
// vector memory out. Its peaks without padding are a few percent lower, and much lower where such transposes of large
// parameters remain.
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
  InstructionId defining_instruction;  // the first instruction that writes the buffer
  int64_t leaf;                        // of the shape of defining_instruction
  int64_t bytes;
  BufferKind kind;
  int32_t begin;  // first position of the live range
  int32_t end;    // last position of the live range
};

struct MemoryUse {
  std::vector<InstructionId> order;
  std::vector<LiveBuffer> buffers;  // by begin
  std::vector<int64_t> live_bytes;  // at each position, with callees, without constants
  int64_t peak_bytes = 0;
  int32_t peak_position = 0;  // first position of the peak
  int64_t argument_bytes = 0;
  int64_t result_bytes = 0;  // without results that share the memory of arguments
  int64_t constant_bytes = 0;
  // Returns the bytes needed beyond the arguments.
  int64_t peak_bytes_beyond_arguments = 0;
};

class MemoryAnalysis {
 public:
  // Returns an error if tuples have too many leaves.
  static absl::StatusOr<MemoryAnalysis> Create(const Module& module);

  // Analyzes a computation that has changed again, and those that call it.
  absl::Status Update(const Module& module, Computation changed);

  // Returns the use of a computation whose instructions run one by one; empty for others.
  const MemoryUse& Of(Computation computation) const { return uses_[computation.id().value]; }
  const MemoryUse& OfModule() const { return uses_[entry_.value]; }

  // Returns the buffers that are live at the peak, without constants: those of the entry and of the computations it is
  // calling then, largest first.
  std::vector<LiveBuffer> LiveAtPeak(const Module& module) const;

 private:
  absl::Status Analyze(Computation computation);

  std::vector<MemoryUse> uses_;  // by ComputationId
  ComputationId entry_;
};

// Returns the memory use of one computation in `order`. `callee_bytes`: by position, the bytes that the callees need
// beyond their arguments.
absl::StatusOr<MemoryUse> MemoryOf(Computation computation, std::vector<InstructionId> order,
                                   absl::Span<const int64_t> callee_bytes);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_MEMORY_H_

// SPDX-License-Identifier: Apache-2.0
// What running a module costs: floating-point operations, transcendental functions, bytes read and written.
//
// The counts are those of XLA's HloCostAnalysis. An elementwise instruction is one operation an element; a dot or
// convolution two for each product; a reduction its function once for each element that goes; a loop one trip; a
// conditional the dearest branch, each count on its own. An instruction reads its operands and writes its result; a
// slice reads what it keeps, an update in place reads and writes the updated part, a tuple writes a table of 8-byte
// pointers, a fusion reads of each parameter what its body looks at and writes its result. What a custom-call does is
// not known: it costs nothing here, and XLA's sums count -1 operation and -1 byte for it.
//
// Bytes are those of elements without padding, whole bytes for types narrower than a byte unless the layout says how
// many bits an element takes. A dynamic dimension counts with its bound, an unbounded one not at all. Sums saturate.
//
// The cost of a convolution whose window and output both exceed 2^20 in one dimension is an estimate.
#ifndef HLOKIT_PASSES_ANALYSIS_COST_H_
#define HLOKIT_PASSES_ANALYSIS_COST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "ir/graph/traversal.h"

namespace hlokit {

struct Cost {
  int64_t flops = 0;
  int64_t transcendentals = 0;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;

  int64_t bytes() const;  // read and written
  void Add(const Cost& other);
  void Add(const Cost& other, int64_t times);
  void TakeMaximum(const Cost& other);
  friend bool operator==(const Cost&, const Cost&) = default;
};

// The same as XLA adds them up: single precision, in the order of its walk. Exact where the sums are below 2^24.
struct CostSums {
  float flops = 0;
  float transcendentals = 0;
  float bytes = 0;
};

// Bytes of the buffer of `shape` itself: of a tuple, its table of pointers.
int64_t BufferBytes(Shape shape);

// Of every computation of a module, whether called or not. Linear in the module.
class CostAnalysis {
 public:
  explicit CostAnalysis(const Module& module);

  // Of the instruction with what it calls, so the instructions of a computation add up to the computation.
  const Cost& Of(Instruction instruction) const { return instructions_[instruction.id().value]; }
  const Cost& Of(Computation computation) const { return computations_[computation.id().value]; }
  const Cost& OfModule() const { return Of(module_->entry()); }
  const CostSums& SumsOf(Computation computation) const { return sums_[computation.id().value]; }

  // Bytes that a fusion reads of its parameter `number`; 0 for computations that are no fusion's.
  int64_t ParameterBytesRead(Computation fused, int64_t number) const;

 private:
  friend class CostCounter;

  const Module* module_;
  std::vector<Cost> instructions_;                     // by InstructionId
  std::vector<Cost> computations_;                     // by ComputationId
  std::vector<CostSums> sums_;                         // by ComputationId
  std::vector<std::vector<int64_t>> parameter_reads_;  // by ComputationId, then number; fused computations only
};

// Costs of parts of the program, by what a key function calls them. Each part is counted where it stands, callees apart
// from callers: an instruction counts for itself once for each way that it is called from the entry, a loop body once
// for each trip if trips are counted, else once. The operations of a fusion are those of its instructions, its bytes
// its own. All branches of a conditional count.
struct CostRow {
  std::string key;
  int64_t count = 0;  // instructions
  Cost cost;
};
enum class CostKey { kInstruction, kOpcode, kComputation, kSourceLine, kScope };
struct CostTableOptions {
  CostKey key = CostKey::kOpcode;
  bool trip_counts = false;
};
// Dearest in bytes first, then in flops, then by key.
std::vector<CostRow> CostTable(const Module& module, const CostAnalysis& costs, const CostTableOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_COST_H_

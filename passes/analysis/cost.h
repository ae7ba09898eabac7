// SPDX-License-Identifier: Apache-2.0
// Cost of a module: floating-point operations, transcendental functions, bytes read and written.
//
// The counts are those of XLA's HloCostAnalysis. An elementwise instruction counts one operation per element; a dot or
// convolution two per multiplication; a reduction its function once per eliminated element; a loop one iteration; a
// conditional the most expensive branch, separately for each count. An instruction reads its operands and writes its
// result; a slice reads its result, an update in place reads and writes the updated part, a tuple writes a table of
// 8-byte pointers, a fusion reads of each parameter the elements that its body uses and writes its result. The cost of
// a custom-call is unknown: it counts as 0 here, and as -1 operation and -1 byte in XLA's sums.
//
// Bytes are those of elements without padding, whole bytes for types narrower than a byte unless the layout specifies
// an element size in bits. A dynamic dimension counts as its bound, an unbounded one as 0. Sums saturate.
//
// The cost of a convolution whose window and output both exceed 2^20 in one dimension is an estimate.
#ifndef HLOKIT_PASSES_ANALYSIS_COST_H_
#define HLOKIT_PASSES_ANALYSIS_COST_H_

#include <cstdint>
#include <functional>
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

  int64_t bytes() const;  // bytes read and written
  void Add(const Cost& other);
  void Add(const Cost& other, int64_t times);
  void TakeMaximum(const Cost& other);
  friend bool operator==(const Cost&, const Cost&) = default;
};

// The sums that XLA computes: in single precision, in the order of its traversal. Exact if they are below 2^24.
struct CostSums {
  float flops = 0;
  float transcendentals = 0;
  float bytes = 0;
};

// Returns the bytes of the buffer of `shape` itself; for a tuple, its table of pointers.
int64_t BufferBytes(Shape shape);

// Costs of all computations of a module, called or not. Linear in the module.
class CostAnalysis {
 public:
  explicit CostAnalysis(const Module& module);

  // Returns the cost of the instruction including its callees, so that the instructions of a computation add up to it.
  const Cost& Of(Instruction instruction) const { return instructions_[instruction.id().value]; }
  const Cost& Of(Computation computation) const { return computations_[computation.id().value]; }
  const Cost& OfModule() const { return Of(module_->entry()); }
  const CostSums& SumsOf(Computation computation) const { return sums_[computation.id().value]; }

  // Returns the bytes that a fusion reads of its parameter `number`; 0 if no fusion calls `fused`.
  int64_t ParameterBytesRead(Computation fused, int64_t number) const;

 private:
  friend class CostCounter;

  const Module* module_;
  std::vector<Cost> instructions_;                     // by InstructionId
  std::vector<Cost> computations_;                     // by ComputationId
  std::vector<CostSums> sums_;                         // by ComputationId
  std::vector<std::vector<int64_t>> parameter_reads_;  // by ComputationId, then number; fused computations only
};

// Costs of groups of instructions by the key of a key function. Callees count in their own rows: an instruction counts
// once for each call path from the entry, a loop body once, or with `trip_counts` once per iteration if their number is
// known. A fusion counts the operations of its instructions and its own bytes. All branches of a conditional count.
struct CostRow {
  std::string key;
  Instruction instruction;  // with kInstruction
  int64_t count = 0;        // number of instructions
  Cost cost;
};
enum class CostKey { kInstruction, kOpcode, kComputation, kSourceLine, kScope };
// kOpcode and kComputation: of instructions.
enum class CostColumn {
  kBytes,
  kBytesRead,
  kBytesWritten,
  kFlops,
  kTranscendentals,
  kCount,
  kKey,
  kOpcode,
  kComputation
};
struct CostTableOptions {
  CostKey key = CostKey::kOpcode;
  bool trip_counts = false;
  CostColumn sort = CostColumn::kBytes;
  // Returns what a custom call does beyond reading its operands and writing its results. Null: nothing.
  std::function<Cost(Instruction)> custom_call_cost = nullptr;
};
// Returns rows by the column, descending, those with equal numbers by bytes, then flops, then key; kKey ascends.
std::vector<CostRow> CostTable(const Module& module, const CostAnalysis& costs, const CostTableOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_COST_H_

// SPDX-License-Identifier: Apache-2.0
// Instruction-by-instruction counting for CostAnalysis.
#ifndef HLOKIT_PASSES_ANALYSIS_COST_COUNTER_H_
#define HLOKIT_PASSES_ANALYSIS_COST_COUNTER_H_

#include <cstdint>
#include <vector>

#include "passes/analysis/cost.h"

namespace hlokit {

class CostCounter {
 public:
  explicit CostCounter(CostAnalysis* result)
      : result_(*result),
        module_(*result->module_),
        sizes_(module_.context().shapes.size()),
        state_(module_.instruction_id_bound(), kNew) {}

  // Counts `computation`. Requires: its callees have been counted.
  void Count(Computation computation, bool fused);

 private:
  void CountInstruction(Instruction i);
  void CountPlain(Instruction i);
  void CountFusion(Instruction i);
  void CountSelectAndScatter(Instruction i);
  void CountConditional(Instruction i);
  void CountRaggedDot(Instruction i);
  void CountFft(Instruction i);
  void CountTriangularSolve(Instruction i);
  void CountCholesky(Instruction i);
  void CountOutfeed(Instruction i);
  void CountAllReduce(Instruction i);
  void CountSort(Instruction i);
  void CountScatter(Instruction i);
  void CountWhile(Instruction i);
  void CountParameterReads(Computation fused);

  // Sets the bytes of the current instruction.
  void Bytes(int64_t read, int64_t written);
  void Flops(int64_t flops);
  void Transcendentals(int64_t transcendentals);
  // Adds the operations of `callee`, multiplied by `times`.
  void Apply(Computation callee, int64_t times);
  // Sets the cost of the current instruction to that of `callee`.
  void Become(Computation callee);
  // Sizes of a shape, computed once per shape since all users of an array need them.
  struct Sizes {
    int64_t buffer = -1;  // BufferBytes; -1: not computed yet
    int64_t elements = 0;
    int64_t leaves = 0;  // bytes of all leaves,
    float leaf_sum = 0;  // and as XLA sums them
  };
  const Sizes& SizesOf(ShapeId shape) {
    const Sizes& sizes = sizes_[shape.value];
    return sizes.buffer >= 0 ? sizes : ComputeSizes(shape);
  }
  const Sizes& SizesOf(Instruction i) { return SizesOf(i.record().shape); }
  const Sizes& ComputeSizes(ShapeId shape);
  int64_t OperandBytes(Instruction i, int64_t k) { return k < i.operand_count() ? SizesOf(i.operand(k)).buffer : 0; }
  int64_t ReadOf(Instruction source) const;

  CostAnalysis& result_;
  const Module& module_;
  Cost cost_;                 // of the current instruction
  CostSums sums_;             // of the current instruction
  std::vector<Sizes> sizes_;  // by ShapeId
  enum State : uint8_t { kNew, kOpen, kDone };
  std::vector<State> state_;  // by InstructionId
  std::vector<InstructionId> stack_;
};

// Returns the flops of a dot with these operands.
int64_t DotFlops(Instruction dot);
int64_t ConvolutionFlops(Instruction convolution);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_COST_COUNTER_H_

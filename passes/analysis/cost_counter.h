// How CostAnalysis counts one instruction after another.
#ifndef HLOKIT_PASSES_ANALYSIS_COST_COUNTER_H_
#define HLOKIT_PASSES_ANALYSIS_COST_COUNTER_H_

#include <cstdint>
#include <vector>

#include "passes/analysis/cost.h"

namespace hlokit {

class CostCounter {
 public:
  explicit CostCounter(CostAnalysis* result) : result_(*result), module_(*result->module_) {}

  // The callees of `computation` have been counted.
  void Count(Computation computation, bool fused);

 private:
  void CountInstruction(Instruction i);
  void CountPlain(Instruction i);
  void CountFusion(Instruction i);
  void CountSelectAndScatter(Instruction i);
  void CountConditional(Instruction i);
  void CountParameterReads(Computation fused);

  // Sets the bytes of the current instruction.
  void Bytes(int64_t read, int64_t written);
  void Flops(int64_t flops);
  void Transcendentals(int64_t transcendentals);
  // Adds the operations of `callee`, `times` over.
  void Apply(Computation callee, int64_t times);
  // The current instruction costs what `callee` does.
  void Become(Computation callee);
  // What its leaves take, exactly and in single precision.
  struct LeafBytes {
    int64_t exact = -1;
    float sum = 0;
  };
  const LeafBytes& LeafBytesOf(Shape shape);
  int64_t ReadOf(Instruction source) const;

  CostAnalysis& result_;
  const Module& module_;
  Cost cost_;                          // of the current instruction
  CostSums sums_;                      // of the current instruction
  std::vector<LeafBytes> leaf_bytes_;  // by ShapeId
};

// Of a dot with these operands.
int64_t DotFlops(Instruction dot);
int64_t ConvolutionFlops(Instruction convolution);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_COST_COUNTER_H_

// SPDX-License-Identifier: Apache-2.0
// Steps that reduce an array along any dimensions, with the elementwise instructions before.
//
// The work is divided into pieces that depend on shapes alone. Each leaves partial results, in the accumulators' types,
// which are combined in the order of the elements: results are the same for any number of threads. Where the minor
// dimension in memory is kept, the loop accumulates rows (LoopForm::kColumns), otherwise along the row (kRows).
#ifndef HLOKIT_INTERP_COMPILED_LOOPS_REDUCE_THUNK_H_
#define HLOKIT_INTERP_COMPILED_LOOPS_REDUCE_THUNK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "interp/compiled/code/code_cache.h"
#include "interp/compiled/loops/loop_builder.h"
#include "interp/exact/builder/compiled_computation_builder.h"

namespace hlokit::interp::compiled {

// Computes results from the totals of the reductions.
class ReduceFinish {
 public:
  virtual ~ReduceFinish() = default;
  // Computes the results [first, first + n). totals[k]: accumulators of reduction k, from `first` on. `in`: the further
  // operands of the thunk, `out`: its results but the elementwise ones.
  virtual void Run(const std::byte* const* totals, int64_t first, int64_t n, const std::byte* const* in,
                   std::byte* const* out) const = 0;
};

// A loop whose arrays are known, and so its form.
class ReduceThunkBuilder {
 public:
  // `dims`: of the loop, in the order of memory, with at least one element. `views`: what it reads, in the same
  // dimensions, with at most one stride 1 or 0 in the minor one; others are replaced by copies. `element_results`:
  // number of results of all dimensions.
  ReduceThunkBuilder(CompiledComputationBuilder& builder, const Dims& dims, const std::vector<bool>& reduced,
                     std::vector<View> views, size_t element_results);
  ~ReduceThunkBuilder();

  // Returns how the values of an input repeat.
  LoopBuilder::Repeats RepeatsOf(size_t input) const;
  // Returns true for LoopForm::kRows.
  bool along_rows() const;

  // Adds a reduction to the program.
  void AddReduction(LoopBuilder& loop, LoopOp combiner, uint16_t element);
  // Emits the thunk. `more`: further operands; `results`: shapes of the elementwise results, then of those of `finish`.
  // Returns the results; an error if its code cannot be had. `compiled`: the program.
  absl::StatusOr<ViewList> Emit(LoopBuilder& loop, const std::vector<View>& more, std::vector<Shape> results,
                                std::unique_ptr<ReduceFinish> finish, ProgramCode* code, LoopProgram* compiled);

 private:
  struct Params;
  static void Run(const ThunkParams* params, const std::byte* const* in, std::byte* const* out, RunContext& context);

  CompiledComputationBuilder& b_;
  std::vector<View> views_;
  std::unique_ptr<Params> params_;
};

// Returns the finish of a reduction of an instruction: operand `operand` is the initial value.
std::unique_ptr<ReduceFinish> FinishOfReduces(const std::vector<LoopOp>& combiners,
                                              const std::vector<ElementType>& types);
// Returns true for dimensions whose reduction is worth a loop: not too few elements in the minor ones.
bool IsReductionForLoop(Shape shape, const std::vector<int64_t>& reduced);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LOOPS_REDUCE_THUNK_H_

// SPDX-License-Identifier: Apache-2.0
// Writes the function of a loop program as LLVM code.
#ifndef HLOKIT_INTERP_COMPILED_LLVM_LOOP_EMITTER_H_
#define HLOKIT_INTERP_COMPILED_LLVM_LOOP_EMITTER_H_

#include <functional>
#include <string>
#include <vector>

#include "interp/compiled/llvm/row_passes.h"
#include "interp/compiled/llvm/value_emitter.h"
#include "interp/compiled/programs/loop_program.h"
#include "interp/processor/instruction_set.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace hlokit::interp::compiled {

class LoopEmitter {
 public:
  LoopEmitter(const LoopProgram& program, InstructionSet set, llvm::Module* module);

  // Adds the function "kernel". Returns an error if the program has an operation that is not defined.
  llvm::Error Emit();
  // Arrays of scratch memory for values between passes.
  int saved_values() const { return program_.columns > 0 ? 0 : passes_.saved_count * rows_together_; }

 private:
  using Values = std::vector<llvm::Value*>;

  struct Row {
    Values in, out;  // pointers to its elements
    // By node: values of the row, in one lane and in all lanes of a vector.
    Values one, all;
  };
  // A vector of a row whose size is known.
  struct Part {
    int64_t begin = 0;
    int lanes = 0;
    llvm::Value* mask = nullptr;
  };

  llvm::Value* Field(unsigned index, llvm::Type* type);
  llvm::Value* Element(llvm::Value* array, llvm::Type* type, size_t index);
  // Calls body(i) for i = 0, step, ... while i + step <= end; returns the first i that is not done. `carried`: values
  // that the body replaces.
  llvm::Value* Loop(llvm::Value* begin, llvm::Value* end, int64_t step, Values* carried,
                    const std::function<void(llvm::Value*, Values*)>& body);
  // How many vectors the loop over a row takes at a time. Their operations alternate, which hides their latencies.
  int VectorsAtATime() const;
  // Calls body(i, mask, values) for the vectors of a row: several at a time, then single ones, with a mask where one
  // may be partial, or with a last loop over single elements. Reductions carried in vectors begin as the caller's
  // `widen` returns, and are folded to the number of lanes that `fold` is given: in the end to `carried`, of one.
  void ForVectors(llvm::Value* columns, Values* carried, const std::function<Values()>& widen,
                  const std::function<Values(const Values&, int)>& fold,
                  const std::function<void(llvm::Value*, llvm::Value*, Values*)>& body);
  Row RowAt(llvm::Value* row);
  // Returns the next rows. Where fewer are left, the last one comes again: it gets the same values, and all that is
  // read at a place is read before something is written there.
  std::vector<Row> RowsFrom(llvm::Value* first, llvm::Value* rows);
  void EmitRows(llvm::Value* rows);
  void EmitPass(const RowPasses::Pass& pass, std::vector<Row>* group);
  void EmitRowResults(const Row& row);
  // Rows of LoopProgram::columns elements, several at a time; in row_emitter.cc.
  void EmitRegisterRows(llvm::Value* rows);
  std::vector<Part> PartsOfRow();
  llvm::Value* ReduceParts(LoopOp op, ElementType type, const std::vector<Part>& parts, const Values& elements);
  // kColumns; in column_emitter.cc.
  void EmitColumns(llvm::Value* rows, llvm::Value* resume);
  void EmitColumnBlock(llvm::Value* rows, llvm::Value* resume, llvm::Value* at, int vectors, llvm::Value* mask);
  // kWhile; in while_emitter.cc.
  void EmitWhile(llvm::Value* max_iterations);
  // Returns the mask of the elements from `at` on that are columns.
  llvm::Value* MaskAt(llvm::Value* at);
  // Computes a value of the row; `reduced`: of a reduction, what its elements came to.
  void EmitRowValue(uint16_t i, llvm::Value* reduced, Row* row);
  // Computes the nodes for the vector of elements at `at`, where `values` does not have them.
  void EmitElements(const std::vector<uint16_t>& nodes, const Row& row, llvm::Value* at, llvm::Value* mask,
                    Values* values);
  llvm::Value* Load(ElementType type, llvm::Value* pointer, llvm::Value* mask);
  void Store(ElementType type, llvm::Value* value, llvm::Value* pointer, llvm::Value* mask);
  llvm::Value* Call(const LoopNode& node, const Values& values);
  llvm::Value* Compute(uint16_t i, const Values& values);
  llvm::Value* PointerAt(llvm::Value* base, ElementType type, llvm::Value* index);
  llvm::Value* SavedAt(uint16_t node, size_t row, llvm::Value* index);
  // Asks for the elements that come later at `at`, in_prefetch_ of them: with so much work in between, processors do
  // not.
  void PrefetchLater(const Row& row, llvm::Value* at);
  ElementType AccumulatorOf(uint16_t reduce) const;
  // The accumulator type's neutral element.
  llvm::Constant* Neutral(LoopOp op, ElementType type) const;
  // Returns the sum so far with the element of a reduction of `node`. A product of doubles is added without a rounding
  // of its own.
  llvm::Value* Accumulate(const LoopNode& node, ElementType accumulator, llvm::Value* sum, const Values& values);
  using CombineFunction = std::function<llvm::Value*(llvm::Value*, llvm::Value*)>;
  llvm::Value* Fold(llvm::Value* vector, int lanes, const CombineFunction& combine);
  // Combines the lanes of a vector to this number of them.
  llvm::Value* FoldLanes(LoopOp op, ElementType type, llvm::Value* vector, int lanes);
  // Returns the maximum or minimum of floats, or NaN if a lane of `nan` is set.
  llvm::Value* FoldOrdered(LoopOp op, llvm::Value* vector, llvm::Value* nan);
  static bool IsOrderOfFloats(LoopOp op, ElementType type) {
    return IsFloat(type) && (op == LoopOp::kMaximum || op == LoopOp::kMinimum);
  }

  const LoopProgram& program_;
  const InstructionSet set_;
  llvm::Module* const module_;
  llvm::IRBuilder<> b_;
  ValueEmitter values_;
  RowPasses passes_;
  int rows_together_ = 1;
  llvm::Function* function_ = nullptr;
  llvm::Value* arguments_ = nullptr;
  Values in_, out_, in_stride_, out_stride_;
  Values in_prefetch_;  // elements to what is fetched ahead
  llvm::Value* columns_ = nullptr;
  llvm::Value* last_mask_ = nullptr;  // of the last vector of a row, as an integer
  llvm::Value* scratch_ = nullptr;
  llvm::Value* pitch_ = nullptr;
  llvm::Value* call_ = nullptr;
  llvm::Value* functions_ = nullptr;
  Values call_memory_;  // result and operands of calls
  std::string error_;
};

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LLVM_LOOP_EMITTER_H_

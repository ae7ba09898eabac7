// SPDX-License-Identifier: Apache-2.0
// Writes the function of a loop program as LLVM code.
#ifndef HLOKIT_INTERP_COMPILED_LLVM_LOOP_EMITTER_H_
#define HLOKIT_INTERP_COMPILED_LLVM_LOOP_EMITTER_H_

#include <functional>
#include <string>
#include <vector>

#include "interp/compiled/llvm/row_passes.h"
#include "interp/compiled/llvm/value_emitter.h"
#include "interp/compiled/loop_program.h"
#include "interp/exact/processor/instruction_set.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace hlokit::interp::compiled {

class LoopEmitter {
 public:
  LoopEmitter(const LoopProgram& program, InstructionSet set, llvm::Module* module);

  // Adds the function "kernel". Returns false if the program has an operation that is not defined; see error().
  bool Emit();
  const std::string& error() const { return error_; }
  int saved_values() const { return passes_.saved_count; }

 private:
  using Values = std::vector<llvm::Value*>;

  llvm::Value* Field(unsigned index, llvm::Type* type);
  llvm::Value* Element(llvm::Value* array, llvm::Type* type, size_t index);
  // Calls body(i) for i = 0, step, ... while i + step <= end; returns the first i that is not done. `carried`: values
  // that the body replaces.
  llvm::Value* Loop(llvm::Value* begin, llvm::Value* end, int64_t step, Values* carried,
                    const std::function<void(llvm::Value*, Values*)>& body);
  // Calls body(i, mask, values) for the vectors of a row, with a mask where one may be partial, or with a last loop
  // over single elements. Reductions carried in vectors are folded to `carried`, of one lane, by the caller's `fold`.
  void ForVectors(llvm::Value* columns, Values* carried, const std::function<Values(const Values&)>& widen,
                  const std::function<Values(const Values&)>& fold,
                  const std::function<void(llvm::Value*, llvm::Value*, Values*)>& body);
  void BeginRow(llvm::Value* row);
  void EmitRow(llvm::Value* row);
  // kColumns; in column_emitter.cc.
  void EmitColumns(llvm::Value* rows, llvm::Value* resume);
  void EmitColumnBlock(llvm::Value* rows, llvm::Value* resume, llvm::Value* at, int vectors, llvm::Value* mask);
  // Returns the mask of the elements from `at` on that are columns.
  llvm::Value* MaskAt(llvm::Value* at);
  void EmitRowValue(uint16_t i, const Values& reduced);
  // Computes the nodes for the vector of elements at `at`. `loaded`: values that are there already, or null.
  void EmitElementsWith(const std::vector<uint16_t>& nodes, llvm::Value* at, llvm::Value* mask, const Values& loaded,
                        Values* values);
  llvm::Value* Load(ElementType type, llvm::Value* pointer, llvm::Value* mask);
  void Store(ElementType type, llvm::Value* value, llvm::Value* pointer, llvm::Value* mask);
  llvm::Value* Call(const LoopNode& node, const Values& values);
  llvm::Value* Compute(uint16_t i, const Values& values);
  llvm::Value* PointerAt(llvm::Value* base, ElementType type, llvm::Value* index);
  llvm::Value* SavedAt(uint16_t node, llvm::Value* index);
  // The accumulator type's neutral element.
  llvm::Constant* Neutral(LoopOp op, ElementType type) const;
  // Returns the sum so far with the element of a reduction of `node`. A product of doubles is added without a rounding
  // of its own.
  llvm::Value* Accumulate(const LoopNode& node, ElementType accumulator, llvm::Value* sum, const Values& values);
  llvm::Value* FoldLanes(LoopOp op, ElementType type, llvm::Value* vector);

  const LoopProgram& program_;
  const InstructionSet set_;
  llvm::Module* const module_;
  llvm::IRBuilder<> b_;
  ValueEmitter values_;
  RowPasses passes_;
  llvm::Function* function_ = nullptr;
  llvm::Value* arguments_ = nullptr;
  Values in_, out_, in_stride_, out_stride_;
  Values in_row_, out_row_;  // pointers to the current row
  Values row_values_;        // by node: vectors of all lanes
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

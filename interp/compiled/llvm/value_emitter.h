// SPDX-License-Identifier: Apache-2.0
// LLVM code for the operations of a loop on vectors of elements.
//
// A value is a vector with one lane for each element: i1 for pred, iN for integers, float for f32 and narrower floats
// (rounded to their type after each operation), double for f64.
#ifndef HLOKIT_INTERP_COMPILED_LLVM_VALUE_EMITTER_H_
#define HLOKIT_INTERP_COMPILED_LLVM_VALUE_EMITTER_H_

#include <functional>
#include <string>

#include "interp/compiled/programs/loop_program.h"
#include "interp/processor/instruction_set.h"
#include "llvm/IR/IRBuilder.h"

namespace hlokit::interp::compiled {

class ValueEmitter {
 public:
  ValueEmitter(llvm::IRBuilder<>& builder, InstructionSet set) : b_(builder), set_(set) {}

  // Number of lanes of the values that follow.
  void set_lanes(int lanes) { lanes_ = lanes; }
  int lanes() const { return lanes_; }

  llvm::Type* ScalarType(ElementType type) const;   // of a value
  llvm::Type* StorageType(ElementType type) const;  // in memory
  llvm::Type* VectorType(llvm::Type* scalar) const;
  llvm::Constant* Splat(ElementType type, double value) const;

  // Converts between storage and value.
  llvm::Value* FromStorage(llvm::Value* stored, ElementType type);
  llvm::Value* ToStorage(llvm::Value* value, ElementType type);

  // Returns the value of `node`; `operands` are its operands' values, `types` their types. Null for kInput, kCall and
  // kReduce, and where the operation is not defined for the types.
  llvm::Value* Emit(const LoopNode& node, llvm::Value* const* operands, const ElementType* types);
  // Returns a combination of two values of the type, or of its accumulator.
  llvm::Value* Combine(LoopOp op, ElementType type, llvm::Value* a, llvm::Value* b);
  // The same for the maximum or minimum of floats, where NaN in the result does not matter.
  llvm::Value* CombineNumbers(LoopOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* ConvertValue(llvm::Value* value, ElementType from, ElementType to);
  // Returns a * b + c, with one rounding if the processor has an instruction for it.
  llvm::Value* Fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);

 private:
  llvm::Value* Round(llvm::Value* value, ElementType type);
  llvm::Value* RoundToBf16(llvm::Value* value);
  // IsFloat8; in float8.cc.
  llvm::Value* FromFloat8(llvm::Value* stored, ElementType type);
  llvm::Value* ToFloat8(llvm::Value* value, ElementType type);
  llvm::Value* RoundToFloat8(llvm::Value* value, ElementType type);
  // Returns the value with 0 in place of -0, if the type lacks the latter.
  llvm::Value* WithoutMinusZero(llvm::Value* value, ElementType type);
  llvm::Value* Compare(uint32_t direction, ElementType type, llvm::Value* a, llvm::Value* b);
  llvm::Value* Shift(LoopOp op, llvm::Value* a, llvm::Value* by);

  // Functions of f32, in loop_math.cc.
  llvm::Value* F(double value) const;
  llvm::Value* I(int32_t value) const;
  llvm::Value* Polynomial(llvm::Value* x, std::initializer_list<double> coefficients);
  // Calls emit(part of a, part of b) for each 16 lanes: instructions of AVX-512 have no more.
  llvm::Value* InVectors(llvm::Value* a, llvm::Value* b,
                         const std::function<llvm::Value*(llvm::Value*, llvm::Value*)>& emit);
  // x = n log 2 + r with an integer n, which is also in the low bits of `shifted`.
  struct Exponent {
    llvm::Value *shifted, *n, *r;
  };
  Exponent ReduceExponent(llvm::Value* x);
  llvm::Value* ExpMinusOneNearZero(llvm::Value* r);
  llvm::Value* Exp(llvm::Value* x);
  llvm::Value* Log(llvm::Value* x);
  llvm::Value* Tanh(llvm::Value* x);
  llvm::Value* Logistic(llvm::Value* x);
  llvm::Value* Erf(llvm::Value* x);
  llvm::Value* Expm1(llvm::Value* x);
  llvm::Value* Log1p(llvm::Value* x);
  llvm::Value* Unary(llvm::Intrinsic::ID id, llvm::Value* x) { return b_.CreateUnaryIntrinsic(id, x); }

  llvm::IRBuilder<>& b_;
  const InstructionSet set_;
  int lanes_ = 1;
};

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LLVM_VALUE_EMITTER_H_

// SPDX-License-Identifier: Apache-2.0
// A computation on scalars applied to many elements at once: the function of a reduce, a scatter, a sort, a map.
//
// Computations of elementwise instructions (nearly all) become a list of ElementOps over blocks of elements: a function
// of ten instructions costs ten short loops a block instead of ten dispatches an element. Others run on the virtual
// machine, one element at a time.
#ifndef HLOKIT_INTERP_EXACT_BUILDER_SCALAR_FUNCTION_H_
#define HLOKIT_INTERP_EXACT_BUILDER_SCALAR_FUNCTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "interp/exact/program/element_op.h"
#include "interp/exact/program/exact_fwd.h"
#include "interp/exact/program/program.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

class ScalarFunction {
 public:
  // Functions with specialized kernels, with operands and result of one type.
  enum class RecognizedOp : uint8_t { kNone, kAdd, kMultiply, kMinimum, kMaximum, kAnd, kOr, kXor, kFirst, kSecond };

  static constexpr int64_t kBlock = 256;

  // Creates the function. `compiled`: the prepared form of the same computation. Returns null, after an error report,
  // if parameters or results are not scalars.
  static std::unique_ptr<ScalarFunction> Create(ProgramBuilder& program, Computation computation,
                                                CompiledComputation* compiled);

  // Returns the function with arguments and results of other floating-point types, which are converted; null if the
  // numbers of types or types that are not floating-point differ.
  static std::unique_ptr<ScalarFunction> WithTypes(const ScalarFunction& function, Computation computation,
                                                   absl::Span<const ElementType> parameters,
                                                   absl::Span<const ElementType> results);
  bool HasTypes(absl::Span<const ElementType> parameters, absl::Span<const ElementType> results) const {
    return absl::MakeConstSpan(parameters_) == parameters && absl::MakeConstSpan(result_types_) == results;
  }

  size_t parameter_count() const { return parameters_.size(); }
  size_t result_count() const { return results_.size(); }
  ElementType parameter_type(size_t i) const { return parameters_[i]; }
  ElementType result_type(size_t i) const { return result_types_[i]; }
  // Returns the recognized function. kNone unless it has two parameters and one result.
  RecognizedOp recognized_op() const { return recognized_op_; }
  // Returns false for functions on the virtual machine, which only its thread may call.
  bool parallel() const { return is_vectorized_; }
  // As RunContext::ParallelFor, in one thread if threads must not share the function.
  void ParallelFor(RunContext& context, int64_t count, double cost,
                   absl::FunctionRef<void(int64_t, int64_t)> body) const;
  // Returns an approximate time of one application, in nanoseconds.
  double cost() const { return cost_; }

  // A comparator of the form key(a0, a1, ...) `direction` key(b0, b1, ...), where a's are the parameters 0, 2, 4, ...
  // and b's are 1, 3, 5, ...: most comparators of sorts.
  struct KeyComparison {
    ComparisonDirection direction;
    bool total_order;
    // Reads the even parameters only; its single result is the key.
    std::unique_ptr<ScalarFunction> key;
    // The parameter that is the key, divided by two; -1 if the key is computed.
    int64_t operand;
  };
  const KeyComparison* comparison() const { return comparison_ ? &*comparison_ : nullptr; }

  // Memory for calls on one thread with up to `n` elements (processed kBlock at a time).
  class BlockScratch {
   public:
    BlockScratch(const ScalarFunction& function, int64_t n);

   private:
    friend class ScalarFunction;
    int64_t block_;
    std::unique_ptr<std::byte[]> memory_;
  };

  // Computes results[j][i] = function(parameters[0][i * strides[0]], ...) for i < n. Results are dense; they may alias
  // parameters with stride 1 and the same start.
  void Run(const std::byte* const* parameters, const int64_t* strides, std::byte* const* results, int64_t n,
           BlockScratch& scratch, RunContext& context) const;

 private:
  enum class Source : uint8_t { kParameter, kConstant, kTemporary };
  struct Register {
    Source source;
    uint8_t bytes;
    uint32_t index;  // of the parameter, or of the op that computes it
    const std::byte* constant;
  };
  struct RegisterOp {
    ElementOp op;
    uint32_t in[ElementOp::kMaxOperands];  // registers
    uint32_t out;                          // register
  };
  struct Compiler;

  void MatchComparison(Instruction root);
  void RunOnVirtualMachine(const std::byte* const* parameters, const int64_t* strides, std::byte* const* results,
                           int64_t n, RunContext& context) const;

  std::vector<ElementType> parameters_;
  std::vector<ElementType> result_types_;
  std::vector<Register> registers_;
  std::vector<RegisterOp> ops_;
  std::vector<uint32_t> results_;  // registers
  bool direct_result_ = false;     // the last op writes the only result
  bool is_vectorized_ = false;
  RecognizedOp recognized_op_ = RecognizedOp::kNone;
  std::optional<KeyComparison> comparison_;
  double cost_ = 0;
  // Of a function on the virtual machine: conversions of its arguments and results; empty: none.
  std::vector<std::optional<ElementOp>> convert_parameters_, convert_results_;
  CompiledComputation* compiled_ = nullptr;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_BUILDER_SCALAR_FUNCTION_H_

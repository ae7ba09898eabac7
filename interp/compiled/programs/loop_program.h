// SPDX-License-Identifier: Apache-2.0
// A fused loop: a directed graph of operations on elements, which the code generator turns into one function.
//
// The function runs over `rows` rows of `columns` elements:
//
//   kLoop      every element by itself
//   kRows      reductions along the row, and what depends on them: passes over one row after the other
//   kColumns   every element by itself, column after column, and reductions of each column over the rows, whose
//              accumulators are left in scratch memory
//   kWhile     a while loop of scalars: the outputs are the next state, whose present one the first inputs are; rows
//              is the most iterations of the call, which leaves their number, and 1 if the loop ended or 0, in scratch
//              memory (two s64)
//
// Sizes and strides are arguments of the function, so one function serves arrays of all sizes. Only the size of short
// rows is part of the program.
#ifndef HLOKIT_INTERP_COMPILED_PROGRAMS_LOOP_PROGRAM_H_
#define HLOKIT_INTERP_COMPILED_PROGRAMS_LOOP_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/types/element_type.h"

namespace hlokit::interp::compiled {

enum class LoopOp : uint8_t {
#define LOOP_OP(name, neutral, accuracy) k##name,
#include "interp/compiled/programs/loop_ops.def"
};

// The element that a combination leaves as the other operand is.
enum class NeutralElement : uint8_t { kNone, kZero, kOne, kLowest, kHighest, kAllOnes };

constexpr NeutralElement NeutralOf(LoopOp op) {
  constexpr NeutralElement kNeutrals[] = {
#define LOOP_OP(name, neutral, accuracy) NeutralElement::neutral,
#include "interp/compiled/programs/loop_ops.def"
  };
  return kNeutrals[static_cast<size_t>(op)];
}

enum class LoopAccuracy : uint8_t { kExact, kApproximate, kAccumulated };

constexpr LoopAccuracy AccuracyOf(LoopOp op) {
  constexpr LoopAccuracy kAccuracies[] = {
#define LOOP_OP(name, neutral, accuracy) LoopAccuracy::accuracy,
#include "interp/compiled/programs/loop_ops.def"
  };
  return kAccuracies[static_cast<size_t>(op)];
}

struct LoopNode {
  LoopOp op = LoopOp::kInput;
  ElementType type = ElementType::kF32;  // of the value, as it is stored
  // The same value in all elements of a row, or of a column. The latter only matters for LoopForm::kColumns.
  bool row_value = false;
  bool column_value = false;
  uint8_t operand_count = 0;
  uint16_t operands[3] = {};
  // kInput: number of the input; kCall: of the function; kCompare: ComparisonDirection; kReduce: the LoopOp that
  // combines; operands 0 and 1 of kReduce are the elements and the initial value, which may be absent.
  uint32_t param = 0;

  friend bool operator==(const LoopNode&, const LoopNode&) = default;
};

struct LoopInput {
  ElementType type = ElementType::kF32;
  bool row_value = false;     // one element in each row
  bool column_value = false;  // one element in each column

  friend bool operator==(const LoopInput&, const LoopInput&) = default;
};

enum class LoopForm : uint8_t { kLoop, kRows, kColumns, kWhile };

struct LoopProgram {
  LoopForm form = LoopForm::kLoop;
  std::vector<LoopInput> inputs;
  std::vector<LoopNode> nodes;    // operands before users
  std::vector<uint16_t> outputs;  // nodes whose values are stored
  uint16_t calls = 0;             // functions that nodes call
  // kRows: elements of each row, which then are in registers; 0: an argument of the function.
  int64_t columns = 0;
  uint16_t condition = 0;  // kWhile: the node that says whether there is one more iteration; later nodes are the body's

  friend bool operator==(const LoopProgram&, const LoopProgram&) = default;
};

// Arguments of the function. Strides and sizes are in elements, strides from one row to the next.
struct LoopArguments {
  const std::byte* const* in;
  std::byte* const* out;
  const int64_t* in_strides;
  const int64_t* out_strides;
  int64_t rows;
  int64_t columns;
  // kRows: memory for values of a row between passes, GeneratedCode::saved_values times scratch_pitch bytes.
  // kColumns: accumulators by column, scratch_pitch bytes for each reduction in the order of nodes.
  std::byte* scratch;
  int64_t scratch_pitch;
  // Calls a function on vectors in memory: call(functions[i], result, operand 0, 1, 2, elements).
  void (*call)(const void* function, void* result, const void* a, const void* b, const void* c, int64_t n);
  const void* const* functions;
  int64_t resume;  // kColumns: 1 to continue with the accumulators in `scratch`, 0 to begin
};
using LoopFunction = void (*)(const LoopArguments*);

// Returns true for a float of eight bits with a sign.
constexpr bool IsFloat8(ElementType type) {
  return IsFloat(type) && BitsOf(type) == 8 && type != ElementType::kF8E8M0FNU;
}

// Returns the name of an operation, "Multiply".
std::string_view NameOf(LoopOp op);

// Returns a text that is the same for equal programs only.
std::string CanonicalText(const LoopProgram& program);

// Returns true if the elements of a row of a program without calls (LoopForm::kRows) should be in registers: few
// vectors of them, and not too much code.
bool FitsInRegisters(const LoopProgram& program, int64_t columns, int lanes);

// Returns the type in which a reduction of this type accumulates.
constexpr ElementType AccumulatorType(LoopOp combiner, ElementType type) {
  const bool sums = combiner == LoopOp::kAdd || combiner == LoopOp::kMultiply;
  return IsFloat(type) && sums ? ElementType::kF64 : IsFloat(type) && BitsOf(type) < 32 ? ElementType::kF32 : type;
}

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_PROGRAMS_LOOP_PROGRAM_H_

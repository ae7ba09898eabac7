// SPDX-License-Identifier: Apache-2.0
// The thunk of a loop over elements or over rows (LoopForm::kLoop, kRows, and kColumns without reductions): calls of
// the generated function for parts of the arrays.
#ifndef HLOKIT_INTERP_COMPILED_LOOPS_LOOP_PARAMS_H_
#define HLOKIT_INTERP_COMPILED_LOOPS_LOOP_PARAMS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "interp/compiled/code/code_cache.h"
#include "interp/compiled/loops/inplace_input.h"
#include "interp/compiled/loops/loop_builder.h"
#include "interp/exact/program/element_op.h"
#include "interp/exact/program/loop_nest.h"
#include "interp/exact/program/program.h"

namespace hlokit::interp::compiled {

constexpr int64_t kMaxElementBytes = 8;

struct LoopParams : ThunkParams {
  // Columns that a call computes, in one of the arrays that each in-place input has.
  struct Piece {
    int64_t begin = 0;
    int64_t columns = 1;
    // Of in-place inputs: the operand, or number -1 - f of a fill line.
    std::vector<int64_t> from;
    std::vector<int64_t> row_strides;  // of the function's inputs, then outputs, in elements
  };
  // Rows that the same pieces have.
  struct Box {
    std::vector<int64_t> begin, sizes;  // of the dimensions that count rows, outermost first
    int64_t lines = 1;                  // rows in all
    int64_t rows = 1;                   // of a call, at most
    std::vector<Piece> pieces;
    bool whole_rows = true;  // a thread takes all pieces of a row
    bool has_fills = false;
  };
  // A computed position in the only array of an in-place input.
  struct Index {
    size_t input = 0;    // of the function
    size_t operand = 0;  // has the index
    ElementType type = ElementType::kS32;
    int64_t limit = 0;
    int64_t stride = 0;  // bytes
  };
  // A line of equal elements.
  struct Fill {
    size_t operand = 0;  // has the value
    int64_t bytes = 0;
  };

  std::shared_ptr<const LoadedCode> code;
  std::vector<ElementOp> functions;
  std::vector<const void*> function_pointers;
  // Operands of the thunk: arrays of plain inputs, then those of in-place inputs. Arrays: operands, then outputs.
  size_t plain = 0;
  size_t inputs = 0;  // of the function: plain ones, then those in place
  size_t operands = 0;
  size_t outputs = 0;
  std::vector<int64_t> bytes;         // of an element of each array
  std::vector<int64_t> inner_stride;  // of each: 0 or 1
  std::vector<int64_t> origin;        // of each, in elements: of index 0 in all dimensions
  std::vector<int64_t> strides;       // by dimension that counts rows, and array
  std::vector<Box> boxes;
  std::vector<Index> indices;
  std::vector<Fill> fills;
  int64_t fill_columns = 0;  // of a line
  int64_t columns = 1;
  bool by_columns = false;  // LoopForm::kColumns
  int64_t scratch = 0;
  double cost = 1;  // of an element, in ns

  size_t arrays() const { return operands + outputs; }
  // Of all fill lines.
  int64_t fill_bytes() const { return static_cast<int64_t>(fills.size()) * fill_columns * kMaxElementBytes; }
  // Returns the stride from one row of a call to the next, in elements.
  int64_t RowStride(size_t array) const { return strides.empty() ? 0 : strides[strides.size() - arrays() + array]; }
  // Returns true if neighboring rows have computed positions of their own.
  bool MovesByRow() const;
  // How the values of an input of the function repeat.
  LoopBuilder::Repeats RepeatsOf(size_t input) const;
  // Sets the only box of a loop over rows: those of a nest of all arrays. `inplace`: operands of in-place inputs.
  void SetRows(const LoopNest& nest, std::vector<int64_t> inplace);
};

// Lays a loop over elements out: `dims` in the order of memory, `views` of its plain inputs, of which those are
// replaced by copies that the function cannot read. Returns the operands of the thunk.
std::vector<View> LayOutElements(CompiledComputationBuilder& builder, absl::Span<const int64_t> dims,
                                 absl::Span<const InplaceInput> inplace, size_t results, std::vector<View>* views,
                                 LoopParams* params);
// Returns true if a loop of these dimensions is not divided into too many boxes.
bool HasFewBoxes(absl::Span<const int64_t> dims, absl::Span<const InplaceInput> inplace);

void RunLoop(const LoopParams& params, const std::byte* const* in, std::byte* const* out, RunContext& context);
// Runs an ElementOp on vectors in memory; LoopArguments::call.
void CallElementOp(const void* function, void* result, const void* a, const void* b, const void* c, int64_t n);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LOOPS_LOOP_PARAMS_H_

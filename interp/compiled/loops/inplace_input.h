// SPDX-License-Identifier: Apache-2.0
// Instructions that move elements, and which a loop over elements reads where the elements come from instead of
// storing them first: concatenations, padded arrays, slices at computed positions and gathered rows.
//
// To the generated code each is one input. Between calls the thunk changes where it is read: the loop is divided into
// boxes in which it lies in one array (or is one value), and computed positions are added to the address, clamped so
// that all of a row is in bounds.
#ifndef HLOKIT_INTERP_COMPILED_LOOPS_INPLACE_INPUT_H_
#define HLOKIT_INTERP_COMPILED_LOOPS_INPLACE_INPUT_H_

#include <optional>
#include <vector>

#include "interp/compiled/programs/loop_layout.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/program/view.h"
#include "ir/graph/module.h"

namespace hlokit::interp::compiled {

// Returns true for such an instruction, of types that loops have.
bool IsInplaceInput(Instruction instruction);

// Its elements. Dimensions are those of the instruction in the order of memory.
struct InplaceInput {
  // A box of them that lies in one array, with a stride of 1 in the minor dimension.
  struct Part {
    View view;  // the first element
    Dims begin, sizes, strides;
    bool one_value = false;  // all strides are 0
  };
  // A computed position: clamp(index, 0, limit) * stride elements are added to the address.
  struct Index {
    View view;     // the first index
    Dims strides;  // of indices; 0 in the minor dimension
    int64_t limit = 0;
    int64_t stride = 0;
  };
  ElementType type = ElementType::kF32;
  std::vector<Part> parts;
  std::vector<Index> indices;  // of the only part
  std::optional<View> fill;    // the value outside of the parts
};

// Returns nullopt for an instruction that is not worth it in this order of memory, such as one with runs of fewer than
// `min_run` neighbors. May emit copies of operands whose elements are not neighbors in memory.
std::optional<InplaceInput> MakeInplaceInput(CompiledComputationBuilder& builder, Instruction instruction,
                                             const MemoryOrder& order, int64_t min_run);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LOOPS_INPLACE_INPUT_H_

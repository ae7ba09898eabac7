// SPDX-License-Identifier: Apache-2.0
// Operations computed in another element type, between conversions.
#ifndef HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_COMPUTE_TYPE_H_
#define HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_COMPUTE_TYPE_H_

#include <vector>

#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {

// Returns true if an elementwise operation selects, moves or converts elements, so that its type does not matter.
bool KeepsElements(Opcode opcode);

// Which element types to replace, and by which.
struct ComputeType {
  std::vector<ElementType> narrow;
  ElementType wide;

  bool IsNarrow(ElementType type) const;
};

// Computes `i` in the wide type: operands of a narrow type are converted, results are converted back, also the elements
// of a tuple. Returns false, and changes nothing, if there are no such arrays.
//
// Computations that `i` applies to elements get operands of the wide type too, and round each result to the narrow one,
// so that the values are those of before. Those of all-reduce and reduce-scatter, which name an operation, become that
// operation in the wide type: sums are rounded once.
bool ComputeIn(PatternRewriter& rewriter, Instruction i, const ComputeType& type);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_COMPUTE_TYPE_H_

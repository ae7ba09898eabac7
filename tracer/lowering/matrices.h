// SPDX-License-Identifier: Apache-2.0
// Lowerings of matrices in the last two dimensions, the others being a batch.
#ifndef HLOKIT_TRACER_LOWERING_MATRICES_H_
#define HLOKIT_TRACER_LOWERING_MATRICES_H_

#include "tracer/lowering/xla_op.h"

namespace hlokit::lazy {

// Broadcasts both to the same leading dimensions.
void AlignBatch(XlaOp* a, XlaOp* b);
XlaOp SwapLastDims(XlaOp x);
// Returns the product of matrices with the same leading dimensions.
XlaOp BatchedProduct(XlaOp a, XlaOp b);
// Solves op(a) x = b, or x op(a) = b unless `left`, for triangular a.
struct TriangularOptions {
  bool left = true, lower = true, unit = false, transpose = false;
};
XlaOp SolveTriangularSystem(XlaOp a, XlaOp b, const TriangularOptions& options);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_LOWERING_MATRICES_H_

// SPDX-License-Identifier: Apache-2.0
// C += A B for matrices given as sources of packed panels: dot packs strided arrays, convolution packs patches of its
// input.
//
// Each element of C is a sum over k in ascending order, with one rounding for each product and each sum. More than 128
// products are summed in runs of 64, each from 0 and then added to C, which is more accurate than one long sum. Order
// and rounding are those of the plain loops, independent of tiles, vectors and threads.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_CONTRACTIONS_MATRIX_PRODUCT_H_
#define HLOKIT_INTERP_EXACT_KERNELS_CONTRACTIONS_MATRIX_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "interp/exact/machine/run_context.h"
#include "interp/exact/program/element_op.h"
#include "ir/types/element_type.h"

namespace hlokit::interp {

// Returns the accumulation type of this result type: f32, f64, c64, c128, u32 or u64.
ElementType AccumulatorType(ElementType result);

// Rows (of A) or columns (of B) as panels of `width` lines; the elements of all lines for one k are contiguous.
class PanelSource {
 public:
  virtual ~PanelSource() = default;
  // Writes lines [first, first + count) and k in [k_begin, k_begin + k_count) of matrix `batch` to `to`, as accumulator
  // type: to[((line / width) * k_count + k) * width + line % width]. Lines beyond `count` in the last panel are zero.
  virtual void Pack(int64_t batch, int64_t first, int64_t count, int64_t k_begin, int64_t k_count, int64_t width,
                    std::byte* to) const = 0;
};

// Location of results: C of each batch is a dense row-major m x n matrix, at `batch * m * n` elements from the start.
struct ProductShape {
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

// Computes out = A B, converted to `result_type`.
void MultiplyMatrices(const ProductShape& shape, const PanelSource& a, const PanelSource& b, ElementType result_type,
                      std::byte* out, RunContext& context);

// Conversion of operands to the accumulation type: to the result type first (like XLA's evaluator).
class OperandConversion {
 public:
  OperandConversion() = default;
  // Returns false if there is no such conversion.
  bool Init(ElementType operand, ElementType result);
  // Converts n contiguous elements. `n` is at most ElementOp::kBlock.
  void Run(std::byte* to, const std::byte* from, int64_t n) const;
  // Returns true if the bytes do not change.
  bool identity() const { return count_ == 0; }
  int64_t from_bytes() const { return from_bytes_; }
  int64_t to_bytes() const { return to_bytes_; }

 private:
  ElementOp ops_[2];
  int count_ = 0;
  int64_t from_bytes_ = 0;
  int64_t to_bytes_ = 0;
};

// Gathers elements base + offsets[i] (in elements) and converts them; `to` is contiguous.
void GatherConvert(const OperandConversion& conversion, const std::byte* base, const int64_t* offsets, int64_t n,
                   std::byte* to);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_CONTRACTIONS_MATRIX_PRODUCT_H_

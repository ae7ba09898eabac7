// SPDX-License-Identifier: Apache-2.0
// How products are divided into pieces, and the kernels for those that are not the library's.
#ifndef HLOKIT_INTERP_COMPILED_PRODUCTS_PRODUCT_PIECES_H_
#define HLOKIT_INTERP_COMPILED_PRODUCTS_PRODUCT_PIECES_H_

#include <cstdint>

#include "interp/compiled/products/product_thunk.h"
#include "interp/compiled/programs/pieces.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/program/loop_nest.h"
#include "interp/exact/program/program.h"

namespace hlokit::interp::compiled {

// The arrays of the products of a batch. Strides are in bytes.
struct BatchParams : ThunkParams {
  LoopNest batch;  // operands: left, right, result; in elements
  int64_t batches = 1;
  int64_t bytes[3] = {};  // of elements
  int64_t lhs_row = 0;
  int64_t lhs_column = 0;
  int64_t rhs_column = 0;
  int64_t result_row = 0;
  int64_t result_column = 0;
  double cost = 1;  // of a piece, in ns

  // Sets all but the cost.
  void SetArrays(const MatrixProduct& product);
  // Adds the starts of a product's arrays, in bytes.
  void AddOffsets(int64_t index, int64_t* offsets) const {
    for (int d = batch.rank(); d-- > 0;) {
      for (int a = 0; a < 3; ++a) offsets[a] += index % batch.size(d) * batch.stride(d, a) * bytes[a];
      index /= batch.size(d);
    }
  }
};

// Pieces of the products of a batch.
struct PiecesParams : BatchParams {
  Pieces rows;
  Pieces columns;

  int64_t count() const { return batches * rows.count * columns.count; }
  // Calls run(row, column, offsets of left, right and result) for pieces [begin, end). Pieces that read the same
  // columns of the right operand follow each other.
  template <typename Run>
  void ForEach(int64_t begin, int64_t end, RunContext& context, Run run) const {
    const int64_t each = rows.count * columns.count;
    for (int64_t item = begin; item < end; ++item) {
      if (context.ShouldStop()) return;
      const int64_t column = item % each / rows.count;
      const int64_t row = item % rows.count;
      int64_t offsets[3] = {};
      AddOffsets(item / each, offsets);
      offsets[0] += row * rows.size * lhs_row;
      offsets[1] += column * columns.size * rhs_column;
      offsets[2] += row * rows.size * result_row + column * columns.size * result_column;
      run(row, column, offsets);
    }
  }
};

// Returns the rows of a piece but the last, at most kRowsOfPiece.
inline constexpr int64_t kRowsOfPiece = 256;
int64_t RowsOfPiece(const MatrixProduct& product);
// Returns the columns of a piece but the last.
int64_t ColumnsOfPiece(const MatrixProduct& product);
inline int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Returns true for products with few rows on the left.
bool IsSkinny(const MatrixProduct& product);
// Requires IsSkinny. No parameters if sums in parts take too much memory.
ProductKernel MakeSkinnyProduct(const MatrixProduct& product);
// For matrices that stay in the cache; no parameters for others.
ProductKernel MakeTileProduct(const MatrixProduct& product);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_PRODUCTS_PRODUCT_PIECES_H_

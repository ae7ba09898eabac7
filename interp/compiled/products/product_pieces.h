// SPDX-License-Identifier: Apache-2.0
// How products are divided into pieces, and the kernels for those that are not the library's.
#ifndef HLOKIT_INTERP_COMPILED_PRODUCTS_PRODUCT_PIECES_H_
#define HLOKIT_INTERP_COMPILED_PRODUCTS_PRODUCT_PIECES_H_

#include <cstdint>

#include "interp/compiled/products/product_step.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/program/loop_nest.h"
#include "interp/exact/program/program.h"

namespace hlokit::interp::compiled {

struct Pieces {
  int64_t size = 1;  // of each but the last
  int64_t count = 1;
  int64_t last = 1;

  Pieces() = default;
  Pieces(int64_t total, int64_t piece) : size(piece), count((total + piece - 1) / piece) {
    last = total - (count - 1) * size;
  }
  int64_t SizeOf(int64_t i) const { return i + 1 == count ? last : size; }
};

// Pieces of the products of a batch. Strides are in bytes.
struct PiecesPlan : ThunkParams {
  Pieces rows;
  Pieces columns;
  LoopNest batch;  // operands: left, right, result; in elements
  int64_t batches = 1;
  int64_t bytes[3] = {};  // of elements
  int64_t lhs_row = 0;
  int64_t rhs_column = 0;
  int64_t result_row = 0;
  int64_t result_column = 0;
  double cost = 1;  // of a piece, in ns

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
      int64_t rest = item / each;
      for (int d = batch.rank(); d-- > 0;) {
        for (int a = 0; a < 3; ++a) offsets[a] += rest % batch.size(d) * batch.stride(d, a) * bytes[a];
        rest /= batch.size(d);
      }
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
// Sets what does not depend on the division.
void SetPieces(const MatrixProduct& product, PiecesPlan* plan);

inline int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Returns true for products with few rows on the left.
bool IsSkinny(const MatrixProduct& product);
// Requires IsSkinny.
ProductKernel MakeSkinnyProduct(const MatrixProduct& product);
// For matrices that stay in the cache; no parameters for others.
ProductKernel MakeTileProduct(const MatrixProduct& product);

void FailProduct(RunContext& context);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_PRODUCTS_PRODUCT_PIECES_H_

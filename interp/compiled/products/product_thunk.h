// SPDX-License-Identifier: Apache-2.0
// Products of matrices, divided into pieces of rows or columns.
#ifndef HLOKIT_INTERP_COMPILED_PRODUCTS_PRODUCT_THUNK_H_
#define HLOKIT_INTERP_COMPILED_PRODUCTS_PRODUCT_THUNK_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "interp/compiled/code/library_interface.h"
#include "interp/compiled/products/library_thunk.h"
#include "interp/compiled/programs/prepare_result.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/program/loop_nest.h"
#include "interp/exact/program/program.h"

namespace hlokit::interp::compiled {

// result[m, n] = lhs[m, k] * rhs[k, n] for each index of a batch, the result dense.
struct MatrixProduct {
  // Strides of rows and columns in elements. One of them is 1.
  struct Strides {
    int64_t row = 0;
    int64_t column = 0;
  };
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  Strides lhs;
  Strides rhs;
  LibraryType lhs_type = LibraryType::kF32;
  LibraryType rhs_type = LibraryType::kF32;
  LibraryType result_type = LibraryType::kF32;
  // Operands of the batch: left, right, result; a scalar nest if there is none.
  LoopNest batch;
  int64_t batches = 1;
  // Packing the right operand costs nothing: it is done once for many runs.
  bool reused = false;
  // The most scratch memory that the threads may share, in bytes.
  int64_t max_shared_scratch = std::numeric_limits<int64_t>::max();
};

// A kernel with parameters for one product. Operands: left and right, the latter packed in these parts if there are
// any; one result.
struct ProductKernel {
  Kernel kernel = nullptr;
  std::unique_ptr<ThunkParams> params;  // null: the library has no such product
  std::vector<PackedWeights::Part> packed;
  int64_t thread_scratch = 0;
  int64_t shared_scratch = 0;  // taken in the run, at most max_shared_scratch
};

// Prepares a dot.
PrepareResult PrepareProduct(CompiledComputationBuilder& builder, PackedWeights* packed);

ProductKernel MakeProduct(const MatrixProduct& product);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_PRODUCTS_PRODUCT_THUNK_H_

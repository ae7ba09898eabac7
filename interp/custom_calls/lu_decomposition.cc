// SPDX-License-Identifier: Apache-2.0
#include "interp/custom_calls/lu_decomposition.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

#include "interp/custom_calls/real_values.h"

namespace hlokit::interp {
namespace {

// Factors a matrix of m rows and n columns in place: below the diagonal the multipliers, in which each row was
// exchanged with the one of the largest magnitude in its column, the first of those. `pivots`: the rows of the
// exchanges. `permutation`: the row of the matrix that each row of the product comes from. Stops when the run does.
template <typename T>
void Factor(T* a, int64_t m, int64_t n, int32_t* pivots, int32_t* permutation, const MatrixCallRun& run) {
  std::iota(permutation, permutation + m, 0);
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    if (run.should_stop()) return;
    int64_t pivot = k;
    double largest = std::abs(a[k * n + k]);
    for (int64_t r = k + 1; r < m; ++r) {
      const double magnitude = std::abs(a[r * n + k]);
      if (magnitude > largest) {
        largest = magnitude;
        pivot = r;
      }
    }
    pivots[k] = static_cast<int32_t>(pivot);
    if (pivot != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
      std::swap(permutation[k], permutation[pivot]);
    }
    if (largest == 0) continue;  // a column of zeros has no multipliers
    for (int64_t r = k + 1; r < m; ++r) {
      const T multiplier = a[r * n + k] = a[r * n + k] / a[k * n + k];
      for (int64_t c = k + 1; c < n; ++c) a[r * n + c] -= multiplier * a[k * n + c];
    }
  }
}

absl::Status Incompatible() {
  return absl::InvalidArgumentError(
      "operands and results are incompatible with the custom-call target \"LuDecomposition\", which takes "
      "matrices of floats or complex numbers and returns (matrices, s32 pivots, s32 permutations)");
}

// Returns true for a shape of `batches` dimensions like those of `matrices`, and one of `size`.
bool IsVectorOf(Shape shape, Shape matrices, int64_t size) {
  if (!shape.IsArray() || shape.element_type() != ElementType::kS32 || shape.rank() != matrices.rank() - 1)
    return false;
  for (int64_t d = 0; d + 1 < shape.rank(); ++d) {
    if (shape.dim(d) != matrices.dim(d)) return false;
  }
  return shape.dim(shape.rank() - 1) == size;
}

}  // namespace

absl::Status LuDecomposition(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                             std::string_view, const MatrixCallRun& run) {
  if (operands.size() != 1 || results.size() != 3) return Incompatible();
  const Shape shape = operands[0].shape;
  const bool is_matrix = shape.IsArray() && shape.rank() >= 2 && shape.dims() == results[0].shape.dims() &&
                         shape.element_type() == results[0].shape.element_type() &&
                         (IsFloat(shape.element_type()) || IsComplex(shape.element_type()));
  if (!is_matrix) return Incompatible();
  const int64_t m = shape.dim(shape.rank() - 2), n = shape.dim(shape.rank() - 1), small = std::min(m, n);
  if (!IsVectorOf(results[1].shape, shape, small) || !IsVectorOf(results[2].shape, shape, m)) return Incompatible();
  const bool is_complex = IsComplex(shape.element_type());
  const ElementType part = !is_complex                                 ? shape.element_type()
                           : shape.element_type() == ElementType::kC64 ? ElementType::kF32
                                                                       : ElementType::kF64;
  const int64_t parts = (is_complex ? 2 : 1) * m * n, bytes = parts * BytesOf(part);
  double* const values = run.allocate(parts);
  if (values == nullptr || m * n == 0) {
    // Matrices without columns keep their rows.
    const int64_t batches = m == 0 ? 0 : results[2].shape.element_count() / m;
    for (int64_t b = 0; values != nullptr && b < batches; ++b) {
      auto* const permutation = reinterpret_cast<int32_t*>(results[2].data) + b * m;
      std::iota(permutation, permutation + m, 0);
    }
    return absl::OkStatus();
  }
  const int64_t batches = shape.element_count() / (m * n);
  for (int64_t b = 0; b < batches; ++b) {
    if (run.should_stop()) return absl::OkStatus();
    auto* const pivots = reinterpret_cast<int32_t*>(results[1].data) + b * small;
    auto* const permutation = reinterpret_cast<int32_t*>(results[2].data) + b * m;
    ReadReals(part, operands[0].data + b * bytes, 1, parts, values);
    if (is_complex) {
      Factor(reinterpret_cast<std::complex<double>*>(values), m, n, pivots, permutation, run);
    } else {
      Factor(values, m, n, pivots, permutation, run);
    }
    WriteReals(part, values, parts, results[0].data + b * bytes, 1);
  }
  return absl::OkStatus();
}

}  // namespace hlokit::interp

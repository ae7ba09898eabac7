// SPDX-License-Identifier: Apache-2.0
#include "interp/custom_calls/matrix_calls.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "interp/custom_calls/lu_decomposition.h"
#include "interp/custom_calls/real_values.h"
#include "ir/core/saturating.h"
#include "ir/text/eigh_config.h"

namespace hlokit::interp {
namespace {

absl::Status Incompatible(std::string_view target) {
  return absl::InvalidArgumentError(
      "operands and results are incompatible with the custom-call target \"" + std::string(target) +
      (target == "Eigh" ? "\", which takes real matrices" : "\", which takes real or complex matrices"));
}

bool IsMatrix(Shape x) { return x.IsArray() && x.rank() >= 2 && IsFloat(x.element_type()); }

// Returns the number of elements before the last `rank` dimensions.
int64_t Batches(Shape x, int64_t rank) {
  int64_t count = 1;
  for (int64_t d = 0; d + rank < x.rank(); ++d) count *= x.dim(d);
  return count;
}

// One matrix or vector of a batch, or the next `size` numbers of it, in double.
void ReadBatch(const CustomCallOperand& from, int64_t batch, int64_t size, double* values) {
  const ElementType type = from.shape.element_type();
  ReadReals(type, from.data + batch * size * BytesOf(type), 1, size, values);
}
void ReadBatch(const CustomCallOperand& from, int64_t batch, int64_t size, std::complex<double>* values) {
  const ElementType type = from.shape.element_type();
  ReadComplex(type, from.data + batch * size * BytesOf(type), 1, size, values);
}
void WriteBatch(const double* values, int64_t batch, int64_t size, const CustomCallResult& to) {
  const ElementType type = to.shape.element_type();
  WriteReals(type, values, size, to.data + batch * size * BytesOf(type), 1);
}
void WriteBatch(const std::complex<double>* values, int64_t batch, int64_t size, const CustomCallResult& to) {
  const ElementType type = to.shape.element_type();
  WriteComplex(type, values, size, to.data + batch * size * BytesOf(type), 1);
}

// ---- QR decomposition ----

bool IsComplexMatrix(Shape x) { return x.IsArray() && x.rank() >= 2 && IsComplex(x.element_type()); }

// Returns true if all are of real types, or all of complex ones.
bool OfOneKind(bool complex, std::initializer_list<Shape> shapes) {
  return std::all_of(shapes.begin(), shapes.end(), [&](Shape x) {
    return x.IsArray() && x.rank() >= 1 && (complex ? IsComplex(x.element_type()) : IsFloat(x.element_type()));
  });
}

double Conjugate(double x) { return x; }
std::complex<double> Conjugate(std::complex<double> x) { return std::conj(x); }
double SquareOf(double x) { return x * x; }
double SquareOf(std::complex<double> x) { return std::norm(x); }

// Subtracts tau v (vH a) from the columns of `a`, of n each row, from `first` on; v is zero before element j.
template <typename T>
void Reflect(T* a, int64_t rows, int64_t n, int64_t j, int64_t first, const T* v, T tau) {
  for (int64_t c = first; c < n; ++c) {
    T product = 0;
    for (int64_t r = j; r < rows; ++r) product += Conjugate(v[r]) * a[r * n + c];
    for (int64_t r = j; r < rows; ++r) a[r * n + c] -= tau * (v[r] * product);
  }
}

// The sizes of a batch of m x n matrices with `count` reflections each.
struct QrSizes {
  int64_t m, n, count, batches;
};

// `a` holds m * n numbers, then the factors of reflections and a vector of m.
template <typename T>
void DecomposeQr(const CustomCallOperand& operand, absl::Span<const CustomCallResult> results, QrSizes sizes, T* a,
                 const MatrixCallRun& run) {
  const auto [m, n, count, batches] = sizes;
  T *const taus = a + m * n, *const v = taus + count;
  const auto at = [&](int64_t r, int64_t c) -> T& { return a[r * n + c]; };
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (run.should_stop()) return;
    ReadBatch(operand, batch, m * n, a);
    std::fill_n(taus, count, T(0));
    for (int64_t j = 0; j < count; ++j) {
      if (run.should_stop()) return;
      double sigma = 0;
      for (int64_t r = j + 1; r < m; ++r) sigma += SquareOf(at(r, j));
      const T alpha = at(j, j);
      if (sigma == 0 && std::imag(alpha) == 0) continue;  // nothing to eliminate: tau is zero
      const double norm = std::sqrt(SquareOf(alpha) + sigma), beta = std::real(alpha) < 0 ? norm : -norm;
      v[j] = 1;
      for (int64_t r = j + 1; r < m; ++r) v[r] = at(r, j) / (alpha - beta);
      taus[j] = (beta - alpha) / beta;
      Reflect(a, m, n, j, j + 1, v, Conjugate(taus[j]));
      at(j, j) = beta;
      for (int64_t r = j + 1; r < m; ++r) at(r, j) = v[r];
    }
    WriteBatch(a, batch, m * n, results[0]);
    WriteBatch(taus, batch, count, results[1]);
  }
}

absl::Status Qr(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                std::string_view, const MatrixCallRun& run) {
  if (operands.size() != 1 || results.size() != 2) return Incompatible("Qr");
  const Shape shape = operands[0].shape, taus_shape = results[1].shape;
  const bool complex = IsComplexMatrix(shape);
  const bool fits = (complex || IsMatrix(shape)) && OfOneKind(complex, {results[0].shape, taus_shape}) &&
                    results[0].shape.dims() == shape.dims();
  if (!fits) return Incompatible("Qr");
  const int64_t m = shape.dim(shape.rank() - 2), n = shape.dim(shape.rank() - 1);
  const int64_t count = taus_shape.dim(taus_shape.rank() - 1), batches = Batches(shape, 2);
  if (count > std::min(m, n) || Batches(taus_shape, 1) != batches) return Incompatible("Qr");
  double* const memory = run.allocate((complex ? 2 : 1) * (m * n + count + m));
  if (memory == nullptr) return absl::OkStatus();
  if (complex) {
    DecomposeQr(operands[0], results, {m, n, count, batches}, reinterpret_cast<std::complex<double>*>(memory), run);
  } else {
    DecomposeQr(operands[0], results, {m, n, count, batches}, memory, run);
  }
  return absl::OkStatus();
}

// `a` holds 2 * m * n numbers, then the factors of reflections and a vector of m.
template <typename T>
void MultiplyReflectors(absl::Span<const CustomCallOperand> operands, const CustomCallResult& result, QrSizes sizes,
                        T* a, const MatrixCallRun& run) {
  const auto [m, n, count, batches] = sizes;
  T *const q = a + m * n, *const taus = q + m * n, *const v = taus + count;
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (run.should_stop()) return;
    ReadBatch(operands[0], batch, m * n, a);
    ReadBatch(operands[1], batch, count, taus);
    std::fill_n(q, m * n, T(0));
    for (int64_t k = 0; k < std::min(m, n); ++k) q[k * n + k] = 1;
    for (int64_t j = count; j-- > 0;) {
      if (run.should_stop()) return;
      v[j] = 1;
      for (int64_t r = j + 1; r < m; ++r) v[r] = a[r * n + j];
      Reflect(q, m, n, j, 0, v, taus[j]);
    }
    WriteBatch(q, batch, m * n, result);
  }
}

absl::Status HouseholderProduct(absl::Span<const CustomCallOperand> operands,
                                absl::Span<const CustomCallResult> results, std::string_view,
                                const MatrixCallRun& run) {
  constexpr std::string_view kTarget = "ProductOfElementaryHouseholderReflectors";
  if (operands.size() != 2 || results.size() != 1) return Incompatible(kTarget);
  const Shape shape = operands[0].shape, taus_shape = operands[1].shape;
  const bool complex = IsComplexMatrix(shape);
  const bool fits = (complex || IsMatrix(shape)) && OfOneKind(complex, {taus_shape, results[0].shape}) &&
                    results[0].shape.dims() == shape.dims();
  if (!fits) return Incompatible(kTarget);
  const int64_t m = shape.dim(shape.rank() - 2), n = shape.dim(shape.rank() - 1);
  const int64_t count = taus_shape.dim(taus_shape.rank() - 1), batches = Batches(shape, 2);
  if (count > std::min(m, n) || Batches(taus_shape, 1) != batches) return Incompatible(kTarget);
  double* const memory = run.allocate((complex ? 2 : 1) * (2 * m * n + count + m));
  if (memory == nullptr) return absl::OkStatus();
  if (complex) {
    MultiplyReflectors(operands, results[0], {m, n, count, batches}, reinterpret_cast<std::complex<double>*>(memory),
                       run);
  } else {
    MultiplyReflectors(operands, results[0], {m, n, count, batches}, memory, run);
  }
  return absl::OkStatus();
}

// ---- eigendecomposition ----

// A symmetric matrix `w` and its eigenvectors as rows `v`, of 2 * half rows each. Row k of the upper half and row k of
// the lower one are a pair: they are rotated together.
class JacobiRotations {
 public:
  // `spare`: a third matrix of any value.
  JacobiRotations(double* w, double* v, double* spare, int64_t half)
      : half_(half), n_(2 * half), w_(w), v_(v), spare_(spare) {}

  double w(int64_t r, int64_t c) const { return w_[Index(r, c)]; }
  double v(int64_t r, int64_t c) const { return v_[Index(r, c)]; }

  bool IsUnfinished(double tolerance) const {
    double total = 0, off_diagonal = 0;
    for (int64_t r = 0; r < n_; ++r) {
      for (int64_t c = 0; c < n_; ++c) {
        const double square = w(r, c) * w(r, c);
        total += square;
        if (r != c) off_diagonal += square;
      }
    }
    return total * (tolerance * tolerance) < off_diagonal;
  }

  void Round() {
    std::vector<double> cosines, sines, upper, lower;
    for (int64_t k = 0; k < half_; ++k) {
      const double tl = w(k, k), tr = w(k, half_ + k), br = w(half_ + k, half_ + k);
      const double tau = (br - tl) / (2 * tr), root = std::sqrt(1 + tau * tau);
      constexpr double kNegligible = 0.1f * std::numeric_limits<float>::epsilon();
      const bool is_tiny = std::abs(tr) <= kNegligible * std::abs(tl) && std::abs(tr) <= kNegligible * std::abs(br);
      const double t = is_tiny ? 0 : 1 / (tau + (tau >= 0 ? root : -root));
      cosines.push_back(1 / std::sqrt(1 + t * t));
      sines.push_back(t * cosines.back());
      upper.push_back(tl - t * tr);
      lower.push_back(br + t * tr);
    }
    for (int64_t k = 0; k < half_; ++k) {
      const double c = cosines[static_cast<size_t>(k)], s = sines[static_cast<size_t>(k)];
      for (int64_t x = 0; x < n_; ++x) {
        Rotate(w_[Index(k, x)], w_[Index(half_ + k, x)], c, s);
        Rotate(v_[Index(k, x)], v_[Index(half_ + k, x)], c, s);
      }
    }
    for (int64_t k = 0; k < half_; ++k) {
      const double c = cosines[static_cast<size_t>(k)], s = sines[static_cast<size_t>(k)];
      for (int64_t x = 0; x < n_; ++x) Rotate(w_[Index(x, k)], w_[Index(x, half_ + k)], c, s);
    }
    for (int64_t k = 0; k < half_; ++k) {
      w_[Index(k, k)] = upper[static_cast<size_t>(k)];
      w_[Index(half_ + k, half_ + k)] = lower[static_cast<size_t>(k)];
      w_[Index(k, half_ + k)] = w_[Index(half_ + k, k)] = 0;
    }
    Exchange();
  }

 private:
  int64_t Index(int64_t r, int64_t c) const { return r * n_ + c; }
  static void Rotate(double& x, double& y, double c, double s) {
    const double first = x * c - y * s;
    y = x * s + y * c;
    x = first;
  }
  // Makes the pairs of the next round, as a round-robin tournament does: all players but the first change places.
  void Exchange() {
    if (half_ == 1) return;
    std::vector<int64_t> from(static_cast<size_t>(n_));
    from[0] = 0;
    from[1] = half_;
    std::iota(from.begin() + 2, from.begin() + half_, 1);
    std::iota(from.begin() + half_, from.end() - 1, half_ + 1);
    from.back() = half_ - 1;
    for (int64_t r = 0; r < n_; ++r) {
      const int64_t row = from[static_cast<size_t>(r)];
      for (int64_t c = 0; c < n_; ++c) spare_[Index(r, c)] = w_[Index(row, from[static_cast<size_t>(c)])];
    }
    std::copy_n(spare_, n_ * n_, w_);
    for (int64_t r = 0; r < n_; ++r) std::copy_n(v_ + Index(from[static_cast<size_t>(r)], 0), n_, spare_ + Index(r, 0));
    std::copy_n(spare_, n_ * n_, v_);
  }

  const int64_t half_, n_;
  double *const w_, *const v_, *const spare_;
};

// Matrices of one element: they are the eigenvalues.
void EighOfScalars(const CustomCallOperand& operand, absl::Span<const CustomCallResult> results, int64_t count,
                   const MatrixCallRun& run) {
  constexpr int64_t kBlock = 1024;
  double values[kBlock], ones[kBlock];
  std::fill_n(ones, kBlock, 1);
  const auto copy = [&](int64_t index, int64_t size) {
    ReadBatch(operand, index, size, values);
    WriteBatch(ones, index, size, results[0]);
    WriteBatch(values, index, size, results[1]);
  };
  const int64_t blocks = count / kBlock;
  for (int64_t k = 0; k < blocks; ++k) {
    if (run.should_stop()) return;
    copy(k, kBlock);
  }
  for (int64_t k = blocks * kBlock; k < count; ++k) copy(k, 1);
}

absl::Status Eigh(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                  std::string_view config, const MatrixCallRun& run) {
  const bool fits = operands.size() == 1 && results.size() == 2 && IsMatrix(operands[0].shape) &&
                    results[0].shape.dims() == operands[0].shape.dims() && results[1].shape.rank() >= 1 &&
                    IsFloat(results[0].shape.element_type()) && IsFloat(results[1].shape.element_type());
  if (!fits) return Incompatible("Eigh");
  const Shape shape = operands[0].shape;
  const int64_t n = shape.dim(shape.rank() - 1), batches = Batches(shape, 2);
  if (shape.dim(shape.rank() - 2) != n || results[1].shape.element_count() != batches * n) return Incompatible("Eigh");
  const std::optional<EighConfig> options = ParseEighConfig(config);
  if (!options) {
    return absl::InvalidArgumentError("the backend_config of \"Eigh\" must be LOWER,SORT,SWEEPS,TOLERANCE");
  }
  if (n == 0) return absl::OkStatus();
  if (n == 1) {
    EighOfScalars(operands[0], results, batches, run);
    return absl::OkStatus();
  }
  // All matrices of a batch are swept until the last one is done: each has its state, and the scale of its elements.
  const int64_t half = (n + 1) / 2, padded = 2 * half, size = padded * padded, state_size = 2 * size + 1;
  double* const spare = run.allocate(SaturatingAdd(SaturatingMultiply(batches, state_size), size));
  if (spare == nullptr) return absl::OkStatus();
  double* const states = spare + size;
  const auto matrix_of = [&](int64_t batch) {
    double* const w = states + batch * state_size;
    return JacobiRotations(w, w + size, spare, half);
  };
  const auto scale_of = [&](int64_t batch) -> double& { return states[batch * state_size + 2 * size]; };
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (run.should_stop()) return absl::OkStatus();
    double* const a = spare;
    ReadBatch(operands[0], batch, n * n, a);
    const auto element = [&](int64_t r, int64_t c) { return a[(r >= c) == options->lower ? r * n + c : c * n + r]; };
    double largest = 0;
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < n; ++c) {
        const double magnitude = std::abs(element(r, c));
        if (magnitude > largest || std::isnan(magnitude)) largest = magnitude;  // a NaN remains
      }
    }
    const double scale = scale_of(batch) = largest == 0 ? 1 : largest;
    double *const w = states + batch * state_size, *const v = w + size;
    std::fill_n(w, 2 * size, 0);
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < n; ++c) w[r * padded + c] = element(r, c) / scale;
    }
    for (int64_t k = 0; k < padded; ++k) v[k * padded + k] = 1;
  }
  // Returns true while a matrix is not done, and the run goes on.
  const auto is_unfinished = [&] {
    for (int64_t batch = 0; batch < batches && !run.should_stop(); ++batch) {
      if (matrix_of(batch).IsUnfinished(options->tolerance)) return true;
    }
    return false;
  };
  for (int64_t sweep = 0; sweep < options->sweeps && is_unfinished(); ++sweep) {
    for (int64_t batch = 0; batch < batches; ++batch) {
      JacobiRotations matrix = matrix_of(batch);
      for (int64_t round = 0; round + 1 < padded; ++round) {
        if (run.should_stop()) return absl::OkStatus();
        matrix.Round();
      }
    }
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::vector<double> values(static_cast<size_t>(n));
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (run.should_stop()) return absl::OkStatus();
    const JacobiRotations matrix = matrix_of(batch);
    std::iota(order.begin(), order.end(), 0);
    if (options->sort) {
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t x, int64_t y) { return std::strong_order(matrix.w(x, x), matrix.w(y, y)) < 0; });
    }
    double* const vectors = spare;
    for (int64_t c = 0; c < n; ++c) {
      const int64_t from = order[static_cast<size_t>(c)];
      values[static_cast<size_t>(c)] = matrix.w(from, from) * scale_of(batch);
      for (int64_t r = 0; r < n; ++r) vectors[r * n + c] = matrix.v(from, r);
    }
    WriteBatch(vectors, batch, n * n, results[0]);
    WriteBatch(values.data(), batch, n, results[1]);
  }
  return absl::OkStatus();
}

}  // namespace

namespace {

constexpr std::string_view kTargets[] = {"Eigh", "LuDecomposition", "ProductOfElementaryHouseholderReflectors", "Qr"};
constexpr MatrixCall kFunctions[] = {Eigh, LuDecomposition, HouseholderProduct, Qr};
static_assert(std::size(kTargets) == std::size(kFunctions));

}  // namespace

MatrixCall FindMatrixCall(std::string_view target) {
  const auto* const found = std::find(std::begin(kTargets), std::end(kTargets), target);
  return found == std::end(kTargets) ? nullptr : kFunctions[found - kTargets];
}

absl::Span<const std::string_view> MatrixCallTargets() { return kTargets; }

}  // namespace hlokit::interp

// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/matrix_calls.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interp/exact/kernels/real_values.h"
#include "passes/expanders/eigh_config.h"

namespace hlokit::interp {
namespace {

using ShouldStop = std::function<bool()>;

absl::Status Incompatible(std::string_view target) {
  return absl::InvalidArgumentError("operands and results are incompatible with the custom-call target \"" +
                                    std::string(target) + "\", which takes real matrices");
}

bool IsMatrix(Shape x) { return x.IsArray() && x.rank() >= 2 && IsFloat(x.element_type()); }

// Returns the number of elements before the last `rank` dimensions.
int64_t Batches(Shape x, int64_t rank) {
  int64_t count = 1;
  for (int64_t d = 0; d + rank < x.rank(); ++d) count *= x.dim(d);
  return count;
}

// One matrix or vector of a batch, in double.
std::vector<double> ReadBatch(const CustomCallOperand& from, int64_t batch, int64_t size) {
  std::vector<double> values(static_cast<size_t>(size));
  const ElementType type = from.shape.element_type();
  ReadReals(type, from.data + batch * size * BytesOf(type), 1, size, values.data());
  return values;
}
void WriteBatch(const std::vector<double>& values, int64_t batch, const CustomCallResult& to) {
  const ElementType type = to.shape.element_type();
  const int64_t size = static_cast<int64_t>(values.size());
  WriteReals(type, values.data(), size, to.data + batch * size * BytesOf(type), 1);
}

// Subtracts tau v (vT a) from the columns of `a`, of n each row, from `first` on; v is zero before element j.
void Reflect(std::vector<double>& a, int64_t rows, int64_t n, int64_t j, int64_t first, const std::vector<double>& v,
             double tau) {
  for (int64_t c = first; c < n; ++c) {
    double product = 0;
    for (int64_t r = j; r < rows; ++r) product += v[static_cast<size_t>(r)] * a[static_cast<size_t>(r * n + c)];
    for (int64_t r = j; r < rows; ++r) {
      a[static_cast<size_t>(r * n + c)] -= tau * (v[static_cast<size_t>(r)] * product);
    }
  }
}

absl::Status Qr(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                std::string_view, const ShouldStop& should_stop) {
  const bool fits = operands.size() == 1 && results.size() == 2 && IsMatrix(operands[0].shape) &&
                    results[0].shape.dims() == operands[0].shape.dims() && results[1].shape.rank() >= 1 &&
                    IsFloat(results[0].shape.element_type()) && IsFloat(results[1].shape.element_type());
  if (!fits) return Incompatible("Qr");
  const Shape shape = operands[0].shape, taus_shape = results[1].shape;
  const int64_t m = shape.dim(shape.rank() - 2), n = shape.dim(shape.rank() - 1);
  const int64_t count = taus_shape.dim(taus_shape.rank() - 1), batches = Batches(shape, 2);
  if (count > std::min(m, n) || Batches(taus_shape, 1) != batches) return Incompatible("Qr");
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (should_stop()) return absl::OkStatus();
    std::vector<double> a = ReadBatch(operands[0], batch, m * n), taus(static_cast<size_t>(count));
    const auto at = [&](int64_t r, int64_t c) -> double& { return a[static_cast<size_t>(r * n + c)]; };
    for (int64_t j = 0; j < count; ++j) {
      if (should_stop()) return absl::OkStatus();
      double sigma = 0;
      for (int64_t r = j + 1; r < m; ++r) sigma += at(r, j) * at(r, j);
      if (sigma == 0) continue;  // nothing to eliminate: tau is zero
      const double alpha = at(j, j), norm = std::sqrt(alpha * alpha + sigma), beta = alpha < 0 ? norm : -norm;
      std::vector<double> v(static_cast<size_t>(m), 0);
      v[static_cast<size_t>(j)] = 1;
      for (int64_t r = j + 1; r < m; ++r) v[static_cast<size_t>(r)] = at(r, j) / (alpha - beta);
      taus[static_cast<size_t>(j)] = (beta - alpha) / beta;
      Reflect(a, m, n, j, j + 1, v, taus[static_cast<size_t>(j)]);
      at(j, j) = beta;
      for (int64_t r = j + 1; r < m; ++r) at(r, j) = v[static_cast<size_t>(r)];
    }
    WriteBatch(a, batch, results[0]);
    WriteBatch(taus, batch, results[1]);
  }
  return absl::OkStatus();
}

absl::Status HouseholderProduct(absl::Span<const CustomCallOperand> operands,
                                absl::Span<const CustomCallResult> results, std::string_view,
                                const ShouldStop& should_stop) {
  constexpr std::string_view kTarget = "ProductOfElementaryHouseholderReflectors";
  const bool fits = operands.size() == 2 && results.size() == 1 && IsMatrix(operands[0].shape) &&
                    results[0].shape.dims() == operands[0].shape.dims() && operands[1].shape.rank() >= 1 &&
                    IsFloat(operands[1].shape.element_type()) && IsFloat(results[0].shape.element_type());
  if (!fits) return Incompatible(kTarget);
  const Shape shape = operands[0].shape, taus_shape = operands[1].shape;
  const int64_t m = shape.dim(shape.rank() - 2), n = shape.dim(shape.rank() - 1);
  const int64_t count = taus_shape.dim(taus_shape.rank() - 1), batches = Batches(shape, 2);
  if (count > std::min(m, n) || Batches(taus_shape, 1) != batches) return Incompatible(kTarget);
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (should_stop()) return absl::OkStatus();
    const std::vector<double> a = ReadBatch(operands[0], batch, m * n), taus = ReadBatch(operands[1], batch, count);
    std::vector<double> q(a.size(), 0);
    for (int64_t k = 0; k < std::min(m, n); ++k) q[static_cast<size_t>(k * n + k)] = 1;
    for (int64_t j = count; j-- > 0;) {
      if (should_stop()) return absl::OkStatus();
      std::vector<double> v(static_cast<size_t>(m), 0);
      v[static_cast<size_t>(j)] = 1;
      for (int64_t r = j + 1; r < m; ++r) v[static_cast<size_t>(r)] = a[static_cast<size_t>(r * n + j)];
      Reflect(q, m, n, j, 0, v, taus[static_cast<size_t>(j)]);
    }
    WriteBatch(q, batch, results[0]);
  }
  return absl::OkStatus();
}

// ---- eigendecomposition ----

// A symmetric matrix and its eigenvectors as rows, of 2 * half rows each. Row k of the upper half and row k of the
// lower one are a pair: they are rotated together.
class JacobiRotations {
 public:
  JacobiRotations(std::vector<double> w, int64_t half) : half_(half), n_(2 * half), w_(std::move(w)), v_(w_.size(), 0) {
    for (int64_t k = 0; k < n_; ++k) v_[Index(k, k)] = 1;
  }

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
      const bool is_tiny = std::abs(tr) <= kNegligible * std::min(std::abs(tl), std::abs(br));
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
    MoveOn();
  }

 private:
  size_t Index(int64_t r, int64_t c) const { return static_cast<size_t>(r * n_ + c); }
  static void Rotate(double& x, double& y, double c, double s) {
    const double first = x * c - y * s;
    y = x * s + y * c;
    x = first;
  }
  // The players of a round-robin tournament, of which the first one stays.
  void MoveOn() {
    if (half_ == 1) return;
    std::vector<int64_t> from(static_cast<size_t>(n_));
    from[0] = 0;
    from[1] = half_;
    std::iota(from.begin() + 2, from.begin() + half_, 1);
    std::iota(from.begin() + half_, from.end() - 1, half_ + 1);
    from.back() = half_ - 1;
    std::vector<double> w(w_.size()), v(v_.size());
    for (int64_t r = 0; r < n_; ++r) {
      const int64_t row = from[static_cast<size_t>(r)];
      for (int64_t c = 0; c < n_; ++c) {
        w[Index(r, c)] = w_[Index(row, from[static_cast<size_t>(c)])];
        v[Index(r, c)] = v_[Index(row, c)];
      }
    }
    w_.swap(w);
    v_.swap(v);
  }

  const int64_t half_, n_;
  std::vector<double> w_, v_;
};

// A matrix of a batch, divided by its largest element and padded to an even number of rows.
class ScaledMatrix {
 public:
  ScaledMatrix(const CustomCallOperand& from, int64_t batch, bool lower)
      : n_(from.shape.dim(from.shape.rank() - 1)), padded_(n_ + n_ % 2) {
    const std::vector<double> a = ReadBatch(from, batch, n_ * n_);
    const auto element = [&](int64_t r, int64_t c) {
      return a[static_cast<size_t>((r >= c) == lower ? r * n_ + c : c * n_ + r)];
    };
    double largest = 0;
    for (int64_t r = 0; r < n_; ++r) {
      for (int64_t c = 0; c < n_; ++c) {
        const double size = std::abs(element(r, c));
        largest = std::isnan(size) || size > largest ? size : largest;
        if (std::isnan(size)) break;
      }
      if (std::isnan(largest)) break;
    }
    scale_ = largest == 0 || n_ == 1 ? 1 : largest;
    std::vector<double> w(static_cast<size_t>(padded_ * padded_), 0);
    for (int64_t r = 0; r < n_; ++r) {
      for (int64_t c = 0; c < n_; ++c) w[static_cast<size_t>(r * padded_ + c)] = element(r, c) / scale_;
    }
    rotations_.emplace(std::move(w), padded_ / 2);
  }

  // Sweeps at least `least` times, and until the matrix is diagonal or at most `most` times. Returns the number of
  // sweeps.
  int64_t Diagonalize(double tolerance, int64_t least, int64_t most, const ShouldStop& should_stop) {
    int64_t sweeps = 0;
    while (n_ > 1 && (sweeps < least || (sweeps < most && rotations_->IsUnfinished(tolerance)))) {
      for (int64_t round = 0; round + 1 < padded_; ++round) {
        if (should_stop()) return sweeps;
        rotations_->Round();
      }
      ++sweeps;
    }
    return sweeps;
  }
  double scale() const { return scale_; }
  double w(int64_t r, int64_t c) const { return rotations_->w(r, c); }
  double v(int64_t r, int64_t c) const { return rotations_->v(r, c); }

 private:
  const int64_t n_, padded_;
  double scale_ = 1;
  std::optional<JacobiRotations> rotations_;
};

absl::Status Eigh(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                  std::string_view config, const ShouldStop& should_stop) {
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
  // All matrices of a batch are swept as often as the last one needs, one at a time.
  int64_t sweeps = 0;
  for (int64_t batch = 0; batches > 1 && batch < batches; ++batch) {
    ScaledMatrix matrix(operands[0], batch, options->lower);
    sweeps = std::max(sweeps, matrix.Diagonalize(options->tolerance, 0, options->sweeps, should_stop));
    if (should_stop()) return absl::OkStatus();
  }
  for (int64_t batch = 0; batch < batches; ++batch) {
    ScaledMatrix matrix(operands[0], batch, options->lower);
    matrix.Diagonalize(options->tolerance, sweeps, batches > 1 ? sweeps : options->sweeps, should_stop);
    if (should_stop()) return absl::OkStatus();
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    if (options->sort) {
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t x, int64_t y) { return std::strong_order(matrix.w(x, x), matrix.w(y, y)) < 0; });
    }
    std::vector<double> vectors(static_cast<size_t>(n * n)), values;
    for (int64_t c = 0; c < n; ++c) {
      const int64_t from = order[static_cast<size_t>(c)];
      values.push_back(matrix.w(from, from) * matrix.scale());
      for (int64_t r = 0; r < n; ++r) vectors[static_cast<size_t>(r * n + c)] = matrix.v(from, r);
    }
    WriteBatch(vectors, batch, results[0]);
    WriteBatch(values, batch, results[1]);
  }
  return absl::OkStatus();
}

}  // namespace

MatrixCall FindMatrixCall(std::string_view target) {
  if (target == "Qr") return Qr;
  if (target == "ProductOfElementaryHouseholderReflectors") return HouseholderProduct;
  return target == "Eigh" ? Eigh : nullptr;
}

}  // namespace hlokit::interp

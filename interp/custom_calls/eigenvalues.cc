// SPDX-License-Identifier: Apache-2.0
#include "interp/custom_calls/eigenvalues.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace hlokit::interp {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int kMaxSweeps = 60;

// Rotates columns p and q: (x, y) -> (c x - conj(s) y, s x + c y).
template <typename T>
void RotateColumns(DenseMatrix<T>* m, int64_t p, int64_t q, double c, T s) {
  for (int64_t r = 0; r < m->rows(); ++r) {
    const T x = (*m)(r, p), y = (*m)(r, q);
    (*m)(r, p) = c * x - Conjugated(s) * y;
    (*m)(r, q) = s * x + c * y;
  }
}

// The rotation that makes the products of the columns p and q orthogonal: alpha and beta are their squared norms, gamma
// the product of p, conjugated, and q.
template <typename T>
void JacobiRotation(double alpha, double beta, T gamma, double* c, T* s) {
  const double magnitude = std::abs(gamma);
  const double zeta = (beta - alpha) / (2 * magnitude);
  const double t = (zeta >= 0 ? 1.0 : -1.0) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
  *c = 1 / std::sqrt(1 + t * t);
  *s = (*c * t) * (gamma / magnitude);
}

// Orders values and the columns of the matrices.
template <typename T>
void SortColumns(std::vector<double>* values, bool descending, std::vector<DenseMatrix<T>*> matrices) {
  std::vector<size_t> order(values->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return descending ? (*values)[a] > (*values)[b] : (*values)[a] < (*values)[b];
  });
  std::vector<double> sorted;
  for (size_t i : order) sorted.push_back((*values)[i]);
  *values = std::move(sorted);
  for (DenseMatrix<T>* matrix : matrices) {
    const DenseMatrix<T> old = *matrix;
    for (size_t c = 0; c < order.size(); ++c) {
      for (int64_t r = 0; r < old.rows(); ++r) {
        (*matrix)(r, static_cast<int64_t>(c)) = old(r, static_cast<int64_t>(order[c]));
      }
    }
  }
}

// Makes columns from `first` on orthonormal, and orthogonal to those before, which are: each of the unit vector that
// those before it leave most of.
template <typename T>
void CompleteColumns(DenseMatrix<T>* u, const std::vector<uint8_t>& given) {
  for (int64_t c = 0; c < u->columns(); ++c) {
    if (c < static_cast<int64_t>(given.size()) && given[static_cast<size_t>(c)] != 0) continue;
    double best = -1;
    std::vector<T> chosen;
    for (int64_t unit = 0; unit < u->rows(); ++unit) {
      std::vector<T> column(static_cast<size_t>(u->rows()));
      column[static_cast<size_t>(unit)] = 1;
      for (int pass = 0; pass < 2; ++pass) {
        for (int64_t k = 0; k < u->columns(); ++k) {
          if (ShouldStopAfter(2 * u->rows())) return;
          const bool before = k < c || (k < static_cast<int64_t>(given.size()) && given[static_cast<size_t>(k)] != 0);
          if (!before || k == c) continue;
          T product = 0;
          for (int64_t r = 0; r < u->rows(); ++r) product += Conjugated((*u)(r, k)) * column[static_cast<size_t>(r)];
          for (int64_t r = 0; r < u->rows(); ++r) column[static_cast<size_t>(r)] -= product * (*u)(r, k);
        }
      }
      double norm = 0;
      for (const T& x : column) norm += SquaredMagnitude(x);
      if (norm <= best) continue;
      best = norm;
      chosen = std::move(column);
      if (best > 0.5) break;
    }
    for (int64_t r = 0; r < u->rows(); ++r) (*u)(r, c) = chosen[static_cast<size_t>(r)] / std::sqrt(best);
  }
}

}  // namespace

template <typename T>
std::vector<double> EigenvaluesOfHermitian(DenseMatrix<T> a, DenseMatrix<T>* vectors) {
  const int64_t n = a.rows();
  *vectors = DenseMatrix<T>::Identity(n);
  const int exponent = ScaleToRange(&a);
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    double off = 0, all = 0;
    for (int64_t p = 0; p < n; ++p) {
      if (ShouldStopAfter(n)) return std::vector<double>(static_cast<size_t>(n));
      for (int64_t q = 0; q < n; ++q) (p == q ? all : off) += SquaredMagnitude(a(p, q));
    }
    if (!(off > kEpsilon * kEpsilon * 1e-4 * (off + all))) break;
    for (int64_t p = 0; p + 1 < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        if (ShouldStopAfter(8 * n)) return std::vector<double>(static_cast<size_t>(n));
        if (std::abs(a(p, q)) <= std::numeric_limits<double>::min()) continue;
        double c = 1;
        T s = 0;
        JacobiRotation(std::real(a(p, p)), std::real(a(q, q)), a(p, q), &c, &s);
        RotateColumns(&a, p, q, c, s);
        RotateColumns(vectors, p, q, c, s);
        for (int64_t k = 0; k < n; ++k) {
          const T x = a(p, k), y = a(q, k);
          a(p, k) = c * x - s * y;
          a(q, k) = Conjugated(s) * x + c * y;
        }
        a(p, q) = a(q, p) = 0;
      }
    }
  }
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(ScaledBy(std::real(a(i, i)), exponent));
  SortColumns<T>(&values, false, {vectors});
  return values;
}

template <typename T>
std::vector<double> SingularValues(const DenseMatrix<T>& a, DenseMatrix<T>* u, DenseMatrix<T>* vh) {
  if (a.rows() < a.columns()) {
    DenseMatrix<T> v(a.columns(), vh->rows()), uh(u->columns(), a.rows());
    std::vector<double> values = SingularValues(a.Adjoint(), &v, &uh);
    *u = uh.Adjoint();
    *vh = v.Adjoint();
    return values;
  }
  // Columns of `w` become orthogonal: u s.
  const int64_t n = a.columns();
  DenseMatrix<T> w = a, v = DenseMatrix<T>::Identity(n);
  const int exponent = ScaleToRange(&w);
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool rotated = false;
    for (int64_t p = 0; p + 1 < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        if (ShouldStopAfter(4 * w.rows())) return std::vector<double>(static_cast<size_t>(n));
        double alpha = 0, beta = 0;
        T gamma = 0;
        for (int64_t r = 0; r < w.rows(); ++r) {
          alpha += SquaredMagnitude(w(r, p));
          beta += SquaredMagnitude(w(r, q));
          gamma += Conjugated(w(r, p)) * w(r, q);
        }
        if (!(std::abs(gamma) > kEpsilon * std::sqrt(alpha * beta))) continue;
        rotated = true;
        double c = 1;
        T s = 0;
        JacobiRotation(alpha, beta, gamma, &c, &s);
        RotateColumns(&w, p, q, c, s);
        RotateColumns(&v, p, q, c, s);
      }
    }
    if (!rotated) break;
  }
  std::vector<double> values;
  for (int64_t c = 0; c < n; ++c) {
    double norm = 0;
    for (int64_t r = 0; r < w.rows(); ++r) norm += SquaredMagnitude(w(r, c));
    values.push_back(std::sqrt(norm));
  }
  SortColumns<T>(&values, true, {&w, &v});
  std::vector<uint8_t> given;
  for (int64_t c = 0; c < n && c < u->columns(); ++c) {
    const double value = values[static_cast<size_t>(c)];
    const bool zero = !(value > kEpsilon * values[0] * 1e-3) && !std::isnan(value);
    given.push_back(zero ? 0 : 1);
    for (int64_t r = 0; r < w.rows() && !zero; ++r) (*u)(r, c) = w(r, c) / value;
  }
  CompleteColumns(u, given);
  for (int64_t r = 0; r < vh->rows(); ++r) {
    for (int64_t c = 0; c < n; ++c) (*vh)(r, c) = Conjugated(v(c, r));
  }
  for (double& value : values) value = ScaledBy(value, exponent);
  return values;
}

template <typename T>
void ReduceToHessenberg(DenseMatrix<T>* a, DenseMatrix<T>* q, DenseMatrix<T>* reflections, std::vector<T>* taus) {
  const int64_t n = a->rows();
  DenseMatrix<T> work = *a;
  *q = DenseMatrix<T>::Identity(n);
  std::vector<T> factors;
  for (int64_t i = 0; i + 1 < n; ++i) {
    const T tau = MakeReflection(&work, i + 1, i);
    factors.push_back(tau);
    ReflectColumns(work, i + 1, i, tau, &work);
    ReflectRows(work, i + 1, i, Conjugated(tau), i + 1, &work);
    ReflectColumns(work, i + 1, i, tau, q);
  }
  if (reflections != nullptr) *reflections = work;
  if (taus != nullptr) *taus = factors;
  for (int64_t r = 2; r < n; ++r) {
    for (int64_t c = 0; c + 1 < r; ++c) work(r, c) = 0;
  }
  *a = work;
}

// Returns the first row of the last block that ends at `high` and cannot be divided, whose element before it is
// cleared.
template <typename T>
static int64_t Deflate(DenseMatrix<T>* matrix, int64_t high) {
  DenseMatrix<T>& h = *matrix;
  int64_t low = high;
  for (; low > 0; --low) {
    const double scale = std::abs(h(low, low)) + std::abs(h(low - 1, low - 1));
    if (!(std::abs(h(low, low - 1)) > kEpsilon * scale)) break;
  }
  if (low > 0) h(low, low - 1) = 0;
  return low;
}

bool ReduceToSchur(DenseMatrix<Complex>* matrix, DenseMatrix<Complex>* z) {
  DenseMatrix<Complex>& h = *matrix;
  const int64_t n = h.rows();
  int tries = 0;
  for (int64_t high = n - 1; high > 0;) {
    const int64_t low = Deflate(matrix, high);
    if (low == high) {
      --high;
      tries = 0;
      continue;
    }
    constexpr int kMaxTries = 300;
    if (++tries > kMaxTries || ShouldStopAfter((high - low) * n)) return false;
    // Wilkinson's shift: the eigenvalue of the last block that is nearer to its last element.
    const Complex a = h(high - 1, high - 1), b = h(high - 1, high), c = h(high, high - 1), d = h(high, high);
    const Complex half = (a - d) / 2.0, root = std::sqrt(half * half + b * c);
    const Complex sum = half + root, difference = half - root;
    Complex shift = d;
    const Complex larger = std::abs(sum) > std::abs(difference) ? sum : difference;
    if (std::abs(larger) > 0) shift = d - b * c / larger;
    if (tries % 10 == 0) shift = d + std::abs(c);
    Complex x = h(low, low) - shift, y = h(low + 1, low);
    for (int64_t k = low; k < high; ++k) {
      if (ShouldStopAfter(12 * n)) return false;
      const double norm = std::sqrt(std::norm(x) + std::norm(y));
      const Complex p = norm == 0 ? Complex(1) : x / norm, q = norm == 0 ? Complex(0) : y / norm;
      for (int64_t j = std::max<int64_t>(0, k - 1); j < n; ++j) {
        const Complex u = h(k, j), v = h(k + 1, j);
        h(k, j) = std::conj(p) * u + std::conj(q) * v;
        h(k + 1, j) = -q * u + p * v;
      }
      for (int64_t i = 0; i <= std::min(high, k + 2); ++i) {
        const Complex u = h(i, k), v = h(i, k + 1);
        h(i, k) = p * u + q * v;
        h(i, k + 1) = -std::conj(q) * u + std::conj(p) * v;
      }
      for (int64_t i = 0; i < z->rows(); ++i) {
        const Complex u = (*z)(i, k), v = (*z)(i, k + 1);
        (*z)(i, k) = p * u + q * v;
        (*z)(i, k + 1) = -std::conj(q) * u + std::conj(p) * v;
      }
      if (k + 2 <= high) {
        x = h(k + 1, k);
        y = h(k + 2, k);  // what the next rotation makes zero
      }
    }
  }
  for (int64_t r = 1; r < n; ++r) {
    for (int64_t c = 0; c < r; ++c) h(r, c) = 0;
  }
  return true;
}

namespace {

// Rotates rows and columns p and p + 1 of a real matrix, and columns of z.
void RotatePair(DenseMatrix<double>* h, DenseMatrix<double>* z, int64_t p, double c, double s) {
  const int64_t n = h->rows();
  for (int64_t j = 0; j < n; ++j) {
    const double u = (*h)(p, j), v = (*h)(p + 1, j);
    (*h)(p, j) = c * u + s * v;
    (*h)(p + 1, j) = c * v - s * u;
  }
  for (int64_t i = 0; i < n; ++i) {
    const double u = (*h)(i, p), v = (*h)(i, p + 1);
    (*h)(i, p) = c * u + s * v;
    (*h)(i, p + 1) = c * v - s * u;
  }
  for (int64_t i = 0; i < z->rows(); ++i) {
    const double u = (*z)(i, p), v = (*z)(i, p + 1);
    (*z)(i, p) = c * u + s * v;
    (*z)(i, p + 1) = c * v - s * u;
  }
}

// Makes a block of two rows triangular if its eigenvalues are real, or its diagonal elements equal.
void StandardizeBlock(DenseMatrix<double>* h, DenseMatrix<double>* z, int64_t p) {
  const double a = (*h)(p, p), b = (*h)(p, p + 1), c = (*h)(p + 1, p), d = (*h)(p + 1, p + 1);
  const double half = (a - d) / 2, discriminant = half * half + b * c;
  if (discriminant >= 0) {
    // The rotation to the eigenvector of the eigenvalue d + x.
    const double root = std::sqrt(discriminant), x = half + (half >= 0 ? root : -root);
    const double norm = std::hypot(x, c);
    if (norm > 0) RotatePair(h, z, p, x / norm, c / norm);
    (*h)(p + 1, p) = 0;
    return;
  }
  const double angle = 0.5 * std::atan2(d - a, b + c);
  RotatePair(h, z, p, std::cos(angle), std::sin(angle));
  const double mean = ((*h)(p, p) + (*h)(p + 1, p + 1)) / 2;
  (*h)(p, p) = (*h)(p + 1, p + 1) = mean;
}

// One double step of Francis on rows low to high.
void FrancisStep(DenseMatrix<double>* matrix, DenseMatrix<double>* z, int64_t low, int64_t high, bool exceptional) {
  DenseMatrix<double>& h = *matrix;
  const int64_t n = h.rows();
  double trace = h(high - 1, high - 1) + h(high, high);
  double determinant = h(high - 1, high - 1) * h(high, high) - h(high - 1, high) * h(high, high - 1);
  if (exceptional) {
    const double w = std::abs(h(high, high - 1)) + (high - 2 >= low ? std::abs(h(high - 1, high - 2)) : 0);
    trace = 1.5 * w;
    determinant = w * w;
  }
  double x = h(low, low) * h(low, low) + h(low, low + 1) * h(low + 1, low) - trace * h(low, low) + determinant;
  double y = h(low + 1, low) * (h(low, low) + h(low + 1, low + 1) - trace);
  double w = low + 2 <= high ? h(low + 2, low + 1) * h(low + 1, low) : 0;
  for (int64_t k = low; k < high; ++k) {
    if (ShouldStopAfter(12 * n)) return;
    const int64_t size = std::min<int64_t>(3, high - k + 1);
    double v[3] = {x, y, size == 3 ? w : 0};
    const double norm = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    if (norm > 0) {
      v[0] += v[0] < 0 ? -norm : norm;
      const double factor = 2 / (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
      for (int64_t j = std::max<int64_t>(0, k - 1); j < n; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < size; ++i) sum += v[i] * h(k + i, j);
        for (int64_t i = 0; i < size; ++i) h(k + i, j) -= factor * sum * v[i];
      }
      for (int64_t i = 0; i <= std::min(high, k + 3); ++i) {
        double sum = 0;
        for (int64_t j = 0; j < size; ++j) sum += v[j] * h(i, k + j);
        for (int64_t j = 0; j < size; ++j) h(i, k + j) -= factor * sum * v[j];
      }
      for (int64_t i = 0; i < z->rows(); ++i) {
        double sum = 0;
        for (int64_t j = 0; j < size; ++j) sum += v[j] * (*z)(i, k + j);
        for (int64_t j = 0; j < size; ++j) (*z)(i, k + j) -= factor * sum * v[j];
      }
    }
    x = h(std::min(k + 1, high), k);
    y = h(std::min(k + 2, high), k);
    w = k + 3 <= high ? h(k + 3, k) : 0;
  }
}

}  // namespace

bool ReduceToSchur(DenseMatrix<double>* matrix, DenseMatrix<double>* z) {
  DenseMatrix<double>& h = *matrix;
  const int64_t n = h.rows();
  int tries = 0;
  for (int64_t high = n - 1; high > 0;) {
    const int64_t low = Deflate(matrix, high);
    if (low >= high - 1) {
      if (low == high - 1) StandardizeBlock(matrix, z, low);
      high = low - 1;
      tries = 0;
      continue;
    }
    constexpr int kMaxTries = 300;
    if (++tries > kMaxTries || ShouldStopAfter((high - low) * n)) return false;
    FrancisStep(matrix, z, low, high, tries % 10 == 0);
    for (int64_t r = low + 2; r <= high; ++r) {
      for (int64_t c = low; c + 1 < r; ++c) h(r, c) = 0;
    }
  }
  for (int64_t r = 2; r < n; ++r) {
    for (int64_t c = 0; c + 1 < r; ++c) h(r, c) = 0;
  }
  return true;
}

void SplitPairs(DenseMatrix<Complex>* matrix, DenseMatrix<Complex>* z) {
  DenseMatrix<Complex>& t = *matrix;
  const int64_t n = t.rows();
  for (int64_t m = n - 1; m > 0; --m) {
    if (ShouldStopAfter(12 * n)) return;
    if (t(m, m - 1) == 0.0) continue;
    const Complex a = t(m - 1, m - 1), b = t(m - 1, m), c = t(m, m - 1), d = t(m, m);
    const Complex half = (a - d) / 2.0, mu = half + std::sqrt(half * half + b * c);  // an eigenvalue less d
    const double norm = std::sqrt(std::norm(mu) + std::norm(c));
    const Complex p = mu / norm, q = c / norm;
    for (int64_t j = m - 1; j < n; ++j) {
      const Complex u = t(m - 1, j), v = t(m, j);
      t(m - 1, j) = std::conj(p) * u + std::conj(q) * v;
      t(m, j) = -q * u + p * v;
    }
    for (int64_t i = 0; i <= m; ++i) {
      const Complex u = t(i, m - 1), v = t(i, m);
      t(i, m - 1) = p * u + q * v;
      t(i, m) = -std::conj(q) * u + std::conj(p) * v;
    }
    for (int64_t i = 0; i < z->rows(); ++i) {
      const Complex u = (*z)(i, m - 1), v = (*z)(i, m);
      (*z)(i, m - 1) = p * u + q * v;
      (*z)(i, m) = -std::conj(q) * u + std::conj(p) * v;
    }
    t(m, m - 1) = 0;
  }
}

DenseMatrix<Complex> Eigenvectors(const DenseMatrix<Complex>& t, const DenseMatrix<Complex>& z, bool left) {
  const int64_t n = t.rows();
  DenseMatrix<Complex> made(n, n);
  double scale = 0;
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = r; c < n; ++c) scale = std::max(scale, std::abs(t(r, c)));
  }
  const double least = std::max(kEpsilon * scale, std::numeric_limits<double>::min());
  for (int64_t k = 0; k < n; ++k) {
    std::vector<Complex> x(static_cast<size_t>(n));
    x[static_cast<size_t>(k)] = 1;
    // Substitution, upwards, or of the adjoint downwards.
    for (int64_t step = 1; left ? k + step < n : k - step >= 0; ++step) {
      const int64_t i = left ? k + step : k - step;
      if (ShouldStopAfter(step)) return made;
      Complex sum = 0;
      for (int64_t j = std::min(i, k); j <= std::max(i, k); ++j) {
        if (j != i) sum += (left ? std::conj(t(j, i)) : t(i, j)) * x[static_cast<size_t>(j)];
      }
      Complex divisor = t(i, i) - t(k, k);
      if (left) divisor = std::conj(divisor);
      if (std::abs(divisor) < least) divisor = least;
      x[static_cast<size_t>(i)] = -sum / divisor;
    }
    std::vector<Complex> v(static_cast<size_t>(n));
    double norm = 0;
    Complex largest = 1;
    double most = -1;
    for (int64_t r = 0; r < n; ++r) {
      if (ShouldStopAfter(n)) return made;
      for (int64_t c = 0; c < n; ++c) v[static_cast<size_t>(r)] += z(r, c) * x[static_cast<size_t>(c)];
      norm += std::norm(v[static_cast<size_t>(r)]);
      if (std::norm(v[static_cast<size_t>(r)]) <= most * (1 + 8 * kEpsilon)) continue;
      most = std::norm(v[static_cast<size_t>(r)]);
      largest = v[static_cast<size_t>(r)];
    }
    const Complex phase = std::conj(largest) / std::abs(largest) / std::sqrt(norm);
    for (int64_t r = 0; r < n; ++r) made(r, k) = v[static_cast<size_t>(r)] * phase;
  }
  return made;
}

template std::vector<double> EigenvaluesOfHermitian(DenseMatrix<double> a, DenseMatrix<double>* vectors);
template std::vector<double> EigenvaluesOfHermitian(DenseMatrix<Complex> a, DenseMatrix<Complex>* vectors);
template std::vector<double> SingularValues(const DenseMatrix<double>& a, DenseMatrix<double>* u,
                                            DenseMatrix<double>* vh);
template std::vector<double> SingularValues(const DenseMatrix<Complex>& a, DenseMatrix<Complex>* u,
                                            DenseMatrix<Complex>* vh);
template void ReduceToHessenberg(DenseMatrix<double>* a, DenseMatrix<double>* q, DenseMatrix<double>* reflections,
                                 std::vector<double>* taus);
template void ReduceToHessenberg(DenseMatrix<Complex>* a, DenseMatrix<Complex>* q, DenseMatrix<Complex>* reflections,
                                 std::vector<Complex>* taus);

}  // namespace hlokit::interp

// SPDX-License-Identifier: Apache-2.0
// Matrices of doubles or complex doubles, and Householder reflections of LAPACK's form. Internal to this directory.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_DENSE_MATRIX_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_DENSE_MATRIX_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "interp/custom_calls/custom_call_device.h"

namespace hlokit::interp {

inline double Conjugated(double x) { return x; }
inline std::complex<double> Conjugated(std::complex<double> x) { return std::conj(x); }
inline double SquaredMagnitude(double x) { return x * x; }
inline double SquaredMagnitude(std::complex<double> x) { return std::norm(x); }

// Row-major.
template <typename T>
class DenseMatrix {
 public:
  DenseMatrix(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), values_(static_cast<size_t>(rows * columns)) {}
  static DenseMatrix Identity(int64_t n) {
    DenseMatrix made(n, n);
    for (int64_t i = 0; i < n; ++i) made(i, i) = 1;
    return made;
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  T& operator()(int64_t r, int64_t c) { return values_[static_cast<size_t>(r * columns_ + c)]; }
  const T& operator()(int64_t r, int64_t c) const { return values_[static_cast<size_t>(r * columns_ + c)]; }
  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }

  DenseMatrix Adjoint() const {
    DenseMatrix made(columns_, rows_);
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < columns_; ++c) made(c, r) = Conjugated((*this)(r, c));
    }
    return made;
  }

 private:
  int64_t rows_, columns_;
  std::vector<T> values_;
};

template <typename T>
DenseMatrix<T> Product(const DenseMatrix<T>& a, const DenseMatrix<T>& b) {
  DenseMatrix<T> made(a.rows(), b.columns());
  for (int64_t r = 0; r < a.rows(); ++r) {
    for (int64_t k = 0; k < a.columns(); ++k) {
      if (ShouldStopAfter(b.columns())) return made;
      const T factor = a(r, k);
      for (int64_t c = 0; c < b.columns(); ++c) made(r, c) += factor * b(k, c);
    }
  }
  return made;
}

inline double LargestPart(double x) { return std::abs(x); }
inline double LargestPart(std::complex<double> x) { return std::max(std::abs(x.real()), std::abs(x.imag())); }
inline double ScaledBy(double x, int exponent) { return std::ldexp(x, exponent); }
inline std::complex<double> ScaledBy(std::complex<double> x, int exponent) {
  return {std::ldexp(x.real(), exponent), std::ldexp(x.imag(), exponent)};
}

// The exponent of a power of two by which numbers up to `largest` are divided so that their squares and sums stay in
// the range of a double: 0 unless they are very large or very small.
inline int ScaleExponent(double largest) {
  constexpr int kFar = 250;
  if (!std::isfinite(largest) || largest == 0) return 0;
  const int exponent = std::ilogb(largest);
  return std::abs(exponent) > kFar ? exponent : 0;
}

template <typename T>
void ScaleMatrix(int exponent, DenseMatrix<T>* a) {
  for (int64_t i = 0; exponent != 0 && i < a->rows() * a->columns(); ++i) {
    a->data()[i] = ScaledBy(a->data()[i], exponent);
  }
}
// Divides a matrix by a power of two, if that is necessary, and returns its exponent.
template <typename T>
int ScaleToRange(DenseMatrix<T>* a) {
  double largest = 0;
  for (int64_t i = 0; i < a->rows() * a->columns(); ++i) {
    const double part = LargestPart(a->data()[i]);
    if (!(part <= largest)) largest = part;
    if (std::isnan(part)) return 0;
  }
  const int exponent = ScaleExponent(largest);
  ScaleMatrix(-exponent, a);
  return exponent;
}
// Multiplies the elements up to `below` rows under the diagonal, which are numbers of the matrix and not of
// reflections.
template <typename T>
void UnscaleUpper(int exponent, int64_t below, DenseMatrix<T>* a) {
  for (int64_t r = 0; exponent != 0 && r < a->rows(); ++r) {
    for (int64_t c = std::max<int64_t>(0, r - below); c < a->columns(); ++c)
      (*a)(r, c) = ScaledBy((*a)(r, c), exponent);
  }
}

// Makes the reflection H = 1 - tau v vH with Hh x = (beta, 0, ...) of the vector x that is column c of `a` from row r
// on: v, without its first element 1, replaces the rest of x, and beta its first element. Returns tau. As LAPACK's
// larfg.
template <typename T>
T MakeReflection(DenseMatrix<T>* a, int64_t r, int64_t c) {
  double largest = 0;
  for (int64_t i = r; i < a->rows(); ++i) largest = std::max(largest, LargestPart((*a)(i, c)));
  const int exponent = ScaleExponent(largest);
  for (int64_t i = r; exponent != 0 && i < a->rows(); ++i) (*a)(i, c) = ScaledBy((*a)(i, c), -exponent);
  double rest = 0;
  for (int64_t i = r + 1; i < a->rows(); ++i) rest += SquaredMagnitude((*a)(i, c));
  const T alpha = (*a)(r, c);
  if (rest == 0 && std::imag(alpha) == 0) {
    for (int64_t i = r; exponent != 0 && i < a->rows(); ++i) (*a)(i, c) = ScaledBy((*a)(i, c), exponent);
    return 0;
  }
  const double norm = std::sqrt(SquaredMagnitude(alpha) + rest), beta = std::real(alpha) < 0 ? norm : -norm;
  for (int64_t i = r + 1; i < a->rows(); ++i) (*a)(i, c) /= alpha - beta;
  (*a)(r, c) = ScaledBy(T(beta), exponent);
  return (beta - alpha) / beta;
}

// Element i of v, which MakeReflection left in `a`.
template <typename T>
T ReflectionAt(const DenseMatrix<T>& a, int64_t r, int64_t c, int64_t i) {
  return i == r ? T(1) : a(i, c);
}

// Subtracts tau v (vH m) from the columns of `m` from `first` on.
template <typename T>
void ReflectRows(const DenseMatrix<T>& a, int64_t r, int64_t c, T tau, int64_t first, DenseMatrix<T>* m) {
  for (int64_t k = first; k < m->columns(); ++k) {
    if (ShouldStopAfter(2 * (a.rows() - r))) return;
    T sum = 0;
    for (int64_t i = r; i < a.rows(); ++i) sum += Conjugated(ReflectionAt(a, r, c, i)) * (*m)(i, k);
    for (int64_t i = r; i < a.rows(); ++i) (*m)(i, k) -= tau * (ReflectionAt(a, r, c, i) * sum);
  }
}

// Subtracts (m v) tau vH from the rows of `m`.
template <typename T>
void ReflectColumns(const DenseMatrix<T>& a, int64_t r, int64_t c, T tau, DenseMatrix<T>* m) {
  for (int64_t k = 0; k < m->rows(); ++k) {
    if (ShouldStopAfter(2 * (a.rows() - r))) return;
    T sum = 0;
    for (int64_t i = r; i < a.rows(); ++i) sum += (*m)(k, i) * ReflectionAt(a, r, c, i);
    for (int64_t i = r; i < a.rows(); ++i) (*m)(k, i) -= sum * tau * Conjugated(ReflectionAt(a, r, c, i));
  }
}

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_DENSE_MATRIX_H_

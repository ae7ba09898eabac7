// SPDX-License-Identifier: Apache-2.0
// Decompositions of one matrix in LAPACK's forms, by its unblocked algorithms. Internal to this directory.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_LAPACK_FACTORIZATIONS_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_LAPACK_FACTORIZATIONS_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <utility>
#include <vector>

#include "interp/custom_calls/dense_matrix.h"

namespace hlokit::interp {

// Replaces the triangle by the factor; the other triangle stays. Returns 0, or which leading minor is not positive.
template <typename T>
int64_t DecomposeCholesky(bool lower, DenseMatrix<T>* a) {
  const auto at = [&](int64_t r, int64_t c) -> T& { return lower ? (*a)(r, c) : (*a)(c, r); };
  // Of the upper triangle the adjoint: elements are conjugated as they are read.
  const auto value = [&](int64_t r, int64_t c) { return lower ? at(r, c) : Conjugated(at(r, c)); };
  const int64_t n = std::min(a->rows(), a->columns());
  for (int64_t j = 0; j < n; ++j) {
    double pivot = std::real(at(j, j));
    for (int64_t k = 0; k < j; ++k) pivot -= SquaredMagnitude(at(j, k));
    if (!(pivot > 0)) return j + 1;
    const double root = std::sqrt(pivot);
    at(j, j) = root;
    for (int64_t r = j + 1; r < n; ++r) {
      if (ShouldStopAfter(j + 1)) return 0;
      T sum = value(r, j);
      for (int64_t k = 0; k < j; ++k) sum -= value(r, k) * Conjugated(value(j, k));
      sum /= root;
      at(r, j) = lower ? sum : Conjugated(sum);
    }
  }
  return 0;
}

// op(a) x = b, or x op(a) = b.
struct TriangularSystem {
  bool left, lower, transpose, conjugate, unit;
};

// Replaces b by x. Returns false if the sizes do not fit.
template <typename T>
bool SolveTriangular(TriangularSystem system, const DenseMatrix<T>& a, DenseMatrix<T>* x) {
  const int64_t n = a.rows();
  if (a.columns() != n || (system.left ? x->rows() : x->columns()) != n) return false;
  // On the right, the transposed system is solved for the rows of b.
  const bool transpose = system.transpose != !system.left;
  const bool lower = system.lower != transpose;
  const auto element = [&](int64_t r, int64_t c) {
    const T value = transpose ? a(c, r) : a(r, c);
    return system.conjugate ? Conjugated(value) : value;
  };
  const int64_t count = system.left ? x->columns() : x->rows();
  for (int64_t k = 0; k < count; ++k) {
    const auto at = [&](int64_t i) -> T& { return system.left ? (*x)(i, k) : (*x)(k, i); };
    for (int64_t step = 0; step < n; ++step) {
      if (ShouldStopAfter(step + 1)) return true;
      const int64_t i = lower ? step : n - 1 - step;
      T sum = at(i);
      for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : n); ++j) sum -= element(i, j) * at(j);
      at(i) = system.unit ? sum : sum / element(i, i);
    }
  }
  return true;
}

// Row exchanges are numbered from 1. Returns 0, or the first pivot that is zero.
template <typename T>
int64_t DecomposeLu(DenseMatrix<T>* a, std::vector<int32_t>* pivots) {
  int64_t info = 0;
  const int64_t count = std::min(a->rows(), a->columns());
  const auto size = [](T x) { return std::abs(std::real(x)) + std::abs(std::imag(x)); };
  for (int64_t j = 0; j < count; ++j) {
    int64_t pivot = j;
    for (int64_t r = j + 1; r < a->rows(); ++r) {
      if (size((*a)(r, j)) > size((*a)(pivot, j))) pivot = r;
    }
    pivots->push_back(static_cast<int32_t>(pivot + 1));
    if ((*a)(pivot, j) == T(0)) {
      if (info == 0) info = j + 1;
      continue;
    }
    for (int64_t c = 0; c < a->columns() && pivot != j; ++c) std::swap((*a)(j, c), (*a)(pivot, c));
    for (int64_t r = j + 1; r < a->rows(); ++r) {
      if (ShouldStopAfter(a->columns() - j)) return info;
      (*a)(r, j) /= (*a)(j, j);
      const T factor = (*a)(r, j);
      for (int64_t c = j + 1; c < a->columns(); ++c) (*a)(r, c) -= factor * (*a)(j, c);
    }
  }
  return info;
}

// Returns the factors of the reflections, which replace the lower triangle.
template <typename T>
std::vector<T> DecomposeQr(DenseMatrix<T>* a) {
  std::vector<T> taus;
  const int exponent = ScaleToRange(a);
  for (int64_t j = 0; j < std::min(a->rows(), a->columns()); ++j) {
    if (ShouldStopAfter(a->rows() - j)) break;
    taus.push_back(MakeReflection(a, j, j));
    ReflectRows(*a, j, j, Conjugated(taus.back()), j + 1, a);
  }
  UnscaleUpper(exponent, 0, a);
  return taus;
}

// Columns that are 0 in `order` may be exchanged, others come first; `order` becomes their numbers from 1.
template <typename T>
std::vector<T> DecomposePivotedQr(DenseMatrix<T>* a, std::vector<int32_t>* order) {
  const int64_t columns = a->columns();
  std::vector<int32_t> numbers;
  const auto exchange = [&](int64_t p, int64_t q) {
    if (p == q) return;
    for (int64_t r = 0; r < a->rows(); ++r) std::swap((*a)(r, p), (*a)(r, q));
    std::swap(numbers[static_cast<size_t>(p)], numbers[static_cast<size_t>(q)]);
  };
  for (int64_t c = 0; c < columns; ++c) numbers.push_back(static_cast<int32_t>(c + 1));
  int64_t fixed = 0;
  for (int64_t c = 0; c < columns; ++c) {
    if ((*order)[static_cast<size_t>(c)] != 0) exchange(c, fixed++);
  }
  std::vector<T> taus;
  const int exponent = ScaleToRange(a);
  for (int64_t j = 0; j < std::min(a->rows(), columns); ++j) {
    int64_t best = j;
    double most = -1;
    for (int64_t c = j; c < columns && j >= fixed; ++c) {
      if (ShouldStopAfter(a->rows() - j)) break;
      double norm = 0;
      for (int64_t r = j; r < a->rows(); ++r) norm += SquaredMagnitude((*a)(r, c));
      if (norm > most) best = c;
      most = std::max(most, norm);
    }
    exchange(j, best);
    taus.push_back(MakeReflection(a, j, j));
    ReflectRows(*a, j, j, Conjugated(taus.back()), j + 1, a);
  }
  UnscaleUpper(exponent, 0, a);
  *order = numbers;
  return taus;
}

// c = q c, qh c, c q or c qh with q, the product of the reflections in the columns of `a`. Returns false if the sizes
// do not fit.
template <typename T>
bool MultiplyByReflections(const DenseMatrix<T>& a, const std::vector<T>& taus, bool left, bool adjoint,
                           DenseMatrix<T>* c) {
  const auto count = static_cast<int64_t>(taus.size());
  if (count > std::min(a.rows(), a.columns()) || (left ? c->rows() : c->columns()) != a.rows()) return false;
  for (int64_t step = 0; step < count; ++step) {
    const int64_t j = left != adjoint ? count - 1 - step : step;
    const T tau = adjoint ? Conjugated(taus[static_cast<size_t>(j)]) : taus[static_cast<size_t>(j)];
    if (left) {
      ReflectRows(a, j, j, tau, 0, c);
    } else {
      ReflectColumns(a, j, j, tau, c);
    }
  }
  return true;
}

// Of the lower triangle of a Hermitian matrix: reflections replace what is below the first subdiagonal.
template <typename T>
void ReduceToTridiagonal(DenseMatrix<T>* a, std::vector<double>* diagonal, std::vector<double>* beside,
                         std::vector<T>* taus) {
  const int64_t n = a->rows();
  const int exponent = ScaleToRange(a);
  DenseMatrix<T> whole = *a;
  for (int64_t r = 0; r < n; ++r) {
    whole(r, r) = std::real(whole(r, r));
    for (int64_t c = 0; c < r; ++c) whole(c, r) = Conjugated(whole(r, c));
  }
  for (int64_t i = 0; i < n; ++i) {
    diagonal->push_back(std::real(whole(i, i)));
    (*a)(i, i) = diagonal->back();
    if (i + 1 == n) break;
    if (ShouldStopAfter(n * n)) return;
    DenseMatrix<T> reflection = whole;
    const T tau = MakeReflection(&reflection, i + 1, i);
    taus->push_back(tau);
    beside->push_back(std::real(reflection(i + 1, i)));
    for (int64_t r = i + 1; r < n; ++r) (*a)(r, i) = reflection(r, i);
    ReflectColumns(reflection, i + 1, i, tau, &whole);
    ReflectRows(reflection, i + 1, i, Conjugated(tau), i + 1, &whole);
  }
  UnscaleUpper(exponent, 1, a);
  for (double& x : *diagonal) x = ScaledBy(x, exponent);
  for (double& x : *beside) x = ScaledBy(x, exponent);
}

// Replaces x, whose columns are right sides. `below` has the elements before the diagonal in their rows, `above` those
// after it. Returns 0, or the pivot that is zero.
template <typename T>
int64_t SolveTridiagonal(std::vector<T>* below, std::vector<T>* diagonal, std::vector<T>* above, DenseMatrix<T>* x) {
  const int64_t n = x->rows();
  std::vector<T> d = *diagonal, u = *above, second(static_cast<size_t>(n));
  const auto at = [](std::vector<T>& v, int64_t i) -> T& { return v[static_cast<size_t>(i)]; };
  for (int64_t i = 0; i + 1 < n; ++i) {
    if (ShouldStopAfter(x->columns())) return 0;
    const T next = at(*below, i + 1);
    if (std::abs(next) > std::abs(at(d, i))) {  // exchange the rows
      const T factor = at(d, i) / next, old = at(d, i + 1);
      at(d, i) = next;
      at(d, i + 1) = at(u, i) - factor * old;
      at(u, i) = old;
      if (i + 2 < n) {
        at(second, i) = at(u, i + 1);
        at(u, i + 1) = -factor * at(second, i);
      }
      for (int64_t c = 0; c < x->columns(); ++c) {
        const T lower = (*x)(i + 1, c);
        (*x)(i + 1, c) = (*x)(i, c) - factor * lower;
        (*x)(i, c) = lower;
      }
      continue;
    }
    if (at(d, i) == T(0)) return i + 1;
    const T factor = next / at(d, i);
    at(d, i + 1) -= factor * at(u, i);
    for (int64_t c = 0; c < x->columns(); ++c) (*x)(i + 1, c) -= factor * (*x)(i, c);
  }
  if (n > 0 && at(d, n - 1) == T(0)) return n;
  for (int64_t c = 0; c < x->columns(); ++c) {
    for (int64_t i = n - 1; i >= 0; --i) {
      if (ShouldStopAfter(4)) return 0;
      T sum = (*x)(i, c);
      if (i + 1 < n) sum -= at(u, i) * (*x)(i + 1, c);
      if (i + 2 < n) sum -= at(second, i) * (*x)(i + 2, c);
      (*x)(i, c) = sum / at(d, i);
    }
  }
  *diagonal = d;
  *above = u;
  return 0;
}

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_LAPACK_FACTORIZATIONS_H_

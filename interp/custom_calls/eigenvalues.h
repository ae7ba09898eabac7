// SPDX-License-Identifier: Apache-2.0
// Eigenvalues, Schur forms and singular values of dense matrices, in double. Internal to this directory.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_EIGENVALUES_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_EIGENVALUES_H_

#include <complex>
#include <vector>

#include "interp/custom_calls/dense_matrix.h"

namespace hlokit::interp {

using Complex = std::complex<double>;

// A Hermitian matrix: eigenvalues in ascending order, and its eigenvectors as columns of `vectors`.
template <typename T>
std::vector<double> EigenvaluesOfHermitian(DenseMatrix<T> a, DenseMatrix<T>* vectors);

// a = u diag(s) vh with s in descending order: u of as many columns as `u` has, at least min(m, n), and vh of as many
// rows as `vh` has.
template <typename T>
std::vector<double> SingularValues(const DenseMatrix<T>& a, DenseMatrix<T>* u, DenseMatrix<T>* vh);

// Makes `a` zero below its first subdiagonal, and `q` unitary with q a qh as it was. LAPACK's form of reflections stays
// in `*reflections`, if it is not null, their factors in `*taus`.
template <typename T>
void ReduceToHessenberg(DenseMatrix<T>* a, DenseMatrix<T>* q, DenseMatrix<T>* reflections, std::vector<T>* taus);

// Makes a Hessenberg matrix upper triangular, and multiplies `z` by the transformation. Returns false if it does not
// converge.
bool ReduceToSchur(DenseMatrix<Complex>* h, DenseMatrix<Complex>* z);
// The same; pairs of complex eigenvalues are blocks of two rows with equal diagonal elements.
bool ReduceToSchur(DenseMatrix<double>* h, DenseMatrix<double>* z);

// Makes the Schur form of a real matrix that of a complex one.
void SplitPairs(DenseMatrix<Complex>* t, DenseMatrix<Complex>* z);

// The eigenvectors of z t zh, t upper triangular, as columns of norm 1 whose largest element is real: right ones, or
// left ones, u with uh a = lambda uh.
DenseMatrix<Complex> Eigenvectors(const DenseMatrix<Complex>& t, const DenseMatrix<Complex>& z, bool left);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_EIGENVALUES_H_

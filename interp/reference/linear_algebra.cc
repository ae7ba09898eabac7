// SPDX-License-Identifier: Apache-2.0
// Decompositions, batch normalization and Fourier transforms: computed in double and rounded once at the end.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>
#include <vector>

#include "interp/reference/ops.h"

namespace hlokit::reference {
namespace {

double Conjugate(double v) { return v; }
C128 Conjugate(C128 v) { return std::conj(v); }

template <typename N>
N NumberAt(const Array& array, int64_t i) {
  if constexpr (std::is_same_v<N, double>) {
    return array.Real(i);
  } else {
    return array.Complex(i);
  }
}
void SetNumber(Array* array, int64_t i, double v) { array->SetReal(i, v); }
void SetNumber(Array* array, int64_t i, C128 v) { array->SetComplex(i, v); }

bool IsMatrix(const Array& a) {
  return a.rank() >= 2 && (IsFloat(a.type()) || IsComplex(a.type())) && a.dim(a.rank() - 1) == a.dim(a.rank() - 2);
}

// Computes l l^H = a, row by row; the upper form is read and written transposed. A matrix that is not positive definite
// gives NaN.
template <typename N>
void CholeskyOf(const Op& op) {
  const Array& a = op.in(0);
  const int64_t n = a.dim(a.rank() - 1);
  const bool lower = op.instruction.bool_attr(Attr::kLower);
  op.ForEach(n == 0 ? 0 : a.count() / (n * n), [&](int64_t batch) {
    const int64_t first = batch * n * n;
    std::vector<N> l(static_cast<size_t>(n * n), N{0});
    const auto at = [&](int64_t i, int64_t j) -> N& { return l[static_cast<size_t>(i * n + j)]; };
    bool definite = true;
    op.ForEach(n, [&](int64_t i) {
      for (int64_t j = 0; j <= i && op.run.Tick(); ++j) {
        N sum = lower ? NumberAt<N>(a, first + i * n + j) : Conjugate(NumberAt<N>(a, first + j * n + i));
        for (int64_t k = 0; k < j; ++k) sum -= at(i, k) * Conjugate(at(j, k));
        if (i == j) {
          const double root = std::sqrt(std::real(sum));
          definite = definite && root == root;
          at(i, i) = root;
        } else {
          at(i, j) = sum / at(j, j);
        }
      }
    });
    op.ForEach(n * n, [&](int64_t k) {
      const N v = lower ? at(k / n, k % n) : Conjugate(at(k % n, k / n));
      SetNumber(&op.out(), first + k, definite ? v : N{std::numeric_limits<double>::quiet_NaN()});
    });
  });
}

// Solves op(a) x = b for each column of b, or x op(a) = b, i.e. op(a)^T x^T = b^T, for each row; substitution begins
// with the equation with one unknown.
template <typename N>
void Solve(const Op& op) {
  const Array &a = op.in(0), &b = op.in(1);
  const int64_t n = a.dim(a.rank() - 1), rows = b.dim(b.rank() - 2), columns = b.dim(b.rank() - 1);
  const bool left = op.instruction.bool_attr(Attr::kLeftSide), unit = op.instruction.bool_attr(Attr::kUnitDiagonal);
  const auto transpose = op.instruction.enum_attr(Attr::kTransposeA, TriangularTranspose::kNoTranspose);
  const bool conjugate = transpose == TriangularTranspose::kAdjoint;
  const bool transposed = (conjugate || transpose == TriangularTranspose::kTranspose) == left;
  const bool forward = op.instruction.bool_attr(Attr::kLower) != transposed;
  const int64_t systems = left ? columns : rows, step = left ? columns : 1;
  op.ForEach(n == 0 || systems == 0 ? 0 : b.count() / (rows * columns), [&](int64_t batch) {
    const auto coefficient = [&](int64_t i, int64_t j) {
      const N v = NumberAt<N>(a, batch * n * n + (transposed ? j * n + i : i * n + j));
      return conjugate ? Conjugate(v) : v;
    };
    op.ForEach(systems, [&](int64_t s) {
      const int64_t first = batch * rows * columns + s * (left ? 1 : columns);
      std::vector<N> x(static_cast<size_t>(n));
      for (int64_t t = 0; t < n && op.run.Tick(); ++t) {
        const int64_t i = forward ? t : n - 1 - t;
        N sum = NumberAt<N>(b, first + i * step);
        for (int64_t u = 0; u < t; ++u) {
          const int64_t j = forward ? u : n - 1 - u;
          sum -= coefficient(i, j) * x[static_cast<size_t>(j)];
        }
        x[static_cast<size_t>(i)] = unit ? sum : sum / coefficient(i, i);
        SetNumber(&op.out(), first + i * step, x[static_cast<size_t>(i)]);
      }
    });
  });
}

// Calls body(feature, positions of the feature's elements) for each feature of a batch normalization.
template <typename Body>
void ForEachFeature(const Op& op, Body body) {
  const Dims dims = op.in(0).dims();
  const int64_t feature = op.instruction.int_attr(Attr::kFeatureIndex);
  if (!op.Require(feature >= 0 && feature < op.in(0).rank(), "feature_index is not a dimension")) return;
  if (op.in(0).count() == 0 && dims[static_cast<size_t>(feature)] == 0) return;
  std::vector<int64_t> others;
  for (int64_t d = 0; d < op.in(0).rank(); ++d) {
    if (d != feature) others.push_back(d);
  }
  const std::vector<int64_t> positions = op.in(0).count() == 0 ? std::vector<int64_t>() : GroupPositions(dims, others);
  const int64_t stride = ElementCount(dims.subspan(static_cast<size_t>(feature) + 1));
  op.ForEach(dims[static_cast<size_t>(feature)], [&](int64_t f) {
    std::vector<int64_t> of_feature = positions;
    for (int64_t& p : of_feature) p += f * stride;
    body(f, of_feature);
  });
}

void Normalize(const Op& op, const std::vector<int64_t>& positions, double mean, double scale, double offset) {
  for (int64_t i : positions) op.out().SetReal(i, (op.in(0).Real(i) - mean) * scale + offset);
}

// Transforms lines of `data`, an array of `dims`, along one dimension: sums of e^(-+2 pi i j k / n) x_j.
template <typename Real>
void TransformAlong(const Op& op, const Index& dims, size_t dim, bool inverse, std::vector<std::complex<Real>>* data) {
  const int64_t n = dims[dim];
  std::vector<std::complex<Real>> roots;
  for (int64_t k = 0; k < n; ++k) {
    if (!op.run.Tick()) return;
    const Real angle = 2 * std::numbers::pi_v<Real> * static_cast<Real>(k) / static_cast<Real>(n);
    roots.push_back({std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle)});
  }
  std::vector<int64_t> others;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d != dim) others.push_back(static_cast<int64_t>(d));
  }
  const std::vector<int64_t> steps = GroupPositions(dims, {static_cast<int64_t>(dim)});
  for (int64_t begin : GroupPositions(dims, others)) {
    std::vector<std::complex<Real>> line;
    for (int64_t k = 0; k < n; ++k) {
      Real re = 0, im = 0;
      for (int64_t j = 0; j < n && op.run.Tick(); ++j) {
        const std::complex<Real> x = (*data)[static_cast<size_t>(begin + steps[static_cast<size_t>(j)])];
        const std::complex<Real> root = roots[static_cast<size_t>(static_cast<__int128>(j) * k % n)];
        re += x.real() * root.real() - x.imag() * root.imag();
        im += x.real() * root.imag() + x.imag() * root.real();
      }
      line.push_back(inverse ? std::complex<Real>(re / static_cast<Real>(n), im / static_cast<Real>(n))
                             : std::complex<Real>(re, im));
    }
    for (int64_t k = 0; k < n; ++k) {
      (*data)[static_cast<size_t>(begin + steps[static_cast<size_t>(k)])] = line[static_cast<size_t>(k)];
    }
    if (op.run.failed()) return;
  }
}

// Computes one transform from element `from` of the operand to element `to` of the result.
template <typename Real>
void TransformOne(const Op& op, const Index& lengths, const Index& in_dims, const Index& out_dims, int64_t from,
                  int64_t to) {
  const auto type = op.instruction.enum_attr(Attr::kFftType, FftType::kFft);
  const bool inverse = type == FftType::kIfft || type == FftType::kIrfft, real_out = type == FftType::kIrfft;
  const size_t last = lengths.size() - 1;
  // A real result is computed from the first half of its spectrum; the other half is the conjugate.
  Index dims = lengths;
  if (real_out) dims[last] = lengths[last] / 2 + 1;
  std::vector<std::complex<Real>> data(static_cast<size_t>(ElementCount(dims)));
  // Pads with zeros or truncates where sizes of operand or result differ from the lengths.
  const auto has = [](const Index& sizes, const Index& index) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (index[d] >= sizes[d]) return false;
    }
    return true;
  };
  op.ForEachIndex(dims, [&](const Index& index) {
    if (!has(in_dims, index)) return;
    const C128 v = op.in(0).Complex(from + PositionOf(index, in_dims));
    data[static_cast<size_t>(PositionOf(index, dims))] = {static_cast<Real>(v.real()), static_cast<Real>(v.imag())};
  });
  for (size_t d = 0; d < last; ++d) TransformAlong(op, dims, d, inverse, &data);
  if (real_out) {
    std::vector<std::complex<Real>> whole(static_cast<size_t>(ElementCount(lengths)));
    op.ForEachIndex(lengths, [&](const Index& index) {
      Index half = index;
      const bool mirrored = index[last] >= dims[last];
      if (mirrored) half[last] = lengths[last] - index[last];
      std::complex<Real> v = data[static_cast<size_t>(PositionOf(half, dims))];
      if (half[last] == 0 || 2 * half[last] == lengths[last]) v = v.real();
      whole[static_cast<size_t>(PositionOf(index, lengths))] = mirrored ? std::conj(v) : v;
    });
    data = std::move(whole);
    dims = lengths;
  }
  TransformAlong(op, dims, last, inverse, &data);
  op.ForEachIndex(out_dims, [&](const Index& index) {
    if (!has(dims, index)) return;
    const std::complex<Real> v = data[static_cast<size_t>(PositionOf(index, dims))];
    const int64_t i = to + PositionOf(index, out_dims);
    const C128 rounded(static_cast<double>(v.real()), static_cast<double>(v.imag()));
    real_out ? op.out().SetReal(i, rounded.real()) : op.out().SetComplex(i, rounded);
  });
}

}  // namespace

namespace fill_ops {

// `batch-norm-inference`: operand, scale, offset, mean, variance.
void BatchNormInference(Op& op) {
  const double epsilon = op.instruction.float_attr(Attr::kEpsilon);
  ForEachFeature(op, [&](int64_t f, const std::vector<int64_t>& positions) {
    const double scale = op.in(1).Real(f) / std::sqrt(op.in(4).Real(f) + epsilon);
    Normalize(op, positions, op.in(3).Real(f), scale, op.in(2).Real(f));
  });
}

// `batch-norm-training`: operand, scale, offset; results, means, variances.
void BatchNormTraining(Op& op) {
  const double epsilon = op.instruction.float_attr(Attr::kEpsilon);
  ForEachFeature(op, [&](int64_t f, const std::vector<int64_t>& positions) {
    const double count = static_cast<double>(positions.size());
    double sum = 0, squares = 0;
    for (int64_t i : positions) sum += op.in(0).Real(i);
    const double mean = sum / count;
    for (int64_t i : positions) squares += (op.in(0).Real(i) - mean) * (op.in(0).Real(i) - mean);
    const double variance = squares / count;
    Normalize(op, positions, mean, op.in(1).Real(f) / std::sqrt(variance + epsilon), op.in(2).Real(f));
    op.out(1).SetReal(f, mean);
    op.out(2).SetReal(f, variance);
  });
}

// `batch-norm-grad`: operand, scale, mean, variance, gradient of the result; gradients of operand, scale, offset.
void BatchNormGrad(Op& op) {
  const double epsilon = op.instruction.float_attr(Attr::kEpsilon);
  ForEachFeature(op, [&](int64_t f, const std::vector<int64_t>& positions) {
    const double count = static_cast<double>(positions.size()), mean = op.in(2).Real(f);
    const double inverse = 1 / std::sqrt(op.in(3).Real(f) + epsilon);
    double sum = 0, product = 0;
    for (int64_t i : positions) {
      sum += op.in(4).Real(i);
      product += op.in(4).Real(i) * (op.in(0).Real(i) - mean);
    }
    const double factor = op.in(1).Real(f) * inverse / count;
    for (int64_t i : positions) {
      const double centered = op.in(0).Real(i) - mean;
      op.out().SetReal(i, factor * (count * op.in(4).Real(i) - sum - centered * inverse * inverse * product));
    }
    op.out(1).SetReal(f, product * inverse);
    op.out(2).SetReal(f, sum);
  });
}

// `cholesky`: the other triangle is zero.
void Cholesky(Op& op) {
  if (!op.Require(IsMatrix(op.in(0)), "the operand holds no square matrices")) return;
  IsComplex(op.in(0).type()) ? CholeskyOf<C128>(op) : CholeskyOf<double>(op);
}

// `triangular-solve`
void TriangularSolve(Op& op) {
  if (!op.Require(IsMatrix(op.in(0)) && op.in(1).rank() == op.in(0).rank(), "the operands do not fit each other"))
    return;
  IsComplex(op.in(0).type()) ? Solve<C128>(op) : Solve<double>(op);
}

// `fft`: f64 and c128 are computed in long double.
void Fft(Op& op) {
  if (op.out().count() == 0) return;
  const Dims list = op.instruction.list_attr(Attr::kFftLength);
  const Index lengths(list.begin(), list.end());
  const size_t outer = op.shape.dims().size() - std::min(lengths.size(), op.shape.dims().size());
  bool fits =
      !lengths.empty() && outer + lengths.size() == op.shape.dims().size() && op.in(0).rank() == op.shape.rank();
  int64_t work = 1;
  for (int64_t n : lengths) fits = fits && n >= 0 && !__builtin_mul_overflow(work, std::max<int64_t>(n, 1), &work);
  if (!op.Require(fits && work <= op.run.options.limits.max_bytes / 64, "fft_length does not fit the operand") ||
      ElementCount(lengths) == 0) {
    return;
  }
  const Dims in = op.in(0).dims().subspan(outer), out = op.shape.dims().subspan(outer);
  const Index in_dims(in.begin(), in.end()), out_dims(out.begin(), out.end());
  const bool wide = BitsOf(ComponentType(op.out().type())) == 64;
  op.ForEach(ElementCount(op.shape.dims().first(outer)), [&](int64_t batch) {
    const int64_t from = batch * ElementCount(in_dims), to = batch * ElementCount(out_dims);
    wide ? TransformOne<long double>(op, lengths, in_dims, out_dims, from, to)
         : TransformOne<double>(op, lengths, in_dims, out_dims, from, to);
  });
}

}  // namespace fill_ops
}  // namespace hlokit::reference

// SPDX-License-Identifier: Apache-2.0
// Cholesky decomposition and triangular solve, of batches of matrices, in double: the bits of interp/reference. Eigen's
// are up to 4 times as fast (real, 512 rows), but refuse pivots of zero, multiply by reciprocals (49 / 49 is not 1) and
// sum in blocks (46 ulps off at 512 rows of c128).
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "interp/custom_calls/real_values.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/machine/run_context.h"
#include "ir/ops/attribute.h"

namespace hlokit::interp {
namespace {

double Conjugate(double v) { return v; }
std::complex<double> Conjugate(std::complex<double> v) { return std::conj(v); }
double RealPart(double v) { return v; }
double RealPart(std::complex<double> v) { return v.real(); }

template <typename N>
void Read(ElementType type, const std::byte* from, int64_t n, N* to) {
  if constexpr (std::is_same_v<N, double>) {
    ReadReals(type, from, 1, n, to);
  } else {
    ReadComplex(type, from, 1, n, to);
  }
}
template <typename N>
void Write(ElementType type, const N* from, int64_t n, std::byte* to) {
  if constexpr (std::is_same_v<N, double>) {
    WriteReals(type, from, n, to, 1);
  } else {
    WriteComplex(type, from, n, to, 1);
  }
}

// Rows between checks of the time limit; a row takes up to some microseconds.
constexpr int64_t kRowsBetweenChecks = 256;

struct CholeskyParams : ThunkParams {
  ElementType type = ElementType::kF32;
  int64_t n = 0;
  int64_t batches = 0;
  bool lower = false;
};

template <typename N>
void CholeskyOf(const CholeskyParams& p, const std::byte* in, std::byte* out, RunContext& context) {
  const int64_t n = p.n;
  const int64_t bytes = n * n * BytesOf(p.type);
  context.ParallelFor(p.batches, static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n),
                      [&](int64_t begin, int64_t end) {
                        std::vector<N> a(static_cast<size_t>(n * n));
                        std::vector<N> l(static_cast<size_t>(n * n));
                        for (int64_t batch = begin; batch < end; ++batch) {
                          Read(p.type, in + batch * bytes, n * n, a.data());
                          std::fill(l.begin(), l.end(), N{0});
                          // Computes l l^H = a, row by row; the upper form is read and written transposed. A matrix
                          // that is not positive definite makes the whole result NaN.
                          bool definite = true;
                          const auto element = [&](int64_t i, int64_t j) {
                            return p.lower ? a[i * n + j] : Conjugate(a[j * n + i]);
                          };
                          for (int64_t i = 0; i < n; ++i) {
                            for (int64_t j = 0; j <= i; ++j) {
                              if (j % kRowsBetweenChecks == kRowsBetweenChecks - 1 && context.ShouldStop()) return;
                              N sum = element(i, j);
                              for (int64_t k = 0; k < j; ++k) sum -= l[i * n + k] * Conjugate(l[j * n + k]);
                              if (i == j) {
                                const double root = std::sqrt(RealPart(sum));
                                definite = definite && root == root;
                                l[i * n + i] = root;
                              } else {
                                l[i * n + j] = sum / l[j * n + j];
                              }
                            }
                          }
                          if (!definite) {
                            std::fill(l.begin(), l.end(), N{std::numeric_limits<double>::quiet_NaN()});
                          } else if (!p.lower) {
                            for (int64_t i = 0; i < n; ++i) {
                              for (int64_t j = 0; j < n; ++j) a[j * n + i] = Conjugate(l[i * n + j]);
                            }
                            l.swap(a);
                          }
                          Write(p.type, l.data(), n * n, out + batch * bytes);
                        }
                      });
}

void RunCholesky(const CholeskyParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  if (IsComplex(p.type)) {
    CholeskyOf<std::complex<double>>(p, in[0], out[0], context);
  } else {
    CholeskyOf<double>(p, in[0], out[0], context);
  }
}

// Subtracts c * y from x, element by element.
template <typename N>
void SubtractMultiple(N c, const N* __restrict y, int64_t n, N* __restrict x) {
  for (int64_t i = 0; i < n; ++i) x[i] -= c * y[i];
}

struct TriangularSolveParams : ThunkParams {
  ElementType type = ElementType::kF32;
  int64_t n = 0;     // of the triangular matrix
  int64_t rows = 0;  // of the right-hand side
  int64_t columns = 0;
  int64_t batches = 0;
  bool left_side = false;
  bool lower = false;
  bool unit_diagonal = false;
  bool transpose = false;
  bool conjugate = false;
};

template <typename N>
void Solve(const TriangularSolveParams& p, const std::byte* a_in, const std::byte* b_in, std::byte* out,
           RunContext& context) {
  const int64_t n = p.n;
  const int64_t bytes = BytesOf(p.type);
  context.ParallelFor(p.batches, static_cast<double>(n) * static_cast<double>(p.rows * p.columns),
                      [&](int64_t begin, int64_t end) {
                        std::vector<N> a(static_cast<size_t>(n * n));
                        std::vector<N> b(static_cast<size_t>(p.rows * p.columns));
                        for (int64_t batch = begin; batch < end; ++batch) {
                          Read(p.type, a_in + batch * n * n * bytes, n * n, a.data());
                          Read(p.type, b_in + batch * p.rows * p.columns * bytes, p.rows * p.columns, b.data());
                          // Solves op(a) x = b for each column of b, or x op(a) = b, i.e. op(a)^T x^T = b^T, for each
                          // row.
                          const bool transposed = p.transpose == p.left_side;
                          const auto element = [&](int64_t i, int64_t j) {
                            const N v = transposed ? a[j * n + i] : a[i * n + j];
                            return p.conjugate ? Conjugate(v) : v;
                          };
                          const bool forward = p.lower != transposed;  // the first equation has one unknown
                          // Many right-hand sides are solved together, row by row: rows are contiguous.
                          constexpr int64_t kManyColumns = 16;
                          const bool by_row = p.left_side && p.columns >= kManyColumns;
                          for (int64_t t = 0; by_row && t < n; ++t) {
                            if (context.ShouldStop()) return;
                            const int64_t i = forward ? t : n - 1 - t;
                            N* const x = b.data() + i * p.columns;
                            for (int64_t u = 0; u < t; ++u) {
                              const int64_t j = forward ? u : n - 1 - u;
                              SubtractMultiple(element(i, j), b.data() + j * p.columns, p.columns, x);
                            }
                            for (int64_t s = 0; !p.unit_diagonal && s < p.columns; ++s) x[s] = x[s] / element(i, i);
                          }
                          const int64_t systems = by_row ? 0 : p.left_side ? p.columns : p.rows;
                          const int64_t first = p.left_side ? 1 : p.columns;  // from one system to the next
                          const int64_t step = p.left_side ? p.columns : 1;   // from one unknown to the next
                          for (int64_t s = 0; s < systems; ++s) {
                            N* x = b.data() + s * first;
                            for (int64_t t = 0; t < n; ++t) {
                              if (t % kRowsBetweenChecks == kRowsBetweenChecks - 1 && context.ShouldStop()) return;
                              const int64_t i = forward ? t : n - 1 - t;
                              N sum = x[i * step];
                              for (int64_t u = 0; u < t; ++u) {
                                const int64_t j = forward ? u : n - 1 - u;
                                sum -= element(i, j) * x[j * step];
                              }
                              x[i * step] = p.unit_diagonal ? sum : sum / element(i, i);
                            }
                          }
                          Write(p.type, b.data(), p.rows * p.columns, out + batch * p.rows * p.columns * bytes);
                        }
                      });
}

void RunTriangularSolve(const TriangularSolveParams& p, const std::byte* const* in, std::byte* const* out,
                        RunContext& context) {
  if (IsComplex(p.type)) {
    Solve<std::complex<double>>(p, in[0], in[1], out[0], context);
  } else {
    Solve<double>(p, in[0], in[1], out[0], context);
  }
}

int64_t Batches(Shape shape) {
  int64_t batches = 1;
  for (int64_t d = 0; d + 2 < shape.rank(); ++d) batches *= shape.dim(d);
  return batches;
}

bool IsMatrixType(ElementType type) { return IsFloat(type) || IsComplex(type); }

}  // namespace

void PrepareCholesky(CompiledComputationBuilder& b) {
  const View view = b.MakeDense(b.operand(0));
  const int64_t rank = view.shape.rank();
  auto params = std::make_unique<CholeskyParams>();
  params->type = view.type();
  params->lower = b.instruction().bool_attr(Attr::kLower);
  if (rank < 2 || view.shape.dim(rank - 1) != view.shape.dim(rank - 2) || !IsMatrixType(params->type)) {
    b.FailMismatch("square matrices in the last two dimensions of the operand");
    return;
  }
  params->n = view.shape.dim(rank - 1);
  params->batches = Batches(view.shape);
  b.Emit(kKernel<RunCholesky>, std::move(params), {&view, 1});
}

void PrepareTriangularSolve(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const View views[] = {b.MakeDense(b.operand(0)), b.MakeDense(b.operand(1))};
  const Shape a = views[0].shape;
  const Shape x = views[1].shape;
  auto params = std::make_unique<TriangularSolveParams>();
  params->type = views[1].type();
  params->left_side = instruction.bool_attr(Attr::kLeftSide);
  params->lower = instruction.bool_attr(Attr::kLower);
  params->unit_diagonal = instruction.bool_attr(Attr::kUnitDiagonal);
  const auto transpose = instruction.enum_attr(Attr::kTransposeA, TriangularTranspose::kNoTranspose);
  params->conjugate = transpose == TriangularTranspose::kAdjoint;
  params->transpose = params->conjugate || transpose == TriangularTranspose::kTranspose;
  const int64_t rank = a.rank();
  if (rank < 2 || x.rank() != rank || a.dim(rank - 1) != a.dim(rank - 2) || Batches(a) != Batches(x) ||
      x.dim(params->left_side ? rank - 2 : rank - 1) != a.dim(rank - 1) || views[0].type() != params->type ||
      !IsMatrixType(params->type)) {
    b.FailMismatch("square matrices in operand 0 and a matching batch and dimension in operand 1");
    return;
  }
  params->n = a.dim(rank - 1);
  params->rows = x.dim(rank - 2);
  params->columns = x.dim(rank - 1);
  params->batches = Batches(x);
  b.Emit(kKernel<RunTriangularSolve>, std::move(params), views);
}

}  // namespace hlokit::interp

// SPDX-License-Identifier: Apache-2.0
// Decompositions of square matrices as loops: LU with partial pivoting, for determinants and linear systems, and
// Jacobi's method for symmetric eigenvalues. Rows and columns are selected by masks, so that batches need no gathers.
#include <algorithm>
#include <limits>

#include "ir/core/str_cat.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/lowering/arithmetic.h"
#include "tracer/lowering/loop.h"
#include "tracer/lowering/matrices.h"

namespace hlokit::lazy::lower {
namespace {

// Checks argument `arg` of an op that torch calls `name` in messages. square: whether it must have as many rows as
// columns.
bool IsMatrixBatch(LoweringContext& n, size_t arg, std::string_view name, bool square) {
  const XlaOp x = n.in(arg);
  const auto fail = [&](std::string message) {
    n.emitter().Fail(absl::InvalidArgumentError(StrCat(name, ": ", message)));
    return false;
  };
  if (x.rank() < 2) return fail("The input tensor A must have at least 2 dimensions.");
  if (square && x.size(-1) != x.size(-2)) {
    return fail(
        StrCat("A must be batches of square matrices, but they are ", x.size(-2), " by ", x.size(-1), " matrices"));
  }
  if (x.type() != ElementType::kF32 && x.type() != ElementType::kF64 && !IsComplex(x.type())) {
    if (ScalarTypeCategory(x.type()) == 2) {
      return fail(StrCat("Low precision dtypes not supported. Got ", TorchTypeName(x.type())));
    }
    return fail(StrCat("Expected a floating point or complex tensor as input. Got ", TorchTypeName(x.type())));
  }
  return true;
}
bool IsSquareBatch(LoweringContext& n, size_t arg, std::string_view name) { return IsMatrixBatch(n, arg, name, true); }

// Returns the size by which LAPACK chooses pivots: of a complex number the sum of those of its parts.
XlaOp PivotSize(XlaOp x) {
  if (!IsComplex(x.type())) return Abs(x);
  return Abs(Unary(Opcode::kReal, x)) + Abs(Unary(Opcode::kImag, x));
}

DimVector BatchDims(XlaOp x) {
  DimVector dims = x.dims();
  dims.resize(dims.size() - 2);
  return dims;
}

XlaOp Rows(XlaOp x) { return IotaOf(x.emitter(), ElementType::kS32, x.dims(), x.rank() - 2); }
XlaOp Columns(XlaOp x) { return IotaOf(x.emitter(), ElementType::kS32, x.dims(), x.rank() - 1); }
// Returns the only element along `dim` where the mask holds; the dimension keeps size 1.
XlaOp Pick(XlaOp x, XlaOp mask, int64_t dim) {
  return Reduce(Opcode::kAdd, Select(mask, x, Number(x, 0)), {dim}, true);
}
XlaOp Diagonal(XlaOp x) {
  return Reduce(Opcode::kAdd, Select(Eq(Rows(x), Columns(x)), x, Number(x, 0)), {x.rank() - 2});
}

struct LuParts {
  XlaOp lu;           // [.., m, n]: U, and below the diagonal L without its unit diagonal
  XlaOp permutation;  // [.., m, 1] s32: the row of the matrix at each place
  XlaOp sign;         // [.., 1, 1] of the permutation
  XlaOp pivots;       // [.., m, 1] s32: the row, counted from 1, that each of the first min(m, n) was exchanged with
};

std::vector<XlaOp> EliminateColumn(absl::Span<const XlaOp> state) {
  const XlaOp j = state[0], a = state[1], order = state[2], sign = state[3];
  const int64_t row_dim = a.rank() - 2, column_dim = a.rank() - 1;
  const XlaOp rows = Rows(a), columns = Columns(a), places = Rows(order);
  // The pivot: the first of the largest elements from the diagonal down; NaN counts as the largest.
  const XlaOp column = Pick(a, Eq(columns, j), column_dim);
  const XlaOp sizes = PivotSize(column);
  const XlaOp candidates = Select(Ge(places, j), sizes, Number(sizes, -1));
  const XlaOp is_best = Eq(candidates, Reduce(Opcode::kMaximum, candidates, {row_dim}, true)) | IsNan(candidates);
  const XlaOp p = Reduce(Opcode::kMinimum, Select(is_best, places, Number(places, a.size(-2))), {row_dim}, true);
  const XlaOp row_p = Pick(a, Eq(rows, p), row_dim), row_j = Pick(a, Eq(rows, j), row_dim);
  const XlaOp swapped = Select(Eq(rows, j), row_p, Select(Eq(rows, p), row_j, a));
  const XlaOp order_p = Pick(order, Eq(places, p), row_dim), order_j = Pick(order, Eq(places, j), row_dim);
  // L's column, without elements where the pivot is 0, and the rest of the rows below.
  const XlaOp pivot = Pick(row_p, Eq(Columns(row_p), j), column_dim);
  const XlaOp below = Pick(swapped, Eq(columns, j), column_dim);
  const XlaOp none = Eq(pivot, Number(pivot, 0)) | !Gt(places, j);
  const XlaOp factor = Select(none, Number(below, 0), below / Select(none, Number(below, 1), pivot));
  const XlaOp lower = Gt(rows, j);
  const XlaOp next = Select(lower & Gt(columns, j), swapped - factor * row_p,
                            Select(lower & Eq(columns, j), BroadcastTo(factor, a.dims()), swapped));
  return {j + Number(j, 1), next, Select(Eq(places, j), order_p, Select(Eq(places, p), order_j, order)),
          Select(Eq(p, j), sign, -sign), Select(Eq(places, j), p + Number(p, 1), state[4])};
}

LuParts LuOf(XlaOp x) {
  XlaEmitter& e = x.emitter();
  DimVector line = BatchDims(x), one = BatchDims(x);
  line.insert(line.end(), {x.size(-2), 1});
  one.insert(one.end(), {1, 1});
  const int64_t n = std::min(x.size(-2), x.size(-1));
  const std::vector<XlaOp> end = Loop(
      e,
      {Constant(e, ElementType::kS32, 0), x, IotaOf(e, ElementType::kS32, line, x.rank() - 2),
       Full(e, x.type(), one, 1), Full(e, ElementType::kS32, line, 0)},
      [&](absl::Span<const XlaOp> state) { return Lt(state[0], Number(state[0], n)); }, EliminateColumn);
  return {end[1], end[2], end[3], end[4]};
}

}  // namespace

void LinalgDet(LoweringContext& n) {
  if (!IsSquareBatch(n, 0, "linalg.det")) return;
  const XlaOp x = n.in(0);
  const LuParts parts = LuOf(x);
  const XlaOp diagonal = Select(Eq(Rows(x), Columns(x)), parts.lu, Number(x, 1));
  const XlaOp product = Reduce(Opcode::kMultiply, diagonal, {x.rank() - 2, x.rank() - 1});
  n.Return(product * Reshape(parts.sign, BatchDims(x)));
}
void LinalgSlogdet(LoweringContext& n) {
  if (!IsSquareBatch(n, 0, "linalg.slogdet")) return;
  const XlaOp x = n.in(0);
  const LuParts parts = LuOf(x);
  const XlaOp diagonal = Diagonal(parts.lu);
  const int64_t dim = x.rank() - 2;
  const XlaOp signs = Reduce(Opcode::kMultiply, Unary(Opcode::kSign, diagonal), {dim});
  n.Return(signs * Reshape(parts.sign, BatchDims(x)), Reduce(Opcode::kAdd, Log(Abs(diagonal)), {dim}));
}
// A [.., m, n] -> LU, pivots [.., min(m, n)] and permutation [.., m], and the number of the first pivot that is 0,
// counted from 1, or 0
void LuNode(LoweringContext& n) {
  if (!IsMatrixBatch(n, 0, "linalg.lu_factor", false)) return;
  const XlaOp x = n.in(0);
  const int64_t rows = x.size(-2), size = std::min(rows, x.size(-1));
  const LuParts parts = LuOf(x);
  DimVector all = BatchDims(x), line = BatchDims(x);
  all.push_back(rows);
  line.push_back(size);
  const int64_t last = x.rank() - 2;
  const XlaOp square = SliceDim(SliceDim(parts.lu, x.rank() - 2, 0, size), x.rank() - 1, 0, size);
  const XlaOp diagonal = Diagonal(square);
  const XlaOp places = IotaOf(n.emitter(), ElementType::kS32, line, last) + Constant(n.emitter(), ElementType::kS32, 1);
  const XlaOp missing = Eq(diagonal, Number(diagonal, 0));
  const XlaOp first = Reduce(Opcode::kMinimum, Select(missing, places, Number(places, size + 1)), {last});
  n.Return(parts.lu, SliceDim(Reshape(parts.pivots, all), last, 0, size), Reshape(parts.permutation, all));
  n.Return(Select(Gt(first, Number(first, size)), Number(first, 0), first));
}
// Pivots [.., k] as of LU, m -> the permutation [.., m] s32: the row of the matrix at each place
void PivotsToPermutation(LoweringContext& n) {
  const XlaOp pivots = lazy::Cast(n.in(0), ElementType::kS32);
  const int64_t m = n.int_arg(1), dim = pivots.rank() - 1;
  if (!pivots.ok()) return;
  if (dim < 0 || pivots.size(dim) > m) {
    n.emitter().Fail("more pivots than rows");
    return;
  }
  XlaEmitter& e = n.emitter();
  DimVector line = pivots.dims();
  line.back() = m;
  const std::vector<XlaOp> end = Loop(
      e, {Constant(e, ElementType::kS32, 0), IotaOf(e, ElementType::kS32, line, dim), pivots},
      [&](absl::Span<const XlaOp> state) { return Lt(state[0], Number(state[0], state[2].size(dim))); },
      [&](absl::Span<const XlaOp> state) -> std::vector<XlaOp> {
        const XlaOp j = state[0], order = state[1];
        const auto places = [&](XlaOp x) { return IotaOf(x.emitter(), ElementType::kS32, x.dims(), dim); };
        const XlaOp p = Pick(state[2], Eq(places(state[2]), j), dim) - 1.0;
        const XlaOp at_j = Eq(places(order), j), at_p = Eq(places(order), p);
        const XlaOp of_j = Pick(order, at_j, dim), of_p = Pick(order, at_p, dim);
        return {j + Number(j, 1), Select(at_j, of_p, Select(at_p, of_j, order)), state[2]};
      });
  n.Return(end[1]);
}
// A [.., n, n], B [.., n, k] -> X with A X = B
void LinearSolve(LoweringContext& n) {
  if (!IsSquareBatch(n, 0, "linalg.solve")) return;
  XlaOp a = n.in(0), b = n.in(1);
  if (b.type() != a.type()) {
    n.emitter().Fail(absl::InvalidArgumentError(
        StrCat("linalg.solve: Expected A and B to have the same dtype, but found A of type ", TorchTypeName(a.type()),
               " and B of type ", TorchTypeName(b.type()), " instead")));
    return;
  }
  if (b.rank() < 2 || b.size(-2) != a.size(-1)) {
    n.emitter().Fail(
        absl::InvalidArgumentError(StrCat("linalg.solve: Incompatible shapes of A and B for the equation AX = B (",
                                          a.size(-2), "x", a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")")));
    return;
  }
  AlignBatch(&a, &b);
  if (!a.ok() || !b.ok() || b.elements() == 0) return n.Return(b);
  const LuParts parts = LuOf(a);
  const XlaOp rows = BatchedProduct(lazy::Cast(Eq(Columns(a), parts.permutation), a.type()), b);
  const XlaOp y = SolveTriangularSystem(parts.lu, rows, {true, true, true, false});
  n.Return(SolveTriangularSystem(parts.lu, y, {true, false, false, false}));
}

// ---- Jacobi's method: rotations of all pairs p < q of columns, until they have no effect ----

namespace {

constexpr int64_t kMaxJacobiSize = 256;
// Converges quadratically: few sweeps over all pairs are needed.
constexpr int64_t kJacobiSweeps = 12;

int64_t PairsOf(int64_t n) { return n * (n - 1) / 2; }

// Returns the step-th pair of n columns in row-major order, from tables.
std::pair<XlaOp, XlaOp> PairAt(XlaOp step, int64_t n) {
  XlaEmitter& e = step.emitter();
  const int64_t pairs = PairsOf(n);
  Literal first = Literal::Zeros(e.ArrayShape(ElementType::kS32, {pairs})), second = first;
  int64_t k = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j, ++k) {
      first.values<int32_t>()[k] = static_cast<int32_t>(i);
      second.values<int32_t>()[k] = static_cast<int32_t>(j);
    }
  }
  const XlaOp number = Binary(Opcode::kRemainder, step, Number(step, pairs));
  const XlaOp chosen = Eq(IotaOf(e, ElementType::kS32, {pairs}, 0), number);
  const auto place = [&](const Literal& table) {
    return Reshape(Pick(e.Take(e.builder().Constant(table)), chosen, 0), {});
  };
  return {place(first), place(second)};
}

struct PlaneRotation {
  XlaOp cosine, sine;
};

// Returns the rotation with (bb - aa) / (2 ab) = cot(2 angle): it makes columns with squared norms aa, bb and inner
// product ab orthogonal.
PlaneRotation RotationFor(XlaOp aa, XlaOp bb, XlaOp ab) {
  const XlaOp zero = Number(ab, 0), one = Number(ab, 1), done = Eq(ab, zero);
  const XlaOp theta = (bb - aa) / (2.0 * Select(done, one, ab));
  const XlaOp t = Select(Ge(theta, zero), one, -one) / (Abs(theta) + Sqrt(theta * theta + 1.0));
  return {Select(done, one, Rsqrt(t * t + 1.0)), Select(done, zero, Rsqrt(t * t + 1.0) * t)};
}

// Rotates the parts of x where `index` is p and q, along `dim`; first multiplies the second one by `phase`.
XlaOp Rotated(XlaOp x, XlaOp index, int64_t dim, const std::pair<XlaOp, XlaOp>& pair, const PlaneRotation& by,
              XlaOp phase) {
  const XlaOp at_p = Eq(index, pair.first), at_q = Eq(index, pair.second);
  const XlaOp p = Pick(x, at_p, dim), q = IsComplex(x.type()) ? Pick(x, at_q, dim) * phase : Pick(x, at_q, dim);
  const XlaOp cosine = lazy::Cast(by.cosine, x.type()), sine = lazy::Cast(by.sine, x.type());
  return Select(at_p, p * cosine - q * sine, Select(at_q, p * sine + q * cosine, x));
}

// One-hot matrices that bring columns into the given order.
XlaOp ColumnOrder(XlaOp order, ElementType type) {
  DimVector line = order.dims(), square = order.dims();
  square.push_back(order.size(-1));
  line.insert(line.end() - 1, 1);
  const XlaOp rows = IotaOf(order.emitter(), ElementType::kS32, square, order.rank() - 1);
  return lazy::Cast(Eq(rows, Reshape(order, line)), type);
}

// Rotates the pair (p, q) of rows and columns so that the element (p, q) vanishes. State: step, matrix, vectors.
std::vector<XlaOp> RotatePair(absl::Span<const XlaOp> state) {
  const XlaOp step = state[0], a = state[1], v = state[2];
  const int64_t row_dim = a.rank() - 2, column_dim = a.rank() - 1;
  const std::pair<XlaOp, XlaOp> pair = PairAt(step, a.size(-1));
  const auto& [p, q] = pair;
  const XlaOp rows = Rows(a), columns = Columns(a);
  const XlaOp row_p = Pick(a, Eq(rows, p), row_dim), row_q = Pick(a, Eq(rows, q), row_dim);
  const auto element = [&](XlaOp row, XlaOp j) { return Pick(row, Eq(Columns(row), j), column_dim); };
  // Of a Hermitian matrix the element is made real by a phase of q.
  const XlaOp between = element(row_p, q);
  const XlaOp size = IsComplex(a.type()) ? Abs(between) : between;
  const XlaOp phase = PhaseOf(between, size);
  const PlaneRotation by = RotationFor(RealPart(element(row_p, p)), RealPart(element(row_q, q)), size);
  // The rotated element is exactly 0.
  const XlaOp rotated =
      Rotated(Rotated(a, columns, column_dim, pair, by, Conjugate(phase)), rows, row_dim, pair, by, phase);
  const XlaOp vanishes = (Eq(rows, p) & Eq(columns, q)) | (Eq(rows, q) & Eq(columns, p));
  return {step + Number(step, 1), Select(vanishes, Number(a, 0), rotated),
          Rotated(v, columns, column_dim, pair, by, Conjugate(phase))};
}

}  // namespace

// self, UPLO
void LinalgEigh(LoweringContext& n) {
  if (!IsSquareBatch(n, 0, "linalg.eigh")) return;
  const XlaOp x = n.in(0);
  XlaEmitter& e = n.emitter();
  std::string side = n.str(1);
  if (side != "L" && side != "U" && side != "l" && side != "u") {
    e.Fail(absl::InvalidArgumentError(StrCat("Expected UPLO argument to be 'L' or 'U', but got ", side)));
    return;
  }
  const int64_t size = x.size(-1);
  if (size > kMaxJacobiSize) return (void)e.Fail("linalg.eigh: matrices of at most 256 x 256 are supported");
  // One triangle determines the matrix.
  const XlaOp rows = Rows(x), columns = Columns(x);
  const XlaOp given = side == "L" || side == "l" ? Ge(rows, columns) : Le(rows, columns);
  const XlaOp whole = Select(given, x, Conjugate(SwapLastDims(x)));
  const XlaOp matrix =
      IsComplex(x.type()) ? Select(Eq(rows, columns), lazy::Cast(RealPart(x), x.type()), whole) : whole;
  const XlaOp identity = lazy::Cast(Eq(rows, columns), x.type());
  if (x.elements() == 0 || size == 1) {
    return n.Return(RealPart(Reduce(Opcode::kAdd, matrix, {x.rank() - 1})), identity);
  }
  const int64_t steps = kJacobiSweeps * PairsOf(size);
  const std::vector<XlaOp> end = Loop(
      e, {Constant(e, ElementType::kS32, 0), matrix, identity},
      [&](absl::Span<const XlaOp> state) {
        const XlaOp a = state[1];
        const XlaOp apart = Select(Eq(Rows(a), Columns(a)), Number(a, 0), a);
        const XlaOp left = Reduce(Opcode::kOr, Ne(apart, Number(a, 0)), AllDims(a));
        return Lt(state[0], Number(state[0], steps)) & left;
      },
      RotatePair);
  const XlaOp values = RealPart(Diagonal(end[1]));
  const int64_t last = values.rank() - 1;
  const std::vector<XlaOp> sorted =
      Sort({values, IotaOf(e, ElementType::kS32, values.dims(), last)}, last, ComparisonDirection::kLt);
  n.Return(sorted[0], BatchedProduct(end[2], ColumnOrder(sorted[1], x.type())));
}

}  // namespace hlokit::lazy::lower

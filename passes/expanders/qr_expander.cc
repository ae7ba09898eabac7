// SPDX-License-Identifier: Apache-2.0
// Expands the custom-calls of XLA for QR decompositions into loops over the columns:
//
//   (a', taus) = Qr(a)                                        Householder reflections, as LAPACK's geqrf
//   q = ProductOfElementaryHouseholderReflectors(a', taus)    their product, as LAPACK's orgqr
//
// Reflection j is I - taus[j] v vT, where v is zero before element j, 1 there, and a'[:, j] after it. a' holds R on and
// above the diagonal. Golub and Van Loan, Matrix Computations, algorithm 5.2.1. Shapes are those of the whole matrix in
// each iteration; masks select the part that changes.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "passes/core/pass_row.h"
#include "passes/expanders/array_builder.h"
#include "passes/expanders/expanders.h"
#include "passes/expanders/loop_builder.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

using Id = InstructionId;
using Dims = std::vector<int64_t>;

// Sizes of a batch of matrices, and positions of their dimensions in an array of all of them.
struct MatrixSizes {
  explicit MatrixSizes(Shape matrix)
      : batch(matrix.dims().begin(), matrix.dims().end() - 2),
        rows(matrix.dim(matrix.rank() - 2)),
        columns(matrix.dim(matrix.rank() - 1)),
        row_dim(matrix.rank() - 2),
        column_dim(matrix.rank() - 1) {}

  Dims With(std::initializer_list<int64_t> sizes) const {
    Dims all = batch;
    all.insert(all.end(), sizes);
    return all;
  }
  // Positions of the batch dimensions, then of `dim`.
  Dims Positions(int64_t dim) const {
    Dims positions = Sequence(row_dim);
    positions.push_back(dim);
    return positions;
  }

  Dims batch;
  int64_t rows, columns, row_dim, column_dim;
};

// Returns a - tau v (vT masked), the reflection of the columns of `a` that `masked` keeps. tau: for each matrix.
Id Reflect(ArrayBuilder& m, const MatrixSizes& sizes, Id a, Id masked, Id v, Id tau) {
  const Dims all = m.SizesOf(a);
  const Id by_row = m.Broadcast(v, all, sizes.Positions(sizes.row_dim));
  const Id products = m.Sum(m.Multiply(by_row, masked), {sizes.row_dim});
  const Id by_column = m.Broadcast(products, all, sizes.Positions(sizes.column_dim));
  const Id scale = m.Broadcast(tau, all, Sequence(sizes.row_dim));
  return m.Subtract(a, m.Multiply(scale, m.Multiply(by_row, by_column)));
}

// One step of the decomposition, on column `j`: `state` is the matrix and taus.
std::vector<Id> EliminateColumn(Builder& b, const MatrixSizes& sizes, Id j, const std::vector<Id>& state) {
  ArrayBuilder m(&b);
  const Id a = state[0], taus = state[1];
  const Dims column = sizes.With({sizes.rows}), all = m.SizesOf(a);
  const Id x = m.At(a, sizes.column_dim, j);
  const Id row = m.Iota(column, sizes.row_dim), diagonal = m.Broadcast(j, column, {});
  const Id is_after = m.Compare(ComparisonDirection::kGt, row, diagonal);
  const Id is_at = m.Compare(ComparisonDirection::kEq, row, diagonal);
  const Id zeros = m.Like(x, 0), after = m.Select(is_after, x, zeros);
  const Id alpha = m.Sum(m.Select(is_at, x, zeros), {sizes.row_dim});
  const Id sigma = m.Sum(m.Square(after), {sizes.row_dim});
  const Id norm = m.Sqrt(m.Add(m.Square(alpha), sigma));
  const Id zero = m.Like(sigma, 0), one = m.Like(sigma, 1);
  // Nothing to eliminate: no reflection.
  const Id is_done = m.Compare(ComparisonDirection::kEq, sigma, zero);
  const Id is_negative = m.Compare(ComparisonDirection::kLt, alpha, zero);
  const Id beta = m.Select(is_done, alpha, m.Select(is_negative, norm, m.Negate(norm)));
  const Id safe_beta = m.Select(is_done, one, beta), change = m.Subtract(beta, alpha);
  const Id tau = m.Select(is_done, zero, m.Divide(change, safe_beta));
  const Id divisor = m.Select(is_done, one, m.Subtract(alpha, beta));
  const Dims batch = Sequence(sizes.row_dim);
  const Id scaled = m.Divide(after, m.Broadcast(divisor, column, batch));
  const Id v = m.Select(is_at, m.Like(x, 1), scaled);
  // Columns after this one are reflected; this one is known.
  const Id index = m.Iota(all, sizes.column_dim), current = m.Broadcast(j, all, {});
  const Id none = m.Like(a, 0);
  const Id later = m.Select(m.Compare(ComparisonDirection::kGt, index, current), a, none);
  const Id reflected = Reflect(m, sizes, a, later, v, tau);
  const Id eliminated = m.Select(is_after, v, m.Select(is_at, m.Broadcast(beta, column, batch), x));
  const Id column_now = m.Broadcast(eliminated, all, sizes.Positions(sizes.row_dim));
  const Id result = m.Select(m.Compare(ComparisonDirection::kEq, index, current), column_now, reflected);
  const Dims of_taus = m.SizesOf(taus);
  const Id number = m.Iota(of_taus, sizes.row_dim);
  const Id is_current = m.Compare(ComparisonDirection::kEq, number, m.Broadcast(j, of_taus, {}));
  return {result, m.Select(is_current, m.Broadcast(tau, of_taus, batch), taus)};
}

// Multiplies q by one more reflection from the left. `state`: q, the vectors and taus.
std::vector<Id> MultiplyReflection(Builder& b, const MatrixSizes& sizes, Id j, const std::vector<Id>& state) {
  ArrayBuilder m(&b);
  const Dims column = sizes.With({sizes.rows});
  const Id x = m.At(state[1], sizes.column_dim, j), tau = m.At(state[2], sizes.row_dim, j);
  const Id row = m.Iota(column, sizes.row_dim), diagonal = m.Broadcast(j, column, {});
  const Id zeros = m.Like(x, 0), ones = m.Like(x, 1);
  const Id at = m.Select(m.Compare(ComparisonDirection::kEq, row, diagonal), ones, zeros);
  const Id v = m.Select(m.Compare(ComparisonDirection::kGt, row, diagonal), x, at);
  return {Reflect(m, sizes, state[0], state[0], v, tau), state[1], state[2]};
}

bool IsCall(Instruction i, std::string_view target, int64_t operands) {
  return i.string_attr(Attr::kCustomCallTarget) == target && i.operand_count() == operands;
}

// Returns true if `x` is a batch of real matrices that are not empty.
bool IsMatrix(Shape x) {
  return x.IsArray() && x.rank() >= 2 && IsFloat(x.element_type()) && !x.has_dynamic_dims() && x.element_count() != 0 &&
         x.dim(x.rank() - 2) <= INT32_MAX && x.dim(x.rank() - 1) <= INT32_MAX;
}

// Returns true if `taus` has a number for each of up to min(rows, columns) reflections of each matrix.
bool AreTaus(Shape taus, Shape matrix) {
  if (!taus.IsArray() || taus.rank() != matrix.rank() - 1) return false;
  std::vector<int64_t> sizes(matrix.dims().begin(), matrix.dims().end() - 1);
  const int64_t count = sizes.back() = taus.dim(taus.rank() - 1);
  return IsArrayOf(taus, matrix.element_type(), sizes) && count > 0 &&
         count <= std::min(matrix.dim(matrix.rank() - 2), matrix.dim(matrix.rank() - 1));
}

bool ExpandQr(PatternRewriter& rewriter, Instruction call) {
  if (!IsCall(call, "Qr", 1) || !rewriter.IsReplaceable(call) || !call.shape().IsTuple() ||
      call.shape().tuple_size() != 2) {
    return false;
  }
  const Shape matrix = call.operand(0).shape(), taus = call.shape().element(1);
  if (!IsMatrix(matrix) || !IsArrayOf(call.shape().element(0), matrix.element_type(), matrix.dims()) ||
      !AreTaus(taus, matrix)) {
    return false;
  }
  const MatrixSizes sizes(matrix);
  const ElementType type = WideTypeOf(rewriter, matrix.element_type());
  ArrayBuilder m(&rewriter);
  const Shape wide_taus = rewriter.shapes().Array(type, taus.dims());
  const Id a = m.InDefaultLayout(rewriter.MakeConvert(call.operand(0).id(), type));
  const Id zeros = rewriter.MakeSplat(wide_taus, rewriter.MakeScalarConstant(type, 0));
  const Id loop = MakeCountedLoop(
      rewriter, call, taus.dim(taus.rank() - 1), {a, zeros},
      [&](Builder& b, Id j, const std::vector<Id>& state) { return EliminateColumn(b, sizes, j, state); });
  Id results[2];
  for (int64_t k = 0; k < 2; ++k) {
    const Id result = rewriter.MakeConvert(rewriter.MakeElement(loop, k + 1), matrix.element_type());
    results[k] = m.InLayoutOf(call.shape().element(k), result);
  }
  return rewriter.Replace(call, rewriter.MakeTuple(results));
}

bool ExpandHouseholderProduct(PatternRewriter& rewriter, Instruction call) {
  if (!IsCall(call, "ProductOfElementaryHouseholderReflectors", 2) || !rewriter.IsReplaceable(call)) return false;
  const Shape matrix = call.operand(0).shape(), taus = call.operand(1).shape();
  if (!IsMatrix(matrix) || !IsArrayOf(call.shape(), matrix.element_type(), matrix.dims()) || !AreTaus(taus, matrix)) {
    return false;
  }
  const MatrixSizes sizes(matrix);
  const ElementType type = WideTypeOf(rewriter, matrix.element_type());
  ArrayBuilder m(&rewriter);
  const Dims all = m.SizesOf(call.operand(0).id());
  const Id column = m.Iota(all, sizes.column_dim), row = m.Iota(all, sizes.row_dim);
  const Id identity = m.builder().MakeConvert(m.Compare(ComparisonDirection::kEq, row, column), type);
  const int64_t count = taus.dim(taus.rank() - 1);
  // The last reflection is applied first.
  const Id loop =
      MakeCountedLoop(rewriter, call, count,
                      {identity, m.InDefaultLayout(rewriter.MakeConvert(call.operand(0).id(), type)),
                       m.InDefaultLayout(rewriter.MakeConvert(call.operand(1).id(), type))},
                      [&](Builder& b, Id counter, const std::vector<Id>& state) {
                        const Id last = b.MakeScalarConstant(ElementType::kS32, static_cast<double>(count - 1));
                        return MultiplyReflection(b, sizes, b.MakeLike(Opcode::kSubtract, {last, counter}), state);
                      });
  const Id product = rewriter.MakeConvert(rewriter.MakeElement(loop, 1), matrix.element_type());
  return rewriter.Replace(call, m.InLayoutOf(call.shape(), product));
}

}  // namespace

void AddQrExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kCustomCall}, "QR decompositions expanded", ExpandQr);
  rules->Add({Opcode::kCustomCall}, "products of Householder reflections expanded", ExpandHouseholderProduct);
}

HLOKIT_PASS(QrExpander) {
  return {.name = "qr-expander",
          .category = "expand",
          .summary = "expand QR decompositions of real matrices",
          .doc =
              "The custom-calls Qr and ProductOfElementaryHouseholderReflectors become loops of Householder "
              "reflections, one for each column. XLA's works in blocks of 128 columns, with a product of each "
              "block's reflections, and on complex matrices, which stay here.",
          .example = R"(ENTRY e {
  a = f32[4,3] parameter(0)
  qr = (f32[4,3], f32[3]) custom-call(a), custom_call_target="Qr", metadata={op_name="f/qr"}
  r = f32[4,3] get-tuple-element(qr), index=0
  taus = f32[3] get-tuple-element(qr), index=1
  ROOT q = f32[4,3] custom-call(r, taus), custom_call_target="ProductOfElementaryHouseholderReflectors", metadata={op_name="f/q"}
})",
          .options = {WideOption()},
          .tolerance = 1e-3,
          .create = MakePass<RulesOf<AddQrExpanderRules, RewriteScope::kSequential>>};
}

}  // namespace hlokit

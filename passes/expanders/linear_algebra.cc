// SPDX-License-Identifier: Apache-2.0
// Expands triangular solves and Cholesky factorizations of small matrices, row by row and column by column, into slices
// and dots. Larger ones stay: their kernels are blocked.
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "passes/core/pass_row.h"
#include "passes/expanders/expanders.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

// Batches of matrices: the last two dimensions are rows and columns.
class Matrices {
 public:
  Matrices(PatternRewriter& rewriter, Shape like)
      : rewriter_(rewriter),
        type_(like.element_type()),
        rank_(like.rank()),
        batch_(like.dims().begin(), like.dims().end() - 2) {}

  int64_t Rows(InstructionId m) const { return rewriter_.at(m).shape().dim(rank_ - 2); }
  int64_t Columns(InstructionId m) const { return rewriter_.at(m).shape().dim(rank_ - 1); }

  InstructionId Slice(InstructionId m, int64_t row, int64_t row_end, int64_t column, int64_t column_end) {
    std::vector<int64_t> ranges;
    for (int64_t size : batch_) ranges.insert(ranges.end(), {0, size, 1});
    ranges.insert(ranges.end(), {row, row_end, 1, column, column_end, 1});
    const AttrValue attrs[] = {rewriter_.List(Attr::kSlice, ranges)};
    return rewriter_.Make(Opcode::kSlice, Sized(row_end - row, column_end - column), {m}, attrs);
  }
  InstructionId Transpose(InstructionId m) {
    std::vector<int64_t> order(static_cast<size_t>(rank_));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    const AttrValue attrs[] = {rewriter_.List(Attr::kDimensions, order)};
    return rewriter_.Make(Opcode::kTranspose, Sized(Columns(m), Rows(m)), {m}, attrs);
  }
  // Returns a * b, or a * transpose(b).
  InstructionId Product(InstructionId a, InstructionId b, bool transposed) {
    std::vector<int64_t> batch(batch_.size());
    std::iota(batch.begin(), batch.end(), 0);
    const int64_t contracted = transposed ? rank_ - 1 : rank_ - 2;
    std::vector<AttrValue> attrs = {rewriter_.List(Attr::kLhsContractingDims, {rank_ - 1}),
                                    rewriter_.List(Attr::kRhsContractingDims, {contracted})};
    if (!batch.empty()) {
      attrs.push_back(rewriter_.List(Attr::kLhsBatchDims, batch));
      attrs.push_back(rewriter_.List(Attr::kRhsBatchDims, batch));
    }
    // At the precision of the whole operation.
    attrs.push_back(rewriter_.List(Attr::kOperandPrecision, {static_cast<int64_t>(Precision::kHighest),
                                                             static_cast<int64_t>(Precision::kHighest)}));
    return rewriter_.Make(Opcode::kDot, Sized(Rows(a), transposed ? Rows(b) : Columns(b)), {a, b}, attrs);
  }
  InstructionId Concatenate(InstructionId a, InstructionId b, bool below) {
    const int64_t rows = Rows(a) + (below ? Rows(b) : 0), columns = Columns(a) + (below ? 0 : Columns(b));
    const AttrValue attrs[] = {rewriter_.List(Attr::kDimensions, {below ? rank_ - 2 : rank_ - 1})};
    return rewriter_.Make(Opcode::kConcatenate, Sized(rows, columns), {a, b}, attrs);
  }
  // Broadcasts one element of each matrix to a matrix of this size.
  InstructionId Spread(InstructionId element, int64_t rows, int64_t columns, ElementType type) {
    std::vector<int64_t> dims(batch_.size());
    std::iota(dims.begin(), dims.end(), 0);
    const InstructionId flat = rewriter_.MakeReshape(element, rewriter_.shapes().Array(type, batch_));
    const AttrValue attrs[] = {rewriter_.List(Attr::kDimensions, dims)};
    const Shape shape = rewriter_.shapes().WithElementType(Sized(rows, columns), type);
    return rewriter_.Make(Opcode::kBroadcast, shape, {flat}, attrs);
  }
  InstructionId Zeros(int64_t rows, int64_t columns) {
    return rewriter_.MakeSplat(Sized(rows, columns), rewriter_.MakeScalarConstant(type_, 0));
  }
  Shape Sized(int64_t rows, int64_t columns) const {
    std::vector<int64_t> sizes = batch_;
    sizes.insert(sizes.end(), {rows, columns});
    return rewriter_.shapes().Array(type_, sizes);
  }

 private:
  PatternRewriter& rewriter_;
  ElementType type_;
  int64_t rank_;
  std::vector<int64_t> batch_;
};

bool Applies(PatternRewriter& rewriter, Instruction i) {
  const Shape a = i.operand(0).shape();
  for (Instruction operand : i.operands()) {
    if (operand.shape().element_type() != i.shape().element_type()) return false;
  }
  return IsFloat(a.element_type()) && a.dim(a.rank() - 1) <= rewriter.options().Int("max-size") &&
         i.shape().element_count() != 0 && rewriter.IsReplaceable(i);
}

// Expands by substitution, forward for lower triangles and backward for upper ones. The other triangle is not read.
bool TriangularSolve(PatternRewriter& rewriter, Instruction solve) {
  if (!Applies(rewriter, solve)) return false;
  const ElementType type = WideTypeOf(rewriter, solve.shape().element_type());
  Matrices m(rewriter, rewriter.shapes().WithElementType(solve.shape(), type));
  InstructionId a = rewriter.MakeConvert(solve.operand(0).id(), type);
  InstructionId b = rewriter.MakeConvert(solve.operand(1).id(), type);
  bool lower = solve.bool_attr(Attr::kLower);
  bool transposed =
      solve.enum_attr(Attr::kTransposeA, TriangularTranspose::kNoTranspose) >= TriangularTranspose::kTranspose;
  const bool left = solve.bool_attr(Attr::kLeftSide);
  // x a = b is equivalent to transpose(a) transpose(x) = transpose(b).
  if (!left) {
    b = m.Transpose(b);
    transposed = !transposed;
  }
  if (transposed) {
    a = m.Transpose(a);
    lower = !lower;
  }
  const int64_t n = m.Rows(a), columns = m.Columns(b);
  InstructionId x;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = lower ? step : n - 1 - step;
    InstructionId row = m.Slice(b, i, i + 1, 0, columns);
    if (x.valid()) {
      const InstructionId known = lower ? m.Slice(a, i, i + 1, 0, i) : m.Slice(a, i, i + 1, i + 1, n);
      row = rewriter.MakeLike(Opcode::kSubtract, {row, m.Product(known, x, false)});
    }
    if (!solve.bool_attr(Attr::kUnitDiagonal)) {
      const InstructionId diagonal = m.Spread(m.Slice(a, i, i + 1, i, i + 1), 1, columns, type);
      row = rewriter.MakeLike(Opcode::kDivide, {row, diagonal});
    }
    x = !x.valid() ? row : lower ? m.Concatenate(x, row, true) : m.Concatenate(row, x, true);
  }
  return rewriter.Replace(solve, rewriter.MakeConvert(left ? x : m.Transpose(x), solve.shape().element_type()));
}

// Expands column by column. A matrix with a negative pivot has no factor: NaN everywhere. A zero pivot in the last
// column has the root zero; in an earlier one it yields NaN in later columns.
bool Cholesky(PatternRewriter& rewriter, Instruction cholesky) {
  if (!Applies(rewriter, cholesky)) return false;
  const ElementType type = WideTypeOf(rewriter, cholesky.shape().element_type());
  Matrices m(rewriter, rewriter.shapes().WithElementType(cholesky.shape(), type));
  const bool lower = cholesky.bool_attr(Attr::kLower);
  const InstructionId operand = rewriter.MakeConvert(cholesky.operand(0).id(), type);
  // The remaining matrix after subtraction of the products of the columns so far.
  InstructionId left = lower ? operand : m.Transpose(operand);
  const int64_t n = m.Rows(left);
  InstructionId factor, good;
  for (int64_t j = 0; j < n; ++j) {
    const InstructionId pivot = m.Slice(left, 0, 1, 0, 1);
    const InstructionId is_root = rewriter.MakeCompare(ComparisonDirection::kGe, pivot, m.Zeros(1, 1));
    good = good.valid() ? rewriter.MakeLike(Opcode::kAnd, {good, is_root}) : is_root;
    const InstructionId root = rewriter.MakeLike(Opcode::kSqrt, {pivot});
    InstructionId column = root;
    if (const int64_t rest = n - j - 1; rest > 0) {
      const InstructionId below = m.Slice(left, 1, rest + 1, 0, 1);
      const InstructionId scaled = rewriter.MakeLike(Opcode::kDivide, {below, m.Spread(root, rest, 1, type)});
      column = m.Concatenate(root, scaled, true);
      left = rewriter.MakeLike(Opcode::kSubtract,
                               {m.Slice(left, 1, rest + 1, 1, rest + 1), m.Product(scaled, scaled, true)});
    }
    if (j > 0) column = m.Concatenate(m.Zeros(j, 1), column, true);
    factor = j == 0 ? column : m.Concatenate(factor, column, false);
  }
  if (!lower) factor = m.Transpose(factor);
  const InstructionId nan = rewriter.MakeSplat(m.Sized(n, n), rewriter.MakeScalarConstant(type, std::nan("")));
  const InstructionId result =
      rewriter.Make(Opcode::kSelect, m.Sized(n, n), {m.Spread(good, n, n, ElementType::kPred), factor, nan});
  return rewriter.Replace(cholesky, rewriter.MakeConvert(result, cholesky.shape().element_type()));
}

}  // namespace

ElementType WideTypeOf(PatternRewriter& rewriter, ElementType type) {
  if (rewriter.options().Bool("wide")) return ElementType::kF64;
  return BitsOf(type) < 32 ? ElementType::kF32 : type;
}

void AddTriangularSolveExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kTriangularSolve}, "triangular solves expanded", TriangularSolve);
}

void AddCholeskyExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kCholesky}, "Cholesky factorizations expanded", Cholesky);
}

OptionInfo WideOption() {
  return {"wide", OptionInfo::Type::kBool, "true",
          "compute in f64 and round the result; else in the type of the matrix, or f32 if that is wider"};
}

namespace {

OptionInfo MaxSizeOption() { return {"max-size", OptionInfo::Type::kInt, "32", "larger matrices stay"}; }

}  // namespace

HLOKIT_PASS(CholeskyExpander) {
  return {.name = "cholesky-expander",
          .category = "expand",
          .summary = "expand Cholesky factorizations of small real matrices",
          .doc = "Column by column, with slices and dots; NaN if the matrix is not positive definite.",
          .example = R"(ENTRY e {
  a = f32[2,2] parameter(0)
  ROOT l = f32[2,2] cholesky(a), lower=true
})",
          .options = {MaxSizeOption(), WideOption()},
          .tolerance = 1e-3,
          .create = MakePass<RulesOf<AddCholeskyExpanderRules>>};
}

HLOKIT_PASS(TriangularSolveExpander) {
  return {.name = "triangular-solve-expander",
          .category = "expand",
          .summary = "expand triangular solves with small real matrices",
          .doc = "Forward or backward substitution, row by row, with slices and dots. The other triangle is not read.",
          .example = R"(ENTRY e {
  a = f32[2,2] parameter(0)
  b = f32[2,3] parameter(1)
  ROOT x = f32[2,3] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
})",
          .options = {MaxSizeOption(), WideOption()},
          .tolerance = 1e-3,
          .create = MakePass<RulesOf<AddTriangularSolveExpanderRules>>};
}

}  // namespace hlokit

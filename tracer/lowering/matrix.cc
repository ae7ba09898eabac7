// SPDX-License-Identifier: Apache-2.0
// Matmuls, einsum, triangular systems, Cholesky.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "ir/core/str_cat.h"
#include "tracer/lowering/arithmetic.h"
#include "tracer/lowering/matrices.h"

namespace hlokit::lazy {

XlaOp SolveTriangularSystem(XlaOp a, XlaOp b, const TriangularOptions& options) {
  if (!a.ok() || !b.ok()) return a.ok() ? b : a;
  XlaEmitter& e = a.emitter();
  return e.Take(
      e.builder().Add(Opcode::kTriangularSolve, {a.id(), b.id()},
                      {Builder::Bool(Attr::kLeftSide, options.left), Builder::Bool(Attr::kLower, options.lower),
                       Builder::Bool(Attr::kUnitDiagonal, options.unit),
                       Builder::Enum(Attr::kTransposeA, options.transpose ? TriangularTranspose::kTranspose
                                                                          : TriangularTranspose::kNoTranspose)}));
}

XlaOp SwapLastDims(XlaOp x) {
  DimVector permutation = AllDims(x);
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return Transpose(x, permutation);
}

void AlignBatch(XlaOp* a, XlaOp* b) {
  DimVector da = a->dims(), db = b->dims();
  if (da.size() < 2 || db.size() < 2) return;
  const DimVector ta(da.end() - 2, da.end()), tb(db.end() - 2, db.end());
  da.resize(da.size() - 2);
  db.resize(db.size() - 2);
  std::optional<DimVector> batch = BroadcastDims(da, db);
  if (!batch) return;
  DimVector full = *batch;
  full.insert(full.end(), ta.begin(), ta.end());
  *a = BroadcastTo(*a, full);
  full = *batch;
  full.insert(full.end(), tb.begin(), tb.end());
  *b = BroadcastTo(*b, full);
}

XlaOp BatchedProduct(XlaOp a, XlaOp b) {
  DimVector batch;
  for (int64_t d = 0; d + 2 < a.rank(); ++d) batch.push_back(d);
  return Dot(a, b, {batch, {a.rank() - 1}, batch, {b.rank() - 2}});
}

namespace lower {
namespace {

XlaOp MatrixProduct(XlaOp a, XlaOp b) { return Dot(a, b, {{}, {1}, {}, {0}}); }
XlaOp BatchProduct(XlaOp a, XlaOp b) { return Dot(a, b, {{0}, {2}, {0}, {1}}); }

}  // namespace

void Mm(LoweringContext& n) { n.Return(MatrixProduct(n.in(0), n.in(1))); }
void Bmm(LoweringContext& n) { n.Return(BatchProduct(n.in(0), n.in(1))); }
void Mv(LoweringContext& n) { n.Return(Dot(n.in(0), n.in(1), {{}, {1}, {}, {0}})); }
void Dot1d(LoweringContext& n) { n.Return(Dot(n.in(0), n.in(1), {{}, {0}, {}, {0}})); }

void Addmm(LoweringContext& n) {
  const XlaOp bias = n.in(0);
  const bool plain = n.in(3).ok() && n.in(4).ok();
  if (!plain) return;
  const ElementType type = n.in(1).type();
  const ElementType wide = WideType(type);
  const XlaOp product = MatrixProduct(n.in(1), n.in(2));
  n.Return(lazy::Cast(
      lazy::Cast(product, wide) * lazy::Cast(n.in(4), wide) + lazy::Cast(bias, wide) * lazy::Cast(n.in(3), wide),
      type));
}

// Lowers "ab,bc->ac" over operands that use each of their labels once; labels of the result are in the operands.
void Einsum(LoweringContext& n) {
  const std::string equation = n.str(0);
  const std::vector<XlaOp> operands = n.list(1);
  const size_t arrow = equation.find("->");
  const size_t comma = equation.find(',');
  if (arrow == std::string::npos || comma == std::string::npos || operands.size() != 2) {
    n.emitter().Fail("einsum of this form has no lowering");
    return;
  }
  const std::string a = equation.substr(0, comma), b = equation.substr(comma + 1, arrow - comma - 1);
  const std::string out = equation.substr(arrow + 2);
  Builder::DotNumbers numbers;
  std::string order;
  std::string free_a, free_b;
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t j = b.find(a[i]);
    if (j == std::string::npos) {
      free_a.push_back(a[i]);
      continue;
    }
    const bool batch = out.find(a[i]) != std::string::npos;
    (batch ? numbers.lhs_batch : numbers.lhs_contracting).push_back(static_cast<int64_t>(i));
    (batch ? numbers.rhs_batch : numbers.rhs_contracting).push_back(static_cast<int64_t>(j));
    if (batch) order.push_back(a[i]);
  }
  for (char label : b) {
    if (a.find(label) == std::string::npos) free_b.push_back(label);
  }
  order += free_a + free_b;
  const XlaOp product = Dot(operands[0], operands[1], numbers);
  DimVector permutation;
  for (char label : out) permutation.push_back(static_cast<int64_t>(order.find(label)));
  n.Return(Transpose(product, permutation));
}

// ---- triangular systems ----

void TriangularSolve(LoweringContext& n) {
  XlaOp b = n.in(0), a = n.in(1);
  AlignBatch(&a, &b);
  n.Return(SolveTriangularSystem(a, b, {true, !n.bool_arg(2), n.bool_arg(4), n.bool_arg(3)}), a);
}
void SolveTriangular(LoweringContext& n) {
  XlaOp a = n.in(0), b = n.in(1);
  AlignBatch(&a, &b);
  n.Return(SolveTriangularSystem(a, b, {n.bool_arg(3), !n.bool_arg(2), n.bool_arg(4), false}));
}
void Cholesky(LoweringContext& n) {
  const XlaOp x = n.in(0);
  if (!x.ok()) return;
  if (x.size(-1) != x.size(-2) || ScalarTypeCategory(x.type()) < 2) {
    n.emitter().Fail("the input must be square matrices of floats");
    return;
  }
  const XlaOp lower =
      n.emitter().Take(n.emitter().builder().Add(Opcode::kCholesky, {x.id()}, {Builder::Bool(Attr::kLower, true)}));
  XlaEmitter& e = n.emitter();
  const XlaOp rows = IotaOf(e, ElementType::kS64, x.dims(), x.rank() - 2);
  const XlaOp columns = IotaOf(e, ElementType::kS64, x.dims(), x.rank() - 1);
  const XlaOp triangle = Select(Ge(rows, columns), lower, Number(x, 0));
  n.Return(n.bool_arg(1) ? Conjugate(SwapLastDims(triangle)) : triangle);
}

}  // namespace lower
}  // namespace hlokit::lazy

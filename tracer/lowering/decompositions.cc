// SPDX-License-Identifier: Apache-2.0
// Orthogonal decompositions of batches of matrices of any size: QR by the custom-calls of XLA, the singular value
// decomposition by one-sided Jacobi rotations in a loop.
#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "tracer/lowering/arithmetic.h"
#include "tracer/lowering/loop.h"
#include "tracer/lowering/matrices.h"

namespace hlokit::lazy::lower {
namespace {

using Values = std::vector<XlaOp>;

// Batches of matrices here have three dimensions.
XlaOp Columns(XlaOp x, int64_t begin, int64_t end) { return SliceDim(x, 2, begin, end); }

XlaOp AsBatch(XlaOp x) {
  int64_t batch = 1;
  for (int64_t d = 0; d + 2 < x.rank(); ++d) batch *= x.size(d);
  return Reshape(x, {batch, x.size(-2), x.size(-1)});
}
// Gives a result the leading dimensions of `like`; `trailing`: 2 for matrices, 1 for vectors.
XlaOp WithLeadingDims(XlaOp x, XlaOp like, int64_t trailing) {
  DimVector dims = like.dims();
  dims.resize(dims.size() - 2);
  for (int64_t d = x.rank() - trailing; d < x.rank(); ++d) dims.push_back(x.size(d));
  return Reshape(x, dims);
}

XlaOp Identity(XlaEmitter& e, ElementType type, int64_t batch, int64_t rows, int64_t columns) {
  const DimVector dims = {batch, rows, columns};
  return lazy::Cast(Eq(IotaOf(e, ElementType::kS64, dims, 1), IotaOf(e, ElementType::kS64, dims, 2)), type);
}

XlaOp CustomCall(XlaEmitter& e, std::string_view target, absl::Span<const InstructionId> operands, Shape result) {
  return e.Take(
      e.builder().Add(Opcode::kCustomCall, operands, {e.builder().String(Attr::kCustomCallTarget, target)}, result));
}

XlaOp Adjoint(XlaOp x) { return Conjugate(SwapLastDims(x)); }
// The distance from 1 to the next larger number of the type's reals.
double Epsilon(ElementType type) {
  return type == ElementType::kF64 || type == ElementType::kC128 ? std::numeric_limits<double>::epsilon()
                                                                 : std::numeric_limits<float>::epsilon();
}

struct QrParts {
  XlaOp q, r;
};
// Returns Q[b, m, complete ? m : k] R[b, complete ? m : k, n] = x[b, m, n], k = min(m, n), with LAPACK's signs.
QrParts QrOf(XlaEmitter& e, XlaOp x, bool complete) {
  if (!x.ok()) return {x, x};
  const int64_t batch = x.size(0), m = x.size(1), n = x.size(2), k = std::min(m, n);
  const Shape taus = e.ArrayShape(x.type(), {batch, k});
  const XlaOp packed_and_taus = CustomCall(e, "Qr", {x.id()}, e.builder().shapes().Tuple({x.shape(), taus}));
  const XlaOp packed = Element(packed_and_taus, 0);
  const int64_t width = complete ? m : k;
  const XlaOp reflectors =
      width > n ? Pad(packed, Number(packed, 0), {0, 0, 0}, {0, 0, width - n}) : Columns(packed, 0, width);
  if (!reflectors.ok()) return {reflectors, reflectors};
  const XlaOp q = CustomCall(e, "ProductOfElementaryHouseholderReflectors",
                             {reflectors.id(), Element(packed_and_taus, 1).id()}, reflectors.shape());
  const XlaOp top = SliceDim(packed, 1, 0, width);
  const DimVector dims = top.dims();
  const XlaOp upper = Ge(IotaOf(e, ElementType::kS64, dims, 2), IotaOf(e, ElementType::kS64, dims, 1));
  return {q, Select(upper, top, Number(top, 0))};
}

// The pairs of a step of the tournament: columns k and k + half are rotated together.
struct Rotation {
  XlaOp cosine, sine;  // [b, 1, half]
  XlaOp phase;         // by which the second column is multiplied first, of complex matrices
};
XlaOp Rotate(XlaOp x, const Rotation& r) {
  const int64_t half = x.size(2) / 2;
  const XlaOp a = Columns(x, 0, half), second = Columns(x, half, 2 * half);
  const XlaOp b = IsComplex(x.type()) ? second * r.phase : second;
  const XlaOp cosine = lazy::Cast(r.cosine, x.type()), sine = lazy::Cast(r.sine, x.type());
  const XlaOp left = a * cosine - b * sine, right = a * sine + b * cosine;
  if (half == 1) return Concatenate({left, right}, 2);
  // The first column stays, the others move on by one place of the circle, so that all pairs meet.
  return Concatenate({Columns(left, 0, 1), Columns(right, 0, 1), Columns(left, 1, half - 1), Columns(right, 1, half),
                      Columns(left, half - 1, half)},
                     2);
}

struct Jacobi {
  XlaOp columns;  // [b, m, n] orthogonal: left singular vectors times singular values
  XlaOp right;    // [b, n, n] right singular vectors
};
// Rotates pairs of columns of x[b, m, n], n even, until all are orthogonal.
Jacobi Orthogonalize(XlaEmitter& e, XlaOp x) {
  constexpr int64_t kMaxSweeps = 20;
  const int64_t n = x.size(2), half = n / 2, steps = n - 1;
  const ElementType type = x.type();
  const double tolerance = 4 * Epsilon(type);
  const ElementType real = RealPart(x).type();
  const Values init = {Constant(e, ElementType::kS32, 0), Constant(e, real, 1), x, Identity(e, type, x.size(0), n, n)};
  // step, largest cosine of an angle between columns in this sweep, columns, right vectors
  const Values found = Loop(
      e, init,
      [&](absl::Span<const XlaOp> v) {
        const XlaOp sweep_ended = Eq(Binary(Opcode::kRemainder, v[0], Number(v[0], steps)), Number(v[0], 0));
        const XlaOp converged = sweep_ended & Le(v[1], Number(v[1], tolerance));
        return Lt(v[0], Number(v[0], kMaxSweeps * steps)) & !converged;
      },
      [&](absl::Span<const XlaOp> v) -> Values {
        const XlaOp p = Columns(v[2], 0, half), q = Columns(v[2], half, n);
        const auto inner = [](XlaOp a, XlaOp b) {
          return Reduce(Opcode::kAdd, Conjugate(a) * b, {1}, /*keepdim=*/true);
        };
        const XlaOp a = RealPart(inner(p, p)), b = RealPart(inner(q, q)), product = inner(p, q);
        const XlaOp c = IsComplex(type) ? Abs(product) : product;
        const XlaOp phase = Conjugate(PhaseOf(product, c));
        const XlaOp zero = Number(c, 0), one = Number(c, 1);
        const XlaOp lengths = Sqrt(a) * Sqrt(b);
        const XlaOp cosine = Select(Eq(c, zero), zero, Abs(c) / lengths);
        const XlaOp skip = !Gt(cosine, Number(c, tolerance));
        const XlaOp zeta = (b - a) / (2.0 * Select(skip, one, c));
        const XlaOp tangent = Select(Ge(zeta, zero), one, -one) / (Abs(zeta) + Sqrt(1.0 + zeta * zeta));
        const XlaOp scale = Rsqrt(1.0 + tangent * tangent);
        const Rotation rotation = {Select(skip, one, scale), Select(skip, zero, scale * tangent), phase};
        const XlaOp first = Eq(Binary(Opcode::kRemainder, v[0], Number(v[0], steps)), Number(v[0], 0));
        const XlaOp before = Select(first, Number(v[1], 0), v[1]);
        const XlaOp largest = Max(before, Reduce(Opcode::kMaximum, cosine, {0, 1, 2}));
        return {v[0] + 1, largest, Rotate(v[2], rotation), Rotate(v[3], rotation)};
      });
  return {found[2], found[3]};
}

struct SvdParts {
  XlaOp u, s, v;  // [b, m, k], [b, k], [b, n, k]; with all columns of u if full
};
// Requires: at least as many rows as columns, neither 0.
SvdParts TallSvd(XlaEmitter& e, XlaOp x, bool full) {
  const int64_t batch = x.size(0), m = x.size(1), n = x.size(2), even = n + n % 2;
  // Scaled, since squares of small and of large numbers are out of range.
  const XlaOp largest = Reduce(Opcode::kMaximum, Abs(x), {1, 2}, /*keepdim=*/true);
  const XlaOp scale = Select(Gt(largest, Number(largest, 0)), largest, Number(largest, 1));
  const XlaOp scaled = Pad(x / lazy::Cast(scale, x.type()), Number(x, 0), {0, 0, 0}, {0, 0, even - n});
  const Jacobi jacobi = Orthogonalize(e, scaled);
  const XlaOp sizes = IsComplex(x.type()) ? Abs(jacobi.columns) : jacobi.columns;
  XlaOp lengths = Sqrt(Reduce(Opcode::kAdd, sizes * sizes, {1}, /*keepdim=*/true));  // [b, 1, n]
  if (even != n) {
    // The column of padding, whose right vector is the last unit vector, comes last.
    const XlaOp last = SliceDim(jacobi.right, 1, even - 1, even);
    lengths = Select(Ne(last, Number(last, 0)), Number(lengths, -1), lengths);
  }
  const auto sorted = [&](XlaOp columns, int64_t rows) {
    const XlaOp keys = BroadcastInDim(Reshape(lengths, {batch, even}), {batch, rows, even}, {0, 2});
    return Columns(lazy::Sort({keys, columns}, 2, ComparisonDirection::kGt)[1], 0, n);
  };
  const XlaOp s = Columns(lazy::Sort({lengths}, 2, ComparisonDirection::kGt)[0], 0, n);
  const XlaOp v = SliceDim(sorted(jacobi.right, even), 1, 0, n);
  // Vectors of singular values that are 0 up to rounding are not determined: any orthonormal basis of the rest.
  const XlaOp none = Le(s, Columns(s, 0, 1) * (Epsilon(x.type()) * static_cast<double>(m)));
  const XlaOp u =
      Select(none, Number(x, 0), sorted(jacobi.columns, m) / lazy::Cast(Select(none, Number(s, 1), s), x.type()));
  const QrParts qr = QrOf(e, u, full);
  // Q is U up to signs, those of the diagonal of R.
  const int64_t width = full ? m : n;
  const XlaOp identity = Identity(e, x.type(), batch, width, n);
  const XlaOp diagonal = RealPart(Reduce(Opcode::kAdd, qr.r * identity, {1}, /*keepdim=*/true));
  XlaOp signs = Select(Lt(diagonal, Number(diagonal, 0)), Number(diagonal, -1), Number(diagonal, 1));
  if (width != n) signs = Pad(signs, Number(signs, 1), {0, 0, 0}, {0, 0, width - n});
  return {qr.q * lazy::Cast(signs, x.type()), Reshape(s * scale, {batch, n}), v};
}

}  // namespace

// self -> R above the reflectors, and their factors, as LAPACK's
void Geqrf(LoweringContext& n) {
  const XlaOp x = n.in(0);
  XlaEmitter& e = n.emitter();
  if (x.rank() < 2 || (!x.is_float() && !IsComplex(x.type()))) {
    return (void)e.Fail("geqrf: input must be matrices of floating point or complex numbers");
  }
  DimVector taus = x.dims();
  taus.resize(taus.size() - 2);
  taus.push_back(std::min(x.size(-2), x.size(-1)));
  if (x.elements() == 0) return n.Return(x, Full(e, x.type(), taus, 0));
  const Shape shape = e.ArrayShape(x.type(), taus);
  const XlaOp both = CustomCall(e, "Qr", {x.id()}, e.builder().shapes().Tuple({x.shape(), shape}));
  n.Return(Element(both, 0), Element(both, 1));
}
// input [.., m, n], tau [.., k]
void HouseholderProduct(LoweringContext& n) {
  const XlaOp x = n.in(0), taus = n.in(1);
  XlaEmitter& e = n.emitter();
  if (x.rank() < 2 || taus.rank() != x.rank() - 1 || taus.type() != x.type() || x.size(-2) < x.size(-1) ||
      taus.size(-1) > x.size(-1)) {
    return (void)e.Fail("linalg.householder_product: input and tau do not fit");
  }
  for (int64_t i = 0; i + 1 < taus.rank(); ++i) {
    if (taus.size(i) != x.size(i)) return (void)e.Fail("linalg.householder_product: input and tau do not fit");
  }
  if (x.elements() == 0) return n.Return(x);
  n.Return(CustomCall(e, "ProductOfElementaryHouseholderReflectors", {x.id(), taus.id()}, x.shape()));
}

void Qr(LoweringContext& n) {
  const XlaOp x = n.in(0);
  XlaEmitter& e = n.emitter();
  if (x.rank() < 2) {
    e.Fail("linalg.qr: The input tensor A must have at least 2 dimensions.");
    return;
  }
  if (!x.is_float() && !IsComplex(x.type())) {
    e.Fail(StrCat("linalg.qr: Expected a floating point or complex tensor as input. Got ", TorchTypeName(x.type())));
    return;
  }
  const std::string mode = n.op() == Op::qr ? (n.bool_arg(1) ? "reduced" : "complete") : n.str(1);
  if (mode != "reduced" && mode != "complete" && mode != "r") {
    e.Fail(StrCat("qr received unrecognized mode '", mode,
                  "' but expected one of 'reduced' (default), 'r', or 'complete'"));
    return;
  }
  const bool complete = mode == "complete";
  const int64_t rows = x.size(-2), columns = x.size(-1), k = complete ? rows : std::min(rows, columns);
  const XlaOp batch = AsBatch(x);
  const QrParts parts = batch.elements() == 0 ? QrParts{Identity(e, x.type(), batch.size(0), rows, k),
                                                        Full(e, x.type(), {batch.size(0), k, columns}, 0)}
                                              : QrOf(e, batch, complete);
  const XlaOp r = WithLeadingDims(parts.r, x, 2);
  n.Return(mode == "r" ? Full(e, x.type(), {0}, 0) : WithLeadingDims(parts.q, x, 2), r);
}

void Svd(LoweringContext& n) {
  const XlaOp x = n.in(0);
  XlaEmitter& e = n.emitter();
  const bool old_name = n.op() == Op::svd;
  if (x.rank() < 2) {
    e.Fail(old_name ? StrCat("linalg.svd: input should have at least 2 dimensions, but has ", x.rank(),
                             " dimensions instead")
                    : "linalg.svd: The input tensor A must have at least 2 dimensions.");
    return;
  }
  if (!x.is_float() && !IsComplex(x.type())) {
    e.Fail(StrCat("linalg.svd: Expected a floating point or complex tensor as input. Got ", TorchTypeName(x.type())));
    return;
  }
  if (x.type() != ElementType::kF32 && x.type() != ElementType::kF64 && !IsComplex(x.type())) {
    e.Fail(StrCat("\"linalg_svd_cpu\" not implemented for '", TorchTypeName(x.type()), "'"));
    return;
  }
  if (!old_name && n.has(2)) {
    e.Fail("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
    return;
  }
  const int64_t rows = x.size(-2), columns = x.size(-1), k = std::min(rows, columns);
  const bool full = old_name ? !n.bool_arg(1) : n.bool_arg(1);
  const XlaOp batch = AsBatch(x);
  SvdParts parts;
  if (x.elements() == 0) {
    parts = {Identity(e, x.type(), batch.size(0), rows, full ? rows : k),
             Full(e, RealPart(x).type(), {batch.size(0), k}, 0),
             Identity(e, x.type(), batch.size(0), columns, full ? columns : k)};
  } else if (rows >= columns) {
    parts = TallSvd(e, batch, full);
  } else {
    parts = TallSvd(e, Adjoint(batch), full);
    std::swap(parts.u, parts.v);
  }
  if (old_name && !n.bool_arg(2)) {
    // compute_uv=False: square matrices of zeros.
    parts.u = Full(e, x.type(), {batch.size(0), rows, rows}, 0);
    parts.v = Full(e, x.type(), {batch.size(0), columns, columns}, 0);
  }
  // svd returns V, linalg_svd its transpose.
  n.Return(WithLeadingDims(parts.u, x, 2), WithLeadingDims(parts.s, x, 1),
           WithLeadingDims(old_name ? parts.v : Adjoint(parts.v), x, 2));
}

}  // namespace hlokit::lazy::lower

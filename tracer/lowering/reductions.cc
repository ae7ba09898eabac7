// SPDX-License-Identifier: Apache-2.0
// Reductions over dimensions, scans along one.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/core/saturating.h"
#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy {

DimVector ReducedDims(LoweringContext& n, size_t arg, XlaOp x) {
  DimVector dims;
  if (n.has(arg)) {
    const Dims given = n.ints(arg);
    dims.assign(given.begin(), given.end());
  }
  if (dims.empty()) return AllDims(x);
  const int64_t rank = x.rank();
  DimVector out;
  for (int64_t d : dims) {
    const int64_t w = WrapDim(d, rank);
    if (w < 0 || w >= std::max<int64_t>(rank, 1)) {
      n.emitter().Fail("a dimension is out of range");
      return {};
    }
    if (rank != 0) out.push_back(w);
  }
  std::sort(out.begin(), out.end());
  if (std::unique(out.begin(), out.end()) != out.end()) n.emitter().Fail("a dimension appears twice");
  return out;
}

namespace lower {
namespace {

int64_t CountOf(XlaOp x, Dims dims) {
  int64_t count = 1;
  for (int64_t d : dims) count = SaturatingMultiply(count, x.size(d));
  return count;
}

// Returns one dimension given as a number.
DimVector OneDim(LoweringContext& n, size_t arg, XlaOp x) {
  const int64_t rank = x.rank();
  const int64_t d = WrapDim(n.int_arg(arg), rank);
  if (rank == 0) return {};
  if (d < 0 || d >= rank) {
    n.emitter().Fail("the dimension is out of range");
    return {};
  }
  return {d};
}

// Returns the accumulation type: s64 for integers and bool unless specified.
ElementType SumType(LoweringContext& n, size_t dtype_arg, XlaOp x) {
  return n.dtype(dtype_arg, ScalarTypeCategory(x.type()) < 2 ? ElementType::kS64 : x.type());
}

XlaOp MeanOf(XlaOp x, Dims dims, bool keepdim) {
  const int64_t count = CountOf(x, dims);
  const double scale = count == 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0 / static_cast<double>(count);
  return Reduce(Opcode::kAdd, x, dims, keepdim) * scale;
}

// Returns the index along `dim` of the first element that `is_best` marks, without the dimension.
XlaOp FirstIndex(XlaOp is_best, int64_t dim, bool keepdim) {
  XlaEmitter& e = is_best.emitter();
  const XlaOp iota = IotaOf(e, ElementType::kS64, is_best.dims(), dim);
  const XlaOp none = Constant(e, ElementType::kS64, is_best.size(dim));
  return Reduce(Opcode::kMinimum, Select(is_best, iota, none), {dim}, keepdim);
}

XlaOp BestOf(XlaOp x, Dims dims, bool max, bool keepdim) {
  if (CountOf(x, dims) == 0) {
    return x.emitter().Fail("cannot reduce a dimension of size zero without an identity");
  }
  return Reduce(max ? Opcode::kMaximum : Opcode::kMinimum, x, dims, keepdim);
}

// Returns the mask of elements equal to the best value along the dimensions, or NaN.
XlaOp IsBest(XlaOp x, XlaOp best_keepdim) {
  XlaOp is = Eq(x, best_keepdim);
  return x.is_float() ? is | IsNan(x) : is;
}

}  // namespace

void Sum(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const DimVector dims = ReducedDims(n, 1, x);
  n.Return(Reduce(Opcode::kAdd, lazy::Cast(x, SumType(n, 3, x)), dims, n.bool_arg(2)));
}
void Mean(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const ElementType type = n.dtype(3, x.type());
  if (ScalarTypeCategory(type) < 2) {
    n.emitter().Fail("the mean of integers or bool requires a floating point dtype");
    return;
  }
  const DimVector dims = ReducedDims(n, 1, x);
  n.Return(lazy::Cast(MeanOf(lazy::Cast(x, WideType(type)), dims, n.bool_arg(2)), type));
}
void ProdAll(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(Reduce(Opcode::kMultiply, lazy::Cast(x, SumType(n, 1, x)), AllDims(x)));
}
void ProdDim(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(Reduce(Opcode::kMultiply, lazy::Cast(x, SumType(n, 3, x)), OneDim(n, 1, x), n.bool_arg(2)));
}
void AmaxAmin(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(BestOf(x, ReducedDims(n, 1, x), n.op() == Op::amax, n.bool_arg(2)));
}
void MaxMinAll(LoweringContext& n) { n.Return(BestOf(n.in(0), AllDims(n.in(0)), n.op() == Op::max, false)); }
void MaxMinDim(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const DimVector dims = OneDim(n, 1, x);
  if (dims.empty()) return n.Return(x, Constant(n.emitter(), ElementType::kS64, 0));
  const XlaOp best = BestOf(x, dims, n.op() == Op::max_dim, true);
  const XlaOp index = FirstIndex(IsBest(x, best), dims[0], n.bool_arg(2));
  n.Return(Reshape(best, index.dims()), index);
}
void ArgMaxMin(LoweringContext& n) {
  XlaOp x = n.in(0);
  const bool flat = !n.has(1);
  const int64_t rank = x.rank();
  if (flat) x = Reshape(x, {x.elements()});
  const DimVector dims = flat ? DimVector{0} : OneDim(n, 1, x);
  if (dims.empty()) return n.Return(Constant(n.emitter(), ElementType::kS64, 0));
  const XlaOp index =
      FirstIndex(IsBest(x, BestOf(x, dims, n.op() == Op::argmax, true)), dims[0], !flat && n.bool_arg(2));
  n.Return(flat && n.bool_arg(2) ? Reshape(index, DimVector(static_cast<size_t>(rank), 1)) : index);
}
void AllAny(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const bool all = n.op() == Op::all || n.op() == Op::all_dim;
  const bool of_dim = n.op() == Op::all_dim || n.op() == Op::any_dim;
  const XlaOp reduced = Reduce(all ? Opcode::kAnd : Opcode::kOr, lazy::Cast(x, ElementType::kPred),
                               of_dim ? OneDim(n, 1, x) : AllDims(x), of_dim && n.bool_arg(2));
  // torch keeps u8, which formerly represented bool.
  n.Return(x.type() == ElementType::kU8 ? lazy::Cast(reduced, ElementType::kU8) : reduced);
}
void Var(LoweringContext& n) {
  if (ScalarTypeCategory(n.in(0).type()) < 2) {
    n.emitter().Fail("std and var only support floating point dtypes");
    return;
  }
  const XlaOp x = Wide(n.in(0));
  const DimVector dims = ReducedDims(n, 1, x);
  const int64_t count = CountOf(x, dims);
  // Beyond all counts it makes no difference.
  const int64_t correction = std::max(n.has(2) ? n.int_arg(2) : 1, -std::numeric_limits<int64_t>::max());
  const XlaOp centered = x - MeanOf(x, dims, true);
  const double divisor = count == 0 ? 0 : static_cast<double>(std::max<int64_t>(0, SaturatingAdd(count, -correction)));
  // 0/0 of a single element, or of none, is NaN, as in torch.
  const XlaOp squares = RealPart(centered * Conjugate(centered));
  XlaOp var = Reduce(Opcode::kAdd, squares, dims, n.bool_arg(3)) / divisor;
  if (n.op() == Op::std_correction) var = Sqrt(var);
  n.Return(IsComplex(x.type()) ? var : lazy::Cast(var, n.in(0).type()));
}
void VectorNorm(LoweringContext& n) {
  const ElementType type = n.dtype(4, n.in(0).type());
  if (ScalarTypeCategory(n.in(0).type()) < 2 || ScalarTypeCategory(type) < 2) {
    n.emitter().Fail("expected a floating point tensor as input");
    return;
  }
  // Of complex numbers the absolute values count.
  const XlaOp given = lazy::Cast(n.in(0), WideType(type));
  const XlaOp x = IsComplex(given.type()) ? Abs(given) : given;
  const DimVector dims = ReducedDims(n, 2, x);
  const bool keepdim = n.bool_arg(3);
  const double p = n.float_arg(1);
  const XlaOp magnitude = Abs(x);
  XlaOp norm;
  if (p == std::numeric_limits<double>::infinity()) {
    norm = Reduce(Opcode::kMaximum, magnitude, dims, keepdim);
  } else if (p == -std::numeric_limits<double>::infinity()) {
    norm = Reduce(Opcode::kMinimum, magnitude, dims, keepdim);
  } else if (p == 0) {
    norm = Reduce(Opcode::kAdd, lazy::Cast(Ne(x, Number(x, 0)), x.type()), dims, keepdim);
  } else if (p == 1) {
    norm = Reduce(Opcode::kAdd, magnitude, dims, keepdim);
  } else if (p == 2) {
    norm = Sqrt(Reduce(Opcode::kAdd, x * x, dims, keepdim));
  } else {
    norm = Binary(Opcode::kPower, Reduce(Opcode::kAdd, Binary(Opcode::kPower, magnitude, Number(x, p)), dims, keepdim),
                  Number(x, 1 / p));
  }
  n.Return(lazy::Cast(norm, RealPart(Constant(n.emitter(), type, 0)).type()));
}
void LogSumExp(LoweringContext& n) {
  const XlaOp x = Wide(n.in(0));
  const DimVector dims = ReducedDims(n, 1, x);
  const XlaOp largest = Reduce(Opcode::kMaximum, RealPart(x), dims, true);
  // An infinite maximum would give inf - inf.
  const XlaOp shift = Select(Unary(Opcode::kIsFinite, largest), largest, Number(largest, 0));
  const XlaOp subtracted = lazy::Cast(shift, x.type());
  XlaOp result = Log(Reduce(Opcode::kAdd, Exp(x - subtracted), dims, true)) + subtracted;
  if (!n.bool_arg(2)) {
    DimVector kept;
    for (int64_t i = 0; i < x.rank(); ++i) {
      if (!std::binary_search(dims.begin(), dims.end(), i)) kept.push_back(x.size(i));
    }
    result = Reshape(result, kept);
  }
  n.Return(lazy::Cast(result, FloatingOf(n.in(0).type())));
}

// ---- scans ----

namespace {

void Scan(LoweringContext& n, Opcode opcode) {
  const XlaOp input = n.in(0);
  const ElementType type = SumType(n, 2, input);
  const XlaOp x = lazy::Cast(input, WideType(type));
  const DimVector dims = OneDim(n, 1, x);
  if (dims.empty() || x.elements() == 0) return n.Return(lazy::Cast(x, type));
  const size_t rank = static_cast<size_t>(x.rank());
  Window w{DimVector(rank, 1), {}, DimVector(rank, 0), DimVector(rank, 0), {}, {}};
  w.size[dims[0]] = x.size(dims[0]);
  w.low[dims[0]] = x.size(dims[0]) - 1;
  n.Return(lazy::Cast(ReduceWindow(opcode, x, Number(x, IdentityElement(opcode, x.type())), w), type));
}

}  // namespace

void Cumsum(LoweringContext& n) { Scan(n, Opcode::kAdd); }
void Cumprod(LoweringContext& n) { Scan(n, Opcode::kMultiply); }

void Cummax(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const DimVector dims = OneDim(n, 1, x);
  if (dims.empty()) return n.Return(x, Constant(n.emitter(), ElementType::kS64, 0));
  if (x.elements() == 0) return n.Return(x, Full(n.emitter(), ElementType::kS64, x.dims(), 0));
  const size_t rank = static_cast<size_t>(x.rank());
  Window w{DimVector(rank, 1), {}, DimVector(rank, 0), DimVector(rank, 0), {}, {}};
  w.size[dims[0]] = x.size(dims[0]);
  w.low[dims[0]] = x.size(dims[0]) - 1;
  const Opcode opcode = n.op() == Op::cummin ? Opcode::kMinimum : Opcode::kMaximum;
  const XlaOp values = ReduceWindow(opcode, x, Number(x, IdentityElement(opcode, x.type())), w);
  // The last index so far at which the running maximum or minimum was reached.
  const XlaOp iota = IotaOf(n.emitter(), ElementType::kS64, x.dims(), dims[0]);
  const XlaOp reached = Select(IsBest(x, values), iota, Number(iota, 0));
  n.Return(values, ReduceWindow(Opcode::kMaximum, reached, Number(iota, 0), w));
}

// ---- softmax ----

namespace {

struct Shifted {
  XlaOp exp, sum;  // exp(x - max) and its sum
  XlaOp x_minus_max;
};

Shifted ShiftedExp(XlaOp x, Dims dims) {
  const XlaOp largest = Reduce(Opcode::kMaximum, x, dims);
  const XlaOp shifted = x - BroadcastReduced(largest, x, dims);
  const XlaOp exp = Exp(shifted);
  return {exp, Reduce(Opcode::kAdd, exp, dims), shifted};
}

}  // namespace

void Softmax(LoweringContext& n) {
  const XlaOp x = Wide(n.in(0));
  const DimVector dims = OneDim(n, 1, x);
  const Shifted s = ShiftedExp(x, dims);
  n.Return(lazy::Cast(s.exp / BroadcastReduced(s.sum, x, dims), n.in(0).type()));
}
void LogSoftmax(LoweringContext& n) {
  const XlaOp x = Wide(n.in(0));
  const DimVector dims = OneDim(n, 1, x);
  const Shifted s = ShiftedExp(x, dims);
  n.Return(lazy::Cast(s.x_minus_max - BroadcastReduced(Log(s.sum), x, dims), n.in(0).type()));
}
void SoftmaxBackward(LoweringContext& n) {
  const XlaOp g = Wide(n.in(0)), y = Wide(n.in(1));
  const DimVector dims = OneDim(n, 2, y);
  const XlaOp sum = Reduce(Opcode::kAdd, g * y, dims);
  n.Return(lazy::Cast(y * (g - BroadcastReduced(sum, y, dims)), n.dtype(3, n.in(1).type())));
}
void LogSoftmaxBackward(LoweringContext& n) {
  const XlaOp g = Wide(n.in(0)), y = Wide(n.in(1));
  const DimVector dims = OneDim(n, 2, y);
  const XlaOp sum = Reduce(Opcode::kAdd, g, dims);
  n.Return(lazy::Cast(g - Exp(y) * BroadcastReduced(sum, y, dims), n.dtype(3, n.in(1).type())));
}

}  // namespace lower
}  // namespace hlokit::lazy

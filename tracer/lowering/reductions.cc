// SPDX-License-Identifier: Apache-2.0
// Reductions over dimensions, scans along one.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy {

DimVector ReducedDims(NodeLowering& n, size_t arg, Hlo x) {
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

int64_t CountOf(Hlo x, Dims dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= x.size(d);
  return count;
}

// One dimension given as a number.
DimVector OneDim(NodeLowering& n, size_t arg, Hlo x) {
  const int64_t rank = x.rank();
  const int64_t d = WrapDim(n.i(arg), rank);
  if (rank == 0) return {};
  if (d < 0 || d >= rank) {
    n.emitter().Fail("the dimension is out of range");
    return {};
  }
  return {d};
}

// Sums integers and bool as s64, unless told otherwise.
ElementType SumType(NodeLowering& n, size_t dtype_arg, Hlo x) {
  return n.dtype(dtype_arg, CategoryOf(x.type()) < 2 ? ElementType::kS64 : x.type());
}

Hlo MeanOf(Hlo x, Dims dims, bool keepdim) {
  const int64_t count = CountOf(x, dims);
  const double scale = count == 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0 / static_cast<double>(count);
  return Reduce(Opcode::kAdd, x, dims, keepdim) * scale;
}

// The place along `dim` of the first element that `is_best` marks, without the dimension.
Hlo FirstIndex(Hlo is_best, int64_t dim, bool keepdim) {
  Emitter& e = is_best.emitter();
  const Hlo iota = IotaOf(e, ElementType::kS64, is_best.dims(), dim);
  const Hlo none = Constant(e, ElementType::kS64, is_best.size(dim));
  return Reduce(Opcode::kMinimum, Select(is_best, iota, none), {dim}, keepdim);
}

Hlo BestOf(Hlo x, Dims dims, bool max, bool keepdim) {
  if (CountOf(x, dims) == 0) {
    return x.emitter().Fail("cannot reduce a dimension of size zero without an identity");
  }
  return Reduce(max ? Opcode::kMaximum : Opcode::kMinimum, x, dims, keepdim);
}

// Where x has the best value along the dimensions, or is NaN.
Hlo IsBest(Hlo x, Hlo best_keepdim) {
  Hlo is = Eq(x, best_keepdim);
  return x.is_float() ? is | IsNan(x) : is;
}

}  // namespace

void Sum(NodeLowering& n) {
  const Hlo x = n.in(0);
  const DimVector dims = ReducedDims(n, 1, x);
  n.Return(Reduce(Opcode::kAdd, lazy::Cast(x, SumType(n, 3, x)), dims, n.b(2)));
}
void Mean(NodeLowering& n) {
  const Hlo x = n.in(0);
  const ElementType type = n.dtype(3, x.type());
  if (CategoryOf(type) < 2) {
    n.emitter().Fail("the mean of integers or bool requires a floating point dtype");
    return;
  }
  const DimVector dims = ReducedDims(n, 1, x);
  n.Return(lazy::Cast(MeanOf(lazy::Cast(x, WideType(type)), dims, n.b(2)), type));
}
void ProdAll(NodeLowering& n) {
  const Hlo x = n.in(0);
  n.Return(Reduce(Opcode::kMultiply, lazy::Cast(x, SumType(n, 1, x)), AllDims(x)));
}
void ProdDim(NodeLowering& n) {
  const Hlo x = n.in(0);
  n.Return(Reduce(Opcode::kMultiply, lazy::Cast(x, SumType(n, 3, x)), OneDim(n, 1, x), n.b(2)));
}
void AmaxAmin(NodeLowering& n) {
  const Hlo x = n.in(0);
  n.Return(BestOf(x, ReducedDims(n, 1, x), n.op() == Op::amax, n.b(2)));
}
void MaxMinAll(NodeLowering& n) { n.Return(BestOf(n.in(0), AllDims(n.in(0)), n.op() == Op::max, false)); }
void MaxMinDim(NodeLowering& n) {
  const Hlo x = n.in(0);
  const DimVector dims = OneDim(n, 1, x);
  if (dims.empty()) return n.Return(x, Constant(n.emitter(), ElementType::kS64, 0));
  const Hlo best = BestOf(x, dims, n.op() == Op::max_dim, true);
  const Hlo index = FirstIndex(IsBest(x, best), dims[0], n.b(2));
  n.Return(Reshape(best, index.dims()), index);
}
void ArgMaxMin(NodeLowering& n) {
  Hlo x = n.in(0);
  const bool flat = !n.has(1);
  const int64_t rank = x.rank();
  if (flat) x = Reshape(x, {x.elements()});
  const DimVector dims = flat ? DimVector{0} : OneDim(n, 1, x);
  if (dims.empty()) return n.Return(Constant(n.emitter(), ElementType::kS64, 0));
  const Hlo index = FirstIndex(IsBest(x, BestOf(x, dims, n.op() == Op::argmax, true)), dims[0], !flat && n.b(2));
  n.Return(flat && n.b(2) ? Reshape(index, DimVector(static_cast<size_t>(rank), 1)) : index);
}
void AllAny(NodeLowering& n) {
  const Hlo x = n.in(0);
  const bool all = n.op() == Op::all || n.op() == Op::all_dim;
  const bool of_dim = n.op() == Op::all_dim || n.op() == Op::any_dim;
  const Hlo reduced = Reduce(all ? Opcode::kAnd : Opcode::kOr, lazy::Cast(x, ElementType::kPred),
                             of_dim ? OneDim(n, 1, x) : AllDims(x), of_dim && n.b(2));
  // torch keeps u8, which stood for bool once.
  n.Return(x.type() == ElementType::kU8 ? lazy::Cast(reduced, ElementType::kU8) : reduced);
}
void Var(NodeLowering& n) {
  if (CategoryOf(n.in(0).type()) < 2) {
    n.emitter().Fail("std and var only support floating point dtypes");
    return;
  }
  const Hlo x = Wide(n.in(0));
  const DimVector dims = ReducedDims(n, 1, x);
  const int64_t count = CountOf(x, dims);
  const int64_t correction = n.has(2) ? n.i(2) : 1;
  const Hlo centered = x - MeanOf(x, dims, true);
  const double divisor = count == 0 ? 0 : static_cast<double>(std::max<int64_t>(0, count - correction));
  // 0/0 of a single element, or of none, is NaN, as in torch.
  Hlo var = Reduce(Opcode::kAdd, centered * centered, dims, n.b(3)) / divisor;
  if (n.op() == Op::std_correction) var = Sqrt(var);
  n.Return(lazy::Cast(var, n.in(0).type()));
}
void VectorNorm(NodeLowering& n) {
  const ElementType type = n.dtype(4, n.in(0).type());
  if (CategoryOf(n.in(0).type()) < 2 || CategoryOf(type) < 2) {
    n.emitter().Fail("expected a floating point tensor as input");
    return;
  }
  const Hlo x = lazy::Cast(n.in(0), WideType(type));
  const DimVector dims = ReducedDims(n, 2, x);
  const bool keepdim = n.b(3);
  const double p = n.d(1);
  const Hlo magnitude = Abs(x);
  Hlo norm;
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
  n.Return(lazy::Cast(norm, type));
}
void LogSumExp(NodeLowering& n) {
  const Hlo x = Wide(n.in(0));
  const DimVector dims = ReducedDims(n, 1, x);
  const Hlo largest = Reduce(Opcode::kMaximum, x, dims, true);
  // An infinite maximum would make inf - inf.
  const Hlo shift = Select(Unary(Opcode::kIsFinite, largest), largest, Number(largest, 0));
  Hlo result = Log(Reduce(Opcode::kAdd, Exp(x - shift), dims, true)) + shift;
  if (!n.b(2)) {
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

void Scan(NodeLowering& n, Opcode opcode) {
  const Hlo input = n.in(0);
  const ElementType type = SumType(n, 2, input);
  const Hlo x = lazy::Cast(input, WideType(type));
  const DimVector dims = OneDim(n, 1, x);
  if (dims.empty() || x.elements() == 0) return n.Return(lazy::Cast(x, type));
  const size_t rank = static_cast<size_t>(x.rank());
  Window w{DimVector(rank, 1), {}, DimVector(rank, 0), DimVector(rank, 0), {}, {}};
  w.size[dims[0]] = x.size(dims[0]);
  w.low[dims[0]] = x.size(dims[0]) - 1;
  n.Return(lazy::Cast(ReduceWindow(opcode, x, Number(x, NeutralOf(opcode, x.type())), w), type));
}

}  // namespace

void Cumsum(NodeLowering& n) { Scan(n, Opcode::kAdd); }
void Cumprod(NodeLowering& n) { Scan(n, Opcode::kMultiply); }

void Cummax(NodeLowering& n) {
  const Hlo x = n.in(0);
  const DimVector dims = OneDim(n, 1, x);
  if (dims.empty()) return n.Return(x, Constant(n.emitter(), ElementType::kS64, 0));
  if (x.elements() == 0) return n.Return(x, Full(n.emitter(), ElementType::kS64, x.dims(), 0));
  const size_t rank = static_cast<size_t>(x.rank());
  Window w{DimVector(rank, 1), {}, DimVector(rank, 0), DimVector(rank, 0), {}, {}};
  w.size[dims[0]] = x.size(dims[0]);
  w.low[dims[0]] = x.size(dims[0]) - 1;
  const Hlo values = ReduceWindow(Opcode::kMaximum, x, Number(x, NeutralOf(Opcode::kMaximum, x.type())), w);
  // The last place so far where the running maximum was reached.
  const Hlo iota = IotaOf(n.emitter(), ElementType::kS64, x.dims(), dims[0]);
  const Hlo reached = Select(IsBest(x, values), iota, Number(iota, 0));
  n.Return(values, ReduceWindow(Opcode::kMaximum, reached, Number(iota, 0), w));
}

// ---- softmax ----

namespace {

struct Shifted {
  Hlo exp, sum;  // exp(x - max) and its sum
  Hlo x_minus_max;
};

Shifted ShiftedExp(Hlo x, Dims dims) {
  const Hlo largest = Reduce(Opcode::kMaximum, x, dims);
  const Hlo shifted = x - Unreduce(largest, x, dims);
  const Hlo exp = Exp(shifted);
  return {exp, Reduce(Opcode::kAdd, exp, dims), shifted};
}

}  // namespace

void Softmax(NodeLowering& n) {
  const Hlo x = Wide(n.in(0));
  const DimVector dims = OneDim(n, 1, x);
  const Shifted s = ShiftedExp(x, dims);
  n.Return(lazy::Cast(s.exp / Unreduce(s.sum, x, dims), n.in(0).type()));
}
void LogSoftmax(NodeLowering& n) {
  const Hlo x = Wide(n.in(0));
  const DimVector dims = OneDim(n, 1, x);
  const Shifted s = ShiftedExp(x, dims);
  n.Return(lazy::Cast(s.x_minus_max - Unreduce(Log(s.sum), x, dims), n.in(0).type()));
}
void SoftmaxBackward(NodeLowering& n) {
  const Hlo g = Wide(n.in(0)), y = Wide(n.in(1));
  const DimVector dims = OneDim(n, 2, y);
  const Hlo sum = Reduce(Opcode::kAdd, g * y, dims);
  n.Return(lazy::Cast(y * (g - Unreduce(sum, y, dims)), n.dtype(3, n.in(1).type())));
}
void LogSoftmaxBackward(NodeLowering& n) {
  const Hlo g = Wide(n.in(0)), y = Wide(n.in(1));
  const DimVector dims = OneDim(n, 2, y);
  const Hlo sum = Reduce(Opcode::kAdd, g, dims);
  n.Return(lazy::Cast(g - Exp(y) * Unreduce(sum, y, dims), n.dtype(3, n.in(1).type())));
}

}  // namespace lower
}  // namespace hlokit::lazy

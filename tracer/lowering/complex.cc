// SPDX-License-Identifier: Apache-2.0
// Complex numbers and their parts, Fourier transforms.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ir/core/str_cat.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

XlaOp MakeComplex(XlaOp real, XlaOp imag) { return Binary(Opcode::kComplex, real, imag); }
XlaOp RealOf(XlaOp x) { return IsComplex(x.type()) ? Unary(Opcode::kReal, x) : x; }
XlaOp ImagOf(XlaOp x) { return Unary(Opcode::kImag, x); }

bool IsComplexArg(LoweringContext& n, std::string_view message) {
  if (IsComplex(n.in(0).type())) return true;
  n.emitter().Fail(absl::InvalidArgumentError(std::string(message)));
  return false;
}

}  // namespace

void ComplexOf(LoweringContext& n) {
  const XlaOp real = n.in(0), imag = n.in(1);
  for (const XlaOp& part : {real, imag}) {
    if (part.type() == ElementType::kF32 || part.type() == ElementType::kF64) continue;
    n.emitter().Fail(
        absl::InvalidArgumentError(StrCat("Expected both inputs to be Half, Float or Double tensors but got ",
                                          TorchTypeName(real.type()), " and ", TorchTypeName(imag.type()))));
    return;
  }
  if (real.type() != imag.type()) {
    n.emitter().Fail(absl::InvalidArgumentError(StrCat("Expected object of scalar type ", TorchTypeName(real.type()),
                                                       " but got scalar type ", TorchTypeName(imag.type()),
                                                       " for second argument")));
    return;
  }
  n.Return(MakeComplex(real, imag));
}
void RealPart(LoweringContext& n) { n.Return(RealOf(n.in(0))); }
void ImagPart(LoweringContext& n) {
  if (IsComplexArg(n, "imag is not implemented for tensors with non-complex dtypes.")) n.Return(ImagOf(n.in(0)));
}
void Conj(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(IsComplex(x.type()) ? MakeComplex(RealOf(x), -ImagOf(x)) : x);
}
void ViewAsReal(LoweringContext& n) {
  if (!IsComplexArg(n, "view_as_real is only supported for complex tensors")) return;
  const XlaOp x = n.in(0);
  DimVector dims = x.dims();
  dims.push_back(1);
  n.Return(Concatenate({Reshape(RealOf(x), dims), Reshape(ImagOf(x), dims)}, x.rank()));
}
void ViewAsComplex(LoweringContext& n) {
  const XlaOp x = n.in(0);
  if (x.type() != ElementType::kF32 && x.type() != ElementType::kF64) {
    n.emitter().Fail(absl::InvalidArgumentError(StrCat(
        "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: ",
        TorchTypeName(x.type()))));
    return;
  }
  if (x.rank() == 0) return (void)n.emitter().Fail("Input tensor must have one or more dimensions");
  if (x.size(-1) != 2) return (void)n.emitter().Fail("Tensor must have a last dimension of size 2");
  DimVector dims = x.dims();
  dims.pop_back();
  const auto part = [&](int64_t i) { return Reshape(SliceDim(x, x.rank() - 1, i, i + 1), dims); };
  n.Return(MakeComplex(part(0), part(1)));
}
void Angle(LoweringContext& n) {
  const XlaOp x = n.in(0);
  if (IsComplex(x.type())) return n.Return(Binary(Opcode::kAtan2, ImagOf(x), RealOf(x)));
  const XlaOp number = Floating(x);
  const XlaOp angle = Select(Lt(number, Number(number, 0)), Number(number, std::numbers::pi), Number(number, 0));
  n.Return(Select(IsNan(number), number, angle));
}
void Isreal(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(IsComplex(x.type()) ? Eq(ImagOf(x), Number(ImagOf(x), 0))
                               : Full(n.emitter(), ElementType::kPred, x.dims(), true));
}

// ---- Fourier transforms, one dimension after the other ----

namespace {

XlaOp TransformDim(XlaOp x, int64_t dim, FftType type, int64_t length) {
  if (!x.ok()) return x;
  DimVector order = AllDims(x);
  std::swap(order[dim], order.back());
  x = Transpose(x, order);
  Builder& b = x.emitter().builder();
  x = x.emitter().Take(
      b.Add(Opcode::kFft, {x.id()}, {Builder::Enum(Attr::kFftType, type), b.List(Attr::kFftLength, {length})}));
  return Transpose(x, order);
}

// Returns the dimensions of argument 1; empty after an error.
DimVector TransformedDims(LoweringContext& n) {
  const XlaOp x = n.in(0);
  DimVector dims;
  for (int64_t d : n.ints(1)) {
    const int64_t dim = WrapDim(d, x.rank());
    if (dim < 0 || dim >= x.rank() || std::find(dims.begin(), dims.end(), dim) != dims.end()) {
      n.emitter().Fail("a transformed dimension is out of range or repeated");
      return {};
    }
    if (x.size(dim) < 1) {
      n.emitter().Fail(
          absl::InvalidArgumentError(StrCat("Invalid number of data points (", x.size(dim), ") specified")));
      return {};
    }
    dims.push_back(dim);
  }
  if (dims.empty()) n.emitter().Fail("at least one dimension is transformed");
  return dims;
}

// `normalization` is torch's: 0 none, 1 by the square root of the number of elements, 2 by that number.
double Factor(int64_t normalization, double elements) {
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(elements) : 1 / elements;
}

XlaOp Scaled(XlaOp x, double factor) { return factor == 1 ? x : x * factor; }

}  // namespace

// self, dim, normalization, forward
void FftC2c(LoweringContext& n) {
  XlaOp x = n.in(0);
  if (!IsComplex(x.type())) return (void)n.emitter().Fail("a complex tensor is expected");
  const DimVector dims = TransformedDims(n);
  double elements = 1;
  for (int64_t dim : dims) {
    elements *= static_cast<double>(x.size(dim));
    x = TransformDim(x, dim, n.bool_arg(3) ? FftType::kFft : FftType::kIfft, x.size(dim));
  }
  // The inverse transform of HLO is divided by the number of elements.
  n.Return(Scaled(x, Factor(n.int_arg(2), elements) * (n.bool_arg(3) ? 1 : elements)));
}
// self, dim, normalization, onesided
void FftR2c(LoweringContext& n) {
  XlaOp x = n.in(0);
  if (x.type() != ElementType::kF32 && x.type() != ElementType::kF64) {
    n.emitter().Fail("a tensor of f32 or f64 is expected");
    return;
  }
  const DimVector dims = TransformedDims(n);
  if (dims.empty()) return;
  double elements = 1;
  for (int64_t dim : dims) elements *= static_cast<double>(x.size(dim));
  if (n.bool_arg(3)) {
    x = TransformDim(x, dims.back(), FftType::kRfft, x.size(dims.back()));
  } else {
    x = TransformDim(MakeComplex(x, FullLike(x, 0)), dims.back(), FftType::kFft, x.size(dims.back()));
  }
  for (size_t i = 0; i + 1 < dims.size(); ++i) x = TransformDim(x, dims[i], FftType::kFft, x.size(dims[i]));
  n.Return(Scaled(x, Factor(n.int_arg(2), elements)));
}
// self, dim, normalization, last_dim_size
void FftC2r(LoweringContext& n) {
  XlaOp x = n.in(0);
  const int64_t size = n.int_arg(3);
  if (!IsComplex(x.type())) return (void)n.emitter().Fail("a complex tensor is expected");
  const DimVector dims = TransformedDims(n);
  if (dims.empty()) return;
  if (size < 1 || size / 2 + 1 != x.size(dims.back())) {
    n.emitter().Fail("last_dim_size does not fit the last transformed dimension");
    return;
  }
  double elements = static_cast<double>(size);
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    elements *= static_cast<double>(x.size(dims[i]));
    x = TransformDim(x, dims[i], FftType::kIfft, x.size(dims[i]));
  }
  x = TransformDim(x, dims.back(), FftType::kIrfft, size);
  n.Return(Scaled(x, Factor(n.int_arg(2), elements) * elements));
}

}  // namespace hlokit::lazy::lower

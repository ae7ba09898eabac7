// SPDX-License-Identifier: Apache-2.0
// Ops as C++ functions. Each calls the aten op of its name (aten_ops.def).
#ifndef HLOKIT_TRACER_DISPATCH_FUNCTIONS_H_
#define HLOKIT_TRACER_DISPATCH_FUNCTIONS_H_

#include <optional>
#include <source_location>
#include <utility>
#include <vector>

#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/op.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

// ---- creation, on the thread's device ----
inline Tensor Full(Dims sizes, Scalar value, ElementType type,
                   const std::source_location& at = std::source_location::current()) {
  return InvokeOp({Op::full, at}, sizes, value, type);
}
inline Tensor Zeros(Dims sizes, ElementType type, const std::source_location& at = std::source_location::current()) {
  return Full(sizes, 0, type, at);
}
inline Tensor ZerosLike(const LocatedTensor& t) { return InvokeOp(Op::zeros_like, t); }
inline Tensor OnesLike(const LocatedTensor& t) { return InvokeOp(Op::ones_like, t); }
inline Tensor FullLike(const LocatedTensor& t, Scalar v) { return InvokeOp(Op::full_like, t, v); }
inline Tensor Arange(int64_t n, ElementType type = ElementType::kS64,
                     const std::source_location& at = std::source_location::current()) {
  return InvokeOp({Op::arange, at}, Scalar(n), type);
}
inline Tensor To(const LocatedTensor& t, ElementType type) { return InvokeOp(Op::to_copy, t, type); }

// ---- elementwise ----
inline Tensor Add(const LocatedTensor& a, const Tensor& b, Scalar alpha = 1) {
  return InvokeOp(Op::add_Tensor, a, b, alpha);
}
inline Tensor Add(const LocatedTensor& a, Scalar b) { return InvokeOp(Op::add_Scalar, a, b); }
inline Tensor Sub(const LocatedTensor& a, const Tensor& b, Scalar alpha = 1) {
  return InvokeOp(Op::sub_Tensor, a, b, alpha);
}
inline Tensor Sub(const LocatedTensor& a, Scalar b) { return InvokeOp(Op::sub_Scalar, a, b); }
inline Tensor Rsub(const LocatedTensor& a, Scalar b) { return InvokeOp(Op::rsub_Scalar, a, b); }
inline Tensor Mul(const LocatedTensor& a, const Tensor& b) { return InvokeOp(Op::mul_Tensor, a, b); }
inline Tensor Mul(const LocatedTensor& a, Scalar b) { return InvokeOp(Op::mul_Scalar, a, b); }
inline Tensor Div(const LocatedTensor& a, const Tensor& b) { return InvokeOp(Op::div_Tensor, a, b); }
inline Tensor Div(const LocatedTensor& a, Scalar b) { return InvokeOp(Op::div_Scalar, a, b); }
inline Tensor Pow(const LocatedTensor& a, Scalar b) { return InvokeOp(Op::pow_Tensor_Scalar, a, b); }
inline Tensor Pow(const LocatedTensor& a, const Tensor& b) { return InvokeOp(Op::pow_Tensor_Tensor, a, b); }
inline Tensor operator+(const LocatedTensor& a, const Tensor& b) { return Add(a, b); }
inline Tensor operator-(const LocatedTensor& a, const Tensor& b) { return Sub(a, b); }
inline Tensor operator*(const LocatedTensor& a, const Tensor& b) { return Mul(a, b); }
inline Tensor operator/(const LocatedTensor& a, const Tensor& b) { return Div(a, b); }
inline Tensor operator+(const LocatedTensor& a, Scalar b) { return Add(a, b); }
inline Tensor operator-(const LocatedTensor& a, Scalar b) { return Sub(a, b); }
inline Tensor operator*(const LocatedTensor& a, Scalar b) { return Mul(a, b); }
inline Tensor operator/(const LocatedTensor& a, Scalar b) { return Div(a, b); }
inline Tensor Neg(const LocatedTensor& a) { return InvokeOp(Op::neg, a); }
inline Tensor operator-(const LocatedTensor& a) { return Neg(a); }
inline Tensor Abs(const LocatedTensor& a) { return InvokeOp(Op::abs, a); }
inline Tensor Sgn(const LocatedTensor& a) { return InvokeOp(Op::sgn, a); }
inline Tensor Exp(const LocatedTensor& a) { return InvokeOp(Op::exp, a); }
inline Tensor Log(const LocatedTensor& a) { return InvokeOp(Op::log, a); }
inline Tensor Sqrt(const LocatedTensor& a) { return InvokeOp(Op::sqrt, a); }
inline Tensor Rsqrt(const LocatedTensor& a) { return InvokeOp(Op::rsqrt, a); }
inline Tensor Reciprocal(const LocatedTensor& a) { return InvokeOp(Op::reciprocal, a); }
inline Tensor Relu(const LocatedTensor& a) { return InvokeOp(Op::relu, a); }
inline Tensor Gelu(const LocatedTensor& a, const char* approximate = "none") {
  return InvokeOp(Op::gelu, a, approximate);
}
inline Tensor Silu(const LocatedTensor& a) { return InvokeOp(Op::silu, a); }
inline Tensor Tanh(const LocatedTensor& a) { return InvokeOp(Op::tanh, a); }
inline Tensor Sigmoid(const LocatedTensor& a) { return InvokeOp(Op::sigmoid, a); }
inline Tensor Eq(const LocatedTensor& a, const Tensor& b) { return InvokeOp(Op::eq_Tensor, a, b); }
inline Tensor Eq(const LocatedTensor& a, Scalar b) { return InvokeOp(Op::eq_Scalar, a, b); }
inline Tensor Ne(const LocatedTensor& a, Scalar b) { return InvokeOp(Op::ne_Scalar, a, b); }
inline Tensor Lt(const LocatedTensor& a, Scalar b) { return InvokeOp(Op::lt_Scalar, a, b); }
inline Tensor Le(const LocatedTensor& a, Scalar b) { return InvokeOp(Op::le_Scalar, a, b); }
inline Tensor Gt(const LocatedTensor& a, Scalar b) { return InvokeOp(Op::gt_Scalar, a, b); }
inline Tensor Ge(const LocatedTensor& a, Scalar b) { return InvokeOp(Op::ge_Scalar, a, b); }
inline Tensor Lt(const LocatedTensor& a, const Tensor& b) { return InvokeOp(Op::lt_Tensor, a, b); }
inline Tensor Gt(const LocatedTensor& a, const Tensor& b) { return InvokeOp(Op::gt_Tensor, a, b); }
inline Tensor Le(const LocatedTensor& a, const Tensor& b) { return InvokeOp(Op::le_Tensor, a, b); }
inline Tensor Ge(const LocatedTensor& a, const Tensor& b) { return InvokeOp(Op::ge_Tensor, a, b); }
inline Tensor And(const LocatedTensor& a, const Tensor& b) { return InvokeOp(Op::logical_and, a, b); }
inline Tensor Or(const LocatedTensor& a, const Tensor& b) { return InvokeOp(Op::logical_or, a, b); }
inline Tensor Not(const LocatedTensor& a) { return InvokeOp(Op::logical_not, a); }
inline Tensor Where(const LocatedTensor& c, const Tensor& a, const Tensor& b) {
  return InvokeOp(Op::where_self, c, a, b);
}
inline Tensor Where(const LocatedTensor& c, const Tensor& a, Scalar b) {
  return InvokeOp(Op::where_ScalarOther, c, a, b);
}
inline Tensor MaskedFill(const LocatedTensor& a, const Tensor& mask, Scalar v) {
  return InvokeOp(Op::masked_fill_Scalar, a, mask, v);
}

// ---- reductions; an empty list of dimensions means all ----
inline Tensor Sum(const LocatedTensor& a) { return InvokeOp(Op::sum, a); }
inline Tensor Sum(const LocatedTensor& a, Dims dims, bool keepdim = false) {
  return InvokeOp(Op::sum_dim_IntList, a, dims, keepdim);
}
inline Tensor Mean(const LocatedTensor& a) { return InvokeOp(Op::mean, a); }
inline Tensor Mean(const LocatedTensor& a, Dims dims, bool keepdim = false) {
  return InvokeOp(Op::mean_dim, a, dims, keepdim);
}
// Sums over the dimensions that a broadcast from `sizes` added.
Tensor SumToSize(const LocatedTensor& a, Dims sizes);

// ---- matmuls ----
inline Tensor Mm(const LocatedTensor& a, const Tensor& b) { return InvokeOp(Op::mm, a, b); }
inline Tensor Bmm(const LocatedTensor& a, const Tensor& b) { return InvokeOp(Op::bmm, a, b); }
inline Tensor Matmul(const LocatedTensor& a, const Tensor& b) { return InvokeOp(Op::matmul, a, b); }
inline Tensor Linear(const LocatedTensor& x, const Tensor& weight, const Tensor& bias = Tensor()) {
  return InvokeOp(Op::linear, x, weight, bias);
}

// ---- shapes ----
inline Tensor View(const LocatedTensor& a, Dims sizes) { return InvokeOp(Op::view, a, sizes); }
inline Tensor Reshape(const LocatedTensor& a, Dims sizes) { return InvokeOp(Op::reshape, a, sizes); }
inline Tensor Expand(const LocatedTensor& a, Dims sizes) { return InvokeOp(Op::expand, a, sizes); }
inline Tensor Permute(const LocatedTensor& a, Dims dims) { return InvokeOp(Op::permute, a, dims); }
inline Tensor Transpose(const LocatedTensor& a, int64_t i, int64_t j) { return InvokeOp(Op::transpose_int, a, i, j); }
inline Tensor T(const LocatedTensor& a) { return InvokeOp(Op::t, a); }
inline Tensor Unsqueeze(const LocatedTensor& a, int64_t dim) { return InvokeOp(Op::unsqueeze, a, dim); }
inline Tensor Squeeze(const LocatedTensor& a, int64_t dim) { return InvokeOp(Op::squeeze_dim, a, dim); }
inline Tensor Slice(const LocatedTensor& a, int64_t dim, int64_t start, int64_t end, int64_t step = 1) {
  return InvokeOp(Op::slice_Tensor, a, dim, start, end, step);
}
inline Tensor Narrow(const LocatedTensor& a, int64_t dim, int64_t start, int64_t length) {
  return Slice(a, dim, start, start + length);
}
inline Tensor Select(const LocatedTensor& a, int64_t dim, int64_t index) {
  return InvokeOp(Op::select_int, a, dim, index);
}
inline Tensor Cat(Tensors parts, int64_t dim, const std::source_location& at = std::source_location::current()) {
  return InvokeOp({Op::cat, at}, std::move(parts), dim);
}
inline Tensor Flip(const LocatedTensor& a, Dims dims) { return InvokeOp(Op::flip, a, dims); }
inline Tensor Flatten(const LocatedTensor& a, int64_t start, int64_t end = -1) {
  return InvokeOp(Op::flatten_using_ints, a, start, end);
}
inline Tensor IndexSelect(const LocatedTensor& a, int64_t dim, const Tensor& index) {
  return InvokeOp(Op::index_select, a, dim, index);
}
inline Tensor Gather(const LocatedTensor& a, int64_t dim, const Tensor& index) {
  return InvokeOp(Op::gather, a, dim, index);
}
inline Tensor ScatterAdd(const LocatedTensor& a, int64_t dim, const Tensor& index, const Tensor& src) {
  return InvokeOp(Op::scatter_add, a, dim, index, src);
}

// ---- layers ----
inline Tensor Softmax(const LocatedTensor& a, int64_t dim) { return InvokeOp(Op::softmax, a, dim, false); }
inline Tensor LogSoftmax(const LocatedTensor& a, int64_t dim) { return InvokeOp(Op::log_softmax, a, dim, false); }
inline Tensor CrossEntropy(const LocatedTensor& logits, const Tensor& target) {
  return InvokeOp(Op::cross_entropy_loss, logits, target);
}

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_DISPATCH_FUNCTIONS_H_

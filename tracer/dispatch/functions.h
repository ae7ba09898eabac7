// SPDX-License-Identifier: Apache-2.0
// Ops as C++ functions. Each calls the aten op of its name (aten_ops.def).
#ifndef HLOKIT_TRACER_DISPATCH_FUNCTIONS_H_
#define HLOKIT_TRACER_DISPATCH_FUNCTIONS_H_

#include <optional>
#include <utility>
#include <vector>

#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/op.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

// ---- creation, on the thread's device ----
inline Tensor Full(Dims sizes, Scalar value, ElementType type) { return InvokeOp(Op::full, sizes, value, type); }
inline Tensor Zeros(Dims sizes, ElementType type) { return Full(sizes, 0, type); }
inline Tensor ZerosLike(const Tensor& t) { return InvokeOp(Op::zeros_like, t); }
inline Tensor OnesLike(const Tensor& t) { return InvokeOp(Op::ones_like, t); }
inline Tensor FullLike(const Tensor& t, Scalar v) { return InvokeOp(Op::full_like, t, v); }
inline Tensor Arange(int64_t n, ElementType type = ElementType::kS64) { return InvokeOp(Op::arange, Scalar(n), type); }
inline Tensor To(const Tensor& t, ElementType type) { return InvokeOp(Op::to_copy, t, type); }

// ---- elementwise ----
inline Tensor Add(const Tensor& a, const Tensor& b, Scalar alpha = 1) { return InvokeOp(Op::add_Tensor, a, b, alpha); }
inline Tensor Add(const Tensor& a, Scalar b) { return InvokeOp(Op::add_Scalar, a, b); }
inline Tensor Sub(const Tensor& a, const Tensor& b, Scalar alpha = 1) { return InvokeOp(Op::sub_Tensor, a, b, alpha); }
inline Tensor Sub(const Tensor& a, Scalar b) { return InvokeOp(Op::sub_Scalar, a, b); }
inline Tensor Rsub(const Tensor& a, Scalar b) { return InvokeOp(Op::rsub_Scalar, a, b); }
inline Tensor Mul(const Tensor& a, const Tensor& b) { return InvokeOp(Op::mul_Tensor, a, b); }
inline Tensor Mul(const Tensor& a, Scalar b) { return InvokeOp(Op::mul_Scalar, a, b); }
inline Tensor Div(const Tensor& a, const Tensor& b) { return InvokeOp(Op::div_Tensor, a, b); }
inline Tensor Div(const Tensor& a, Scalar b) { return InvokeOp(Op::div_Scalar, a, b); }
inline Tensor Pow(const Tensor& a, Scalar b) { return InvokeOp(Op::pow_Tensor_Scalar, a, b); }
inline Tensor Pow(const Tensor& a, const Tensor& b) { return InvokeOp(Op::pow_Tensor_Tensor, a, b); }
inline Tensor operator+(const Tensor& a, const Tensor& b) { return Add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return Sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return Mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return Div(a, b); }
inline Tensor operator+(const Tensor& a, Scalar b) { return Add(a, b); }
inline Tensor operator-(const Tensor& a, Scalar b) { return Sub(a, b); }
inline Tensor operator*(const Tensor& a, Scalar b) { return Mul(a, b); }
inline Tensor operator/(const Tensor& a, Scalar b) { return Div(a, b); }
inline Tensor Neg(const Tensor& a) { return InvokeOp(Op::neg, a); }
inline Tensor operator-(const Tensor& a) { return Neg(a); }
inline Tensor Abs(const Tensor& a) { return InvokeOp(Op::abs, a); }
inline Tensor Sgn(const Tensor& a) { return InvokeOp(Op::sgn, a); }
inline Tensor Exp(const Tensor& a) { return InvokeOp(Op::exp, a); }
inline Tensor Log(const Tensor& a) { return InvokeOp(Op::log, a); }
inline Tensor Sqrt(const Tensor& a) { return InvokeOp(Op::sqrt, a); }
inline Tensor Rsqrt(const Tensor& a) { return InvokeOp(Op::rsqrt, a); }
inline Tensor Reciprocal(const Tensor& a) { return InvokeOp(Op::reciprocal, a); }
inline Tensor Relu(const Tensor& a) { return InvokeOp(Op::relu, a); }
inline Tensor Gelu(const Tensor& a, const char* approximate = "none") { return InvokeOp(Op::gelu, a, approximate); }
inline Tensor Silu(const Tensor& a) { return InvokeOp(Op::silu, a); }
inline Tensor Tanh(const Tensor& a) { return InvokeOp(Op::tanh, a); }
inline Tensor Sigmoid(const Tensor& a) { return InvokeOp(Op::sigmoid, a); }
inline Tensor Eq(const Tensor& a, const Tensor& b) { return InvokeOp(Op::eq_Tensor, a, b); }
inline Tensor Eq(const Tensor& a, Scalar b) { return InvokeOp(Op::eq_Scalar, a, b); }
inline Tensor Ne(const Tensor& a, Scalar b) { return InvokeOp(Op::ne_Scalar, a, b); }
inline Tensor Lt(const Tensor& a, Scalar b) { return InvokeOp(Op::lt_Scalar, a, b); }
inline Tensor Le(const Tensor& a, Scalar b) { return InvokeOp(Op::le_Scalar, a, b); }
inline Tensor Gt(const Tensor& a, Scalar b) { return InvokeOp(Op::gt_Scalar, a, b); }
inline Tensor Ge(const Tensor& a, Scalar b) { return InvokeOp(Op::ge_Scalar, a, b); }
inline Tensor Lt(const Tensor& a, const Tensor& b) { return InvokeOp(Op::lt_Tensor, a, b); }
inline Tensor Gt(const Tensor& a, const Tensor& b) { return InvokeOp(Op::gt_Tensor, a, b); }
inline Tensor Le(const Tensor& a, const Tensor& b) { return InvokeOp(Op::le_Tensor, a, b); }
inline Tensor Ge(const Tensor& a, const Tensor& b) { return InvokeOp(Op::ge_Tensor, a, b); }
inline Tensor And(const Tensor& a, const Tensor& b) { return InvokeOp(Op::logical_and, a, b); }
inline Tensor Or(const Tensor& a, const Tensor& b) { return InvokeOp(Op::logical_or, a, b); }
inline Tensor Not(const Tensor& a) { return InvokeOp(Op::logical_not, a); }
inline Tensor Where(const Tensor& c, const Tensor& a, const Tensor& b) { return InvokeOp(Op::where_self, c, a, b); }
inline Tensor Where(const Tensor& c, const Tensor& a, Scalar b) { return InvokeOp(Op::where_ScalarOther, c, a, b); }
inline Tensor MaskedFill(const Tensor& a, const Tensor& mask, Scalar v) {
  return InvokeOp(Op::masked_fill_Scalar, a, mask, v);
}

// ---- reductions; an empty list of dimensions means all ----
inline Tensor Sum(const Tensor& a) { return InvokeOp(Op::sum, a); }
inline Tensor Sum(const Tensor& a, Dims dims, bool keepdim = false) {
  return InvokeOp(Op::sum_dim_IntList, a, dims, keepdim);
}
inline Tensor Mean(const Tensor& a) { return InvokeOp(Op::mean, a); }
inline Tensor Mean(const Tensor& a, Dims dims, bool keepdim = false) {
  return InvokeOp(Op::mean_dim, a, dims, keepdim);
}
// Sums over the dimensions that a broadcast from `sizes` added.
Tensor SumToSize(const Tensor& a, Dims sizes);

// ---- matmuls ----
inline Tensor Mm(const Tensor& a, const Tensor& b) { return InvokeOp(Op::mm, a, b); }
inline Tensor Bmm(const Tensor& a, const Tensor& b) { return InvokeOp(Op::bmm, a, b); }
inline Tensor Matmul(const Tensor& a, const Tensor& b) { return InvokeOp(Op::matmul, a, b); }
inline Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor()) {
  return InvokeOp(Op::linear, x, weight, bias);
}

// ---- shapes ----
inline Tensor View(const Tensor& a, Dims sizes) { return InvokeOp(Op::view, a, sizes); }
inline Tensor Reshape(const Tensor& a, Dims sizes) { return InvokeOp(Op::reshape, a, sizes); }
inline Tensor Expand(const Tensor& a, Dims sizes) { return InvokeOp(Op::expand, a, sizes); }
inline Tensor Permute(const Tensor& a, Dims dims) { return InvokeOp(Op::permute, a, dims); }
inline Tensor Transpose(const Tensor& a, int64_t i, int64_t j) { return InvokeOp(Op::transpose_int, a, i, j); }
inline Tensor T(const Tensor& a) { return InvokeOp(Op::t, a); }
inline Tensor Unsqueeze(const Tensor& a, int64_t dim) { return InvokeOp(Op::unsqueeze, a, dim); }
inline Tensor Squeeze(const Tensor& a, int64_t dim) { return InvokeOp(Op::squeeze_dim, a, dim); }
inline Tensor Slice(const Tensor& a, int64_t dim, int64_t start, int64_t end, int64_t step = 1) {
  return InvokeOp(Op::slice_Tensor, a, dim, start, end, step);
}
inline Tensor Narrow(const Tensor& a, int64_t dim, int64_t start, int64_t length) {
  return Slice(a, dim, start, start + length);
}
inline Tensor Select(const Tensor& a, int64_t dim, int64_t index) { return InvokeOp(Op::select_int, a, dim, index); }
inline Tensor Cat(Tensors parts, int64_t dim) { return InvokeOp(Op::cat, std::move(parts), dim); }
inline Tensor Flip(const Tensor& a, Dims dims) { return InvokeOp(Op::flip, a, dims); }
inline Tensor Flatten(const Tensor& a, int64_t start, int64_t end = -1) {
  return InvokeOp(Op::flatten_using_ints, a, start, end);
}
inline Tensor IndexSelect(const Tensor& a, int64_t dim, const Tensor& index) {
  return InvokeOp(Op::index_select, a, dim, index);
}
inline Tensor Gather(const Tensor& a, int64_t dim, const Tensor& index) { return InvokeOp(Op::gather, a, dim, index); }
inline Tensor ScatterAdd(const Tensor& a, int64_t dim, const Tensor& index, const Tensor& src) {
  return InvokeOp(Op::scatter_add, a, dim, index, src);
}

// ---- layers ----
inline Tensor Softmax(const Tensor& a, int64_t dim) { return InvokeOp(Op::softmax, a, dim, false); }
inline Tensor LogSoftmax(const Tensor& a, int64_t dim) { return InvokeOp(Op::log_softmax, a, dim, false); }
inline Tensor CrossEntropy(const Tensor& logits, const Tensor& target) {
  return InvokeOp(Op::cross_entropy_loss, logits, target);
}

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_DISPATCH_FUNCTIONS_H_

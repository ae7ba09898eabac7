// SPDX-License-Identifier: Apache-2.0
// Written by `ir-dump --list-ops=method-bodies` from the rows of aten_ops.def.
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/tensor.h"

// clang-format off
namespace hlokit::lazy {

Tensor Tensor::new_zeros(DimList size, std::optional<ElementType> dtype) const {
  return InvokeOp(Op::new_zeros, *this, size, dtype);
}
const Tensor& Tensor::fill_(Scalar value) const {
  InvokeOp(Op::fill_inplace_Scalar, *this, value);
  return *this;
}
const Tensor& Tensor::fill_(const Tensor& value) const {
  InvokeOp(Op::fill_inplace_Tensor, *this, value);
  return *this;
}
const Tensor& Tensor::zero_() const {
  InvokeOp(Op::zero_inplace, *this);
  return *this;
}
const Tensor& Tensor::copy_(const Tensor& src) const {
  InvokeOp(Op::copy_inplace, *this, src);
  return *this;
}
Tensor Tensor::clone() const {
  return InvokeOp(Op::clone, *this);
}
Tensor Tensor::alias() const {
  return InvokeOp(Op::alias, *this);
}
Tensor Tensor::detach() const {
  return InvokeOp(Op::detach, *this);
}
Tensor Tensor::abs() const {
  return InvokeOp(Op::abs, *this);
}
const Tensor& Tensor::abs_() const {
  WriteInPlace(*this, InvokeOp(Op::abs, *this));
  return *this;
}
Tensor Tensor::neg() const {
  return InvokeOp(Op::neg, *this);
}
const Tensor& Tensor::neg_() const {
  WriteInPlace(*this, InvokeOp(Op::neg, *this));
  return *this;
}
Tensor Tensor::sgn() const {
  return InvokeOp(Op::sgn, *this);
}
const Tensor& Tensor::sgn_() const {
  WriteInPlace(*this, InvokeOp(Op::sgn, *this));
  return *this;
}
Tensor Tensor::sign() const {
  return InvokeOp(Op::sign, *this);
}
const Tensor& Tensor::sign_() const {
  WriteInPlace(*this, InvokeOp(Op::sign, *this));
  return *this;
}
Tensor Tensor::exp() const {
  return InvokeOp(Op::exp, *this);
}
const Tensor& Tensor::exp_() const {
  WriteInPlace(*this, InvokeOp(Op::exp, *this));
  return *this;
}
Tensor Tensor::expm1() const {
  return InvokeOp(Op::expm1, *this);
}
const Tensor& Tensor::expm1_() const {
  WriteInPlace(*this, InvokeOp(Op::expm1, *this));
  return *this;
}
Tensor Tensor::log() const {
  return InvokeOp(Op::log, *this);
}
const Tensor& Tensor::log_() const {
  WriteInPlace(*this, InvokeOp(Op::log, *this));
  return *this;
}
Tensor Tensor::log1p() const {
  return InvokeOp(Op::log1p, *this);
}
const Tensor& Tensor::log1p_() const {
  WriteInPlace(*this, InvokeOp(Op::log1p, *this));
  return *this;
}
Tensor Tensor::log2() const {
  return InvokeOp(Op::log2, *this);
}
const Tensor& Tensor::log2_() const {
  WriteInPlace(*this, InvokeOp(Op::log2, *this));
  return *this;
}
Tensor Tensor::log10() const {
  return InvokeOp(Op::log10, *this);
}
const Tensor& Tensor::log10_() const {
  WriteInPlace(*this, InvokeOp(Op::log10, *this));
  return *this;
}
Tensor Tensor::sqrt() const {
  return InvokeOp(Op::sqrt, *this);
}
const Tensor& Tensor::sqrt_() const {
  WriteInPlace(*this, InvokeOp(Op::sqrt, *this));
  return *this;
}
Tensor Tensor::rsqrt() const {
  return InvokeOp(Op::rsqrt, *this);
}
const Tensor& Tensor::rsqrt_() const {
  WriteInPlace(*this, InvokeOp(Op::rsqrt, *this));
  return *this;
}
Tensor Tensor::reciprocal() const {
  return InvokeOp(Op::reciprocal, *this);
}
const Tensor& Tensor::reciprocal_() const {
  WriteInPlace(*this, InvokeOp(Op::reciprocal, *this));
  return *this;
}
Tensor Tensor::erf() const {
  return InvokeOp(Op::erf, *this);
}
const Tensor& Tensor::erf_() const {
  WriteInPlace(*this, InvokeOp(Op::erf, *this));
  return *this;
}
Tensor Tensor::erfc() const {
  return InvokeOp(Op::erfc, *this);
}
const Tensor& Tensor::erfc_() const {
  WriteInPlace(*this, InvokeOp(Op::erfc, *this));
  return *this;
}
Tensor Tensor::erfinv() const {
  return InvokeOp(Op::erfinv, *this);
}
const Tensor& Tensor::erfinv_() const {
  WriteInPlace(*this, InvokeOp(Op::erfinv, *this));
  return *this;
}
Tensor Tensor::sin() const {
  return InvokeOp(Op::sin, *this);
}
const Tensor& Tensor::sin_() const {
  WriteInPlace(*this, InvokeOp(Op::sin, *this));
  return *this;
}
Tensor Tensor::cos() const {
  return InvokeOp(Op::cos, *this);
}
const Tensor& Tensor::cos_() const {
  WriteInPlace(*this, InvokeOp(Op::cos, *this));
  return *this;
}
Tensor Tensor::sinh() const {
  return InvokeOp(Op::sinh, *this);
}
const Tensor& Tensor::sinh_() const {
  WriteInPlace(*this, InvokeOp(Op::sinh, *this));
  return *this;
}
Tensor Tensor::cosh() const {
  return InvokeOp(Op::cosh, *this);
}
const Tensor& Tensor::cosh_() const {
  WriteInPlace(*this, InvokeOp(Op::cosh, *this));
  return *this;
}
Tensor Tensor::atan() const {
  return InvokeOp(Op::atan, *this);
}
const Tensor& Tensor::atan_() const {
  WriteInPlace(*this, InvokeOp(Op::atan, *this));
  return *this;
}
Tensor Tensor::exp2() const {
  return InvokeOp(Op::exp2, *this);
}
const Tensor& Tensor::exp2_() const {
  WriteInPlace(*this, InvokeOp(Op::exp2, *this));
  return *this;
}
Tensor Tensor::square() const {
  return InvokeOp(Op::square, *this);
}
const Tensor& Tensor::square_() const {
  WriteInPlace(*this, InvokeOp(Op::square, *this));
  return *this;
}
Tensor Tensor::tanh() const {
  return InvokeOp(Op::tanh, *this);
}
const Tensor& Tensor::tanh_() const {
  WriteInPlace(*this, InvokeOp(Op::tanh, *this));
  return *this;
}
Tensor Tensor::sigmoid() const {
  return InvokeOp(Op::sigmoid, *this);
}
const Tensor& Tensor::sigmoid_() const {
  WriteInPlace(*this, InvokeOp(Op::sigmoid, *this));
  return *this;
}
Tensor Tensor::relu() const {
  return InvokeOp(Op::relu, *this);
}
const Tensor& Tensor::relu_() const {
  WriteInPlace(*this, InvokeOp(Op::relu, *this));
  return *this;
}
Tensor Tensor::floor() const {
  return InvokeOp(Op::floor, *this);
}
const Tensor& Tensor::floor_() const {
  WriteInPlace(*this, InvokeOp(Op::floor, *this));
  return *this;
}
Tensor Tensor::ceil() const {
  return InvokeOp(Op::ceil, *this);
}
const Tensor& Tensor::ceil_() const {
  WriteInPlace(*this, InvokeOp(Op::ceil, *this));
  return *this;
}
Tensor Tensor::round() const {
  return InvokeOp(Op::round, *this);
}
const Tensor& Tensor::round_() const {
  WriteInPlace(*this, InvokeOp(Op::round, *this));
  return *this;
}
Tensor Tensor::trunc() const {
  return InvokeOp(Op::trunc, *this);
}
const Tensor& Tensor::trunc_() const {
  WriteInPlace(*this, InvokeOp(Op::trunc, *this));
  return *this;
}
Tensor Tensor::round(int64_t decimals) const {
  return InvokeOp(Op::round_decimals, *this, decimals);
}
const Tensor& Tensor::round_(int64_t decimals) const {
  WriteInPlace(*this, InvokeOp(Op::round_decimals, *this, decimals));
  return *this;
}
Tensor Tensor::frac() const {
  return InvokeOp(Op::frac, *this);
}
const Tensor& Tensor::frac_() const {
  WriteInPlace(*this, InvokeOp(Op::frac, *this));
  return *this;
}
Tensor Tensor::isnan() const {
  return InvokeOp(Op::isnan, *this);
}
Tensor Tensor::isinf() const {
  return InvokeOp(Op::isinf, *this);
}
Tensor Tensor::isfinite() const {
  return InvokeOp(Op::isfinite, *this);
}
Tensor Tensor::logical_not() const {
  return InvokeOp(Op::logical_not, *this);
}
const Tensor& Tensor::logical_not_() const {
  WriteInPlace(*this, InvokeOp(Op::logical_not, *this));
  return *this;
}
Tensor Tensor::bitwise_not() const {
  return InvokeOp(Op::bitwise_not, *this);
}
const Tensor& Tensor::bitwise_not_() const {
  WriteInPlace(*this, InvokeOp(Op::bitwise_not, *this));
  return *this;
}
Tensor Tensor::nan_to_num(std::optional<double> nan, std::optional<double> posinf, std::optional<double> neginf) const {
  return InvokeOp(Op::nan_to_num, *this, nan, posinf, neginf);
}
const Tensor& Tensor::nan_to_num_(std::optional<double> nan, std::optional<double> posinf,
                                  std::optional<double> neginf) const {
  WriteInPlace(*this, InvokeOp(Op::nan_to_num, *this, nan, posinf, neginf));
  return *this;
}
Tensor Tensor::logit(std::optional<double> eps) const {
  return InvokeOp(Op::logit, *this, eps);
}
const Tensor& Tensor::logit_(std::optional<double> eps) const {
  WriteInPlace(*this, InvokeOp(Op::logit, *this, eps));
  return *this;
}
Tensor Tensor::prelu(const Tensor& weight) const {
  return InvokeOp(Op::prelu, *this, weight);
}
Tensor Tensor::add(const Tensor& other, Scalar alpha) const {
  return InvokeOp(Op::add_Tensor, *this, other, alpha);
}
const Tensor& Tensor::add_(const Tensor& other, Scalar alpha) const {
  WriteInPlace(*this, InvokeOp(Op::add_Tensor, *this, other, alpha));
  return *this;
}
Tensor Tensor::add(Scalar other, Scalar alpha) const {
  return InvokeOp(Op::add_Scalar, *this, other, alpha);
}
const Tensor& Tensor::add_(Scalar other, Scalar alpha) const {
  WriteInPlace(*this, InvokeOp(Op::add_Scalar, *this, other, alpha));
  return *this;
}
Tensor Tensor::sub(const Tensor& other, Scalar alpha) const {
  return InvokeOp(Op::sub_Tensor, *this, other, alpha);
}
const Tensor& Tensor::sub_(const Tensor& other, Scalar alpha) const {
  WriteInPlace(*this, InvokeOp(Op::sub_Tensor, *this, other, alpha));
  return *this;
}
Tensor Tensor::sub(Scalar other, Scalar alpha) const {
  return InvokeOp(Op::sub_Scalar, *this, other, alpha);
}
const Tensor& Tensor::sub_(Scalar other, Scalar alpha) const {
  WriteInPlace(*this, InvokeOp(Op::sub_Scalar, *this, other, alpha));
  return *this;
}
Tensor Tensor::mul(const Tensor& other) const {
  return InvokeOp(Op::mul_Tensor, *this, other);
}
const Tensor& Tensor::mul_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::mul_Tensor, *this, other));
  return *this;
}
Tensor Tensor::mul(Scalar other) const {
  return InvokeOp(Op::mul_Scalar, *this, other);
}
const Tensor& Tensor::mul_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::mul_Scalar, *this, other));
  return *this;
}
Tensor Tensor::div(const Tensor& other) const {
  return InvokeOp(Op::div_Tensor, *this, other);
}
const Tensor& Tensor::div_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::div_Tensor, *this, other));
  return *this;
}
Tensor Tensor::div(Scalar other) const {
  return InvokeOp(Op::div_Scalar, *this, other);
}
const Tensor& Tensor::div_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::div_Scalar, *this, other));
  return *this;
}
Tensor Tensor::div(const Tensor& other, std::optional<std::string_view> rounding_mode) const {
  return InvokeOp(Op::div_Tensor_mode, *this, other, rounding_mode);
}
const Tensor& Tensor::div_(const Tensor& other, std::optional<std::string_view> rounding_mode) const {
  WriteInPlace(*this, InvokeOp(Op::div_Tensor_mode, *this, other, rounding_mode));
  return *this;
}
Tensor Tensor::div(Scalar other, std::optional<std::string_view> rounding_mode) const {
  return InvokeOp(Op::div_Scalar_mode, *this, other, rounding_mode);
}
const Tensor& Tensor::div_(Scalar other, std::optional<std::string_view> rounding_mode) const {
  WriteInPlace(*this, InvokeOp(Op::div_Scalar_mode, *this, other, rounding_mode));
  return *this;
}
Tensor Tensor::floor_divide(const Tensor& other) const {
  return InvokeOp(Op::floor_divide, *this, other);
}
const Tensor& Tensor::floor_divide_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::floor_divide, *this, other));
  return *this;
}
Tensor Tensor::floor_divide(Scalar other) const {
  return InvokeOp(Op::floor_divide_Scalar, *this, other);
}
const Tensor& Tensor::floor_divide_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::floor_divide_Scalar, *this, other));
  return *this;
}
Tensor Tensor::remainder(const Tensor& other) const {
  return InvokeOp(Op::remainder_Tensor, *this, other);
}
const Tensor& Tensor::remainder_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::remainder_Tensor, *this, other));
  return *this;
}
Tensor Tensor::remainder(Scalar other) const {
  return InvokeOp(Op::remainder_Scalar, *this, other);
}
const Tensor& Tensor::remainder_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::remainder_Scalar, *this, other));
  return *this;
}
Tensor Tensor::fmod(const Tensor& other) const {
  return InvokeOp(Op::fmod_Tensor, *this, other);
}
const Tensor& Tensor::fmod_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::fmod_Tensor, *this, other));
  return *this;
}
Tensor Tensor::fmod(Scalar other) const {
  return InvokeOp(Op::fmod_Scalar, *this, other);
}
const Tensor& Tensor::fmod_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::fmod_Scalar, *this, other));
  return *this;
}
Tensor Tensor::pow(const Tensor& exponent) const {
  return InvokeOp(Op::pow_Tensor_Tensor, *this, exponent);
}
const Tensor& Tensor::pow_(const Tensor& exponent) const {
  WriteInPlace(*this, InvokeOp(Op::pow_Tensor_Tensor, *this, exponent));
  return *this;
}
Tensor Tensor::pow(Scalar exponent) const {
  return InvokeOp(Op::pow_Tensor_Scalar, *this, exponent);
}
const Tensor& Tensor::pow_(Scalar exponent) const {
  WriteInPlace(*this, InvokeOp(Op::pow_Tensor_Scalar, *this, exponent));
  return *this;
}
Tensor Tensor::atan2(const Tensor& other) const {
  return InvokeOp(Op::atan2, *this, other);
}
const Tensor& Tensor::atan2_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::atan2, *this, other));
  return *this;
}
Tensor Tensor::maximum(const Tensor& other) const {
  return InvokeOp(Op::maximum, *this, other);
}
Tensor Tensor::minimum(const Tensor& other) const {
  return InvokeOp(Op::minimum, *this, other);
}
Tensor Tensor::max(const Tensor& other) const {
  return InvokeOp(Op::max_other, *this, other);
}
Tensor Tensor::min(const Tensor& other) const {
  return InvokeOp(Op::min_other, *this, other);
}
Tensor Tensor::addcmul(const Tensor& tensor1, const Tensor& tensor2, Scalar value) const {
  return InvokeOp(Op::addcmul, *this, tensor1, tensor2, value);
}
const Tensor& Tensor::addcmul_(const Tensor& tensor1, const Tensor& tensor2, Scalar value) const {
  WriteInPlace(*this, InvokeOp(Op::addcmul, *this, tensor1, tensor2, value));
  return *this;
}
Tensor Tensor::addcdiv(const Tensor& tensor1, const Tensor& tensor2, Scalar value) const {
  return InvokeOp(Op::addcdiv, *this, tensor1, tensor2, value);
}
const Tensor& Tensor::addcdiv_(const Tensor& tensor1, const Tensor& tensor2, Scalar value) const {
  WriteInPlace(*this, InvokeOp(Op::addcdiv, *this, tensor1, tensor2, value));
  return *this;
}
Tensor Tensor::lerp(const Tensor& end, Scalar weight) const {
  return InvokeOp(Op::lerp_Scalar, *this, end, weight);
}
const Tensor& Tensor::lerp_(const Tensor& end, Scalar weight) const {
  WriteInPlace(*this, InvokeOp(Op::lerp_Scalar, *this, end, weight));
  return *this;
}
Tensor Tensor::lerp(const Tensor& end, const Tensor& weight) const {
  return InvokeOp(Op::lerp_Tensor, *this, end, weight);
}
const Tensor& Tensor::lerp_(const Tensor& end, const Tensor& weight) const {
  WriteInPlace(*this, InvokeOp(Op::lerp_Tensor, *this, end, weight));
  return *this;
}
Tensor Tensor::eq(const Tensor& other) const {
  return InvokeOp(Op::eq_Tensor, *this, other);
}
const Tensor& Tensor::eq_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::eq_Tensor, *this, other));
  return *this;
}
Tensor Tensor::eq(Scalar other) const {
  return InvokeOp(Op::eq_Scalar, *this, other);
}
const Tensor& Tensor::eq_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::eq_Scalar, *this, other));
  return *this;
}
Tensor Tensor::ne(const Tensor& other) const {
  return InvokeOp(Op::ne_Tensor, *this, other);
}
const Tensor& Tensor::ne_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::ne_Tensor, *this, other));
  return *this;
}
Tensor Tensor::ne(Scalar other) const {
  return InvokeOp(Op::ne_Scalar, *this, other);
}
const Tensor& Tensor::ne_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::ne_Scalar, *this, other));
  return *this;
}
Tensor Tensor::lt(const Tensor& other) const {
  return InvokeOp(Op::lt_Tensor, *this, other);
}
const Tensor& Tensor::lt_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::lt_Tensor, *this, other));
  return *this;
}
Tensor Tensor::lt(Scalar other) const {
  return InvokeOp(Op::lt_Scalar, *this, other);
}
const Tensor& Tensor::lt_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::lt_Scalar, *this, other));
  return *this;
}
Tensor Tensor::le(const Tensor& other) const {
  return InvokeOp(Op::le_Tensor, *this, other);
}
const Tensor& Tensor::le_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::le_Tensor, *this, other));
  return *this;
}
Tensor Tensor::le(Scalar other) const {
  return InvokeOp(Op::le_Scalar, *this, other);
}
const Tensor& Tensor::le_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::le_Scalar, *this, other));
  return *this;
}
Tensor Tensor::gt(const Tensor& other) const {
  return InvokeOp(Op::gt_Tensor, *this, other);
}
const Tensor& Tensor::gt_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::gt_Tensor, *this, other));
  return *this;
}
Tensor Tensor::gt(Scalar other) const {
  return InvokeOp(Op::gt_Scalar, *this, other);
}
const Tensor& Tensor::gt_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::gt_Scalar, *this, other));
  return *this;
}
Tensor Tensor::ge(const Tensor& other) const {
  return InvokeOp(Op::ge_Tensor, *this, other);
}
const Tensor& Tensor::ge_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::ge_Tensor, *this, other));
  return *this;
}
Tensor Tensor::ge(Scalar other) const {
  return InvokeOp(Op::ge_Scalar, *this, other);
}
const Tensor& Tensor::ge_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::ge_Scalar, *this, other));
  return *this;
}
Tensor Tensor::logical_and(const Tensor& other) const {
  return InvokeOp(Op::logical_and, *this, other);
}
const Tensor& Tensor::logical_and_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::logical_and, *this, other));
  return *this;
}
Tensor Tensor::bitwise_and(const Tensor& other) const {
  return InvokeOp(Op::bitwise_and_Tensor, *this, other);
}
const Tensor& Tensor::bitwise_and_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::bitwise_and_Tensor, *this, other));
  return *this;
}
Tensor Tensor::bitwise_and(Scalar other) const {
  return InvokeOp(Op::bitwise_and_Scalar, *this, other);
}
const Tensor& Tensor::bitwise_and_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::bitwise_and_Scalar, *this, other));
  return *this;
}
Tensor Tensor::logical_or(const Tensor& other) const {
  return InvokeOp(Op::logical_or, *this, other);
}
const Tensor& Tensor::logical_or_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::logical_or, *this, other));
  return *this;
}
Tensor Tensor::bitwise_or(const Tensor& other) const {
  return InvokeOp(Op::bitwise_or_Tensor, *this, other);
}
const Tensor& Tensor::bitwise_or_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::bitwise_or_Tensor, *this, other));
  return *this;
}
Tensor Tensor::bitwise_or(Scalar other) const {
  return InvokeOp(Op::bitwise_or_Scalar, *this, other);
}
const Tensor& Tensor::bitwise_or_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::bitwise_or_Scalar, *this, other));
  return *this;
}
Tensor Tensor::logical_xor(const Tensor& other) const {
  return InvokeOp(Op::logical_xor, *this, other);
}
const Tensor& Tensor::logical_xor_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::logical_xor, *this, other));
  return *this;
}
Tensor Tensor::bitwise_xor(const Tensor& other) const {
  return InvokeOp(Op::bitwise_xor_Tensor, *this, other);
}
const Tensor& Tensor::bitwise_xor_(const Tensor& other) const {
  WriteInPlace(*this, InvokeOp(Op::bitwise_xor_Tensor, *this, other));
  return *this;
}
Tensor Tensor::bitwise_xor(Scalar other) const {
  return InvokeOp(Op::bitwise_xor_Scalar, *this, other);
}
const Tensor& Tensor::bitwise_xor_(Scalar other) const {
  WriteInPlace(*this, InvokeOp(Op::bitwise_xor_Scalar, *this, other));
  return *this;
}
Tensor Tensor::where(const Tensor& condition, const Tensor& other) const {
  return InvokeOp(Op::where_self, condition, *this, other);
}
Tensor Tensor::where(const Tensor& condition, Scalar other) const {
  return InvokeOp(Op::where_ScalarOther, condition, *this, other);
}
Tensor Tensor::masked_fill(const Tensor& mask, Scalar value) const {
  return InvokeOp(Op::masked_fill_Scalar, *this, mask, value);
}
Tensor Tensor::masked_fill(const Tensor& mask, const Tensor& value) const {
  return InvokeOp(Op::masked_fill_Tensor, *this, mask, value);
}
const Tensor& Tensor::masked_fill_(const Tensor& mask, const Tensor& value) const {
  WriteInPlace(*this, InvokeOp(Op::masked_fill_Tensor, *this, mask, value));
  return *this;
}
const Tensor& Tensor::masked_fill_(const Tensor& mask, Scalar value) const {
  InvokeOp(Op::masked_fill_inplace_Scalar, *this, mask, value);
  return *this;
}
Tensor Tensor::clamp(std::optional<Scalar> min, std::optional<Scalar> max) const {
  return InvokeOp(Op::clamp, *this, min, max);
}
const Tensor& Tensor::clamp_(std::optional<Scalar> min, std::optional<Scalar> max) const {
  WriteInPlace(*this, InvokeOp(Op::clamp, *this, min, max));
  return *this;
}
Tensor Tensor::clamp(const Tensor& min, const Tensor& max) const {
  return InvokeOp(Op::clamp_Tensor, *this, min, max);
}
const Tensor& Tensor::clamp_(const Tensor& min, const Tensor& max) const {
  WriteInPlace(*this, InvokeOp(Op::clamp_Tensor, *this, min, max));
  return *this;
}
Tensor Tensor::clamp_min(Scalar min) const {
  return InvokeOp(Op::clamp_min, *this, min);
}
const Tensor& Tensor::clamp_min_(Scalar min) const {
  WriteInPlace(*this, InvokeOp(Op::clamp_min, *this, min));
  return *this;
}
Tensor Tensor::clamp_max(Scalar max) const {
  return InvokeOp(Op::clamp_max, *this, max);
}
const Tensor& Tensor::clamp_max_(Scalar max) const {
  WriteInPlace(*this, InvokeOp(Op::clamp_max, *this, max));
  return *this;
}
Tensor Tensor::sum(std::optional<ElementType> dtype) const {
  return InvokeOp(Op::sum, *this, dtype);
}
Tensor Tensor::sum(DimList dim, bool keepdim, std::optional<ElementType> dtype) const {
  return InvokeOp(Op::sum_dim_IntList, *this, dim, keepdim, dtype);
}
Tensor Tensor::mean(std::optional<ElementType> dtype) const {
  return InvokeOp(Op::mean, *this, dtype);
}
Tensor Tensor::mean(DimList dim, bool keepdim, std::optional<ElementType> dtype) const {
  return InvokeOp(Op::mean_dim, *this, dim, keepdim, dtype);
}
Tensor Tensor::prod(std::optional<ElementType> dtype) const {
  return InvokeOp(Op::prod, *this, dtype);
}
Tensor Tensor::prod(int64_t dim, bool keepdim, std::optional<ElementType> dtype) const {
  return InvokeOp(Op::prod_dim_int, *this, dim, keepdim, dtype);
}
Tensor Tensor::amax(DimList dim, bool keepdim) const {
  return InvokeOp(Op::amax, *this, dim, keepdim);
}
Tensor Tensor::amin(DimList dim, bool keepdim) const {
  return InvokeOp(Op::amin, *this, dim, keepdim);
}
Tensor Tensor::max() const {
  return InvokeOp(Op::max, *this);
}
Tensor Tensor::min() const {
  return InvokeOp(Op::min, *this);
}
std::tuple<Tensor, Tensor> Tensor::max(int64_t dim, bool keepdim) const {
  return TupleOf<2>(InvokeOpMultiOutput(Op::max_dim, *this, dim, keepdim));
}
std::tuple<Tensor, Tensor> Tensor::min(int64_t dim, bool keepdim) const {
  return TupleOf<2>(InvokeOpMultiOutput(Op::min_dim, *this, dim, keepdim));
}
Tensor Tensor::argmax(std::optional<int64_t> dim, bool keepdim) const {
  return InvokeOp(Op::argmax, *this, dim, keepdim);
}
Tensor Tensor::argmin(std::optional<int64_t> dim, bool keepdim) const {
  return InvokeOp(Op::argmin, *this, dim, keepdim);
}
Tensor Tensor::all() const {
  return InvokeOp(Op::all, *this);
}
Tensor Tensor::any() const {
  return InvokeOp(Op::any, *this);
}
Tensor Tensor::all(int64_t dim, bool keepdim) const {
  return InvokeOp(Op::all_dim, *this, dim, keepdim);
}
Tensor Tensor::any(int64_t dim, bool keepdim) const {
  return InvokeOp(Op::any_dim, *this, dim, keepdim);
}
Tensor Tensor::var(DimList dim, std::optional<int64_t> correction, bool keepdim) const {
  return InvokeOp(Op::var_correction, *this, dim, correction, keepdim);
}
Tensor Tensor::std(DimList dim, std::optional<int64_t> correction, bool keepdim) const {
  return InvokeOp(Op::std_correction, *this, dim, correction, keepdim);
}
Tensor Tensor::var(DimList dim, bool unbiased, bool keepdim) const {
  return InvokeOp(Op::var_dim, *this, dim, unbiased, keepdim);
}
Tensor Tensor::std(DimList dim, bool unbiased, bool keepdim) const {
  return InvokeOp(Op::std_dim, *this, dim, unbiased, keepdim);
}
Tensor Tensor::norm(Scalar p) const {
  return InvokeOp(Op::norm_Scalar, *this, p);
}
Tensor Tensor::norm(std::optional<Scalar> p, DimList dim, bool keepdim) const {
  return InvokeOp(Op::norm_ScalarOpt_dim, *this, p, dim, keepdim);
}
Tensor Tensor::logsumexp(DimList dim, bool keepdim) const {
  return InvokeOp(Op::logsumexp, *this, dim, keepdim);
}
Tensor Tensor::cumsum(int64_t dim, std::optional<ElementType> dtype) const {
  return InvokeOp(Op::cumsum, *this, dim, dtype);
}
const Tensor& Tensor::cumsum_(int64_t dim, std::optional<ElementType> dtype) const {
  WriteInPlace(*this, InvokeOp(Op::cumsum, *this, dim, dtype));
  return *this;
}
Tensor Tensor::cumprod(int64_t dim, std::optional<ElementType> dtype) const {
  return InvokeOp(Op::cumprod, *this, dim, dtype);
}
const Tensor& Tensor::cumprod_(int64_t dim, std::optional<ElementType> dtype) const {
  WriteInPlace(*this, InvokeOp(Op::cumprod, *this, dim, dtype));
  return *this;
}
std::tuple<Tensor, Tensor> Tensor::cummax(int64_t dim) const {
  return TupleOf<2>(InvokeOpMultiOutput(Op::cummax, *this, dim));
}
Tensor Tensor::count_nonzero(std::optional<int64_t> dim) const {
  return InvokeOp(Op::count_nonzero, *this, dim);
}
Tensor Tensor::mm(const Tensor& mat2) const {
  return InvokeOp(Op::mm, *this, mat2);
}
Tensor Tensor::bmm(const Tensor& mat2) const {
  return InvokeOp(Op::bmm, *this, mat2);
}
Tensor Tensor::addmm(const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha) const {
  return InvokeOp(Op::addmm, *this, mat1, mat2, beta, alpha);
}
const Tensor& Tensor::addmm_(const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha) const {
  WriteInPlace(*this, InvokeOp(Op::addmm, *this, mat1, mat2, beta, alpha));
  return *this;
}
Tensor Tensor::baddbmm(const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha) const {
  return InvokeOp(Op::baddbmm, *this, batch1, batch2, beta, alpha);
}
const Tensor& Tensor::baddbmm_(const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha) const {
  WriteInPlace(*this, InvokeOp(Op::baddbmm, *this, batch1, batch2, beta, alpha));
  return *this;
}
Tensor Tensor::addbmm(const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha) const {
  return InvokeOp(Op::addbmm, *this, batch1, batch2, beta, alpha);
}
const Tensor& Tensor::addbmm_(const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha) const {
  WriteInPlace(*this, InvokeOp(Op::addbmm, *this, batch1, batch2, beta, alpha));
  return *this;
}
Tensor Tensor::addmv(const Tensor& mat, const Tensor& vec, Scalar beta, Scalar alpha) const {
  return InvokeOp(Op::addmv, *this, mat, vec, beta, alpha);
}
const Tensor& Tensor::addmv_(const Tensor& mat, const Tensor& vec, Scalar beta, Scalar alpha) const {
  WriteInPlace(*this, InvokeOp(Op::addmv, *this, mat, vec, beta, alpha));
  return *this;
}
Tensor Tensor::addr(const Tensor& vec1, const Tensor& vec2, Scalar beta, Scalar alpha) const {
  return InvokeOp(Op::addr, *this, vec1, vec2, beta, alpha);
}
const Tensor& Tensor::addr_(const Tensor& vec1, const Tensor& vec2, Scalar beta, Scalar alpha) const {
  WriteInPlace(*this, InvokeOp(Op::addr, *this, vec1, vec2, beta, alpha));
  return *this;
}
Tensor Tensor::outer(const Tensor& vec2) const {
  return InvokeOp(Op::outer, *this, vec2);
}
Tensor Tensor::mv(const Tensor& vec) const {
  return InvokeOp(Op::mv, *this, vec);
}
Tensor Tensor::dot(const Tensor& tensor) const {
  return InvokeOp(Op::dot, *this, tensor);
}
Tensor Tensor::matmul(const Tensor& other) const {
  return InvokeOp(Op::matmul, *this, other);
}
Tensor Tensor::t() const {
  return InvokeOp(Op::t, *this);
}
std::tuple<Tensor, Tensor> Tensor::triangular_solve(const Tensor& A, bool upper, bool transpose,
                                                    bool unitriangular) const {
  return TupleOf<2>(InvokeOpMultiOutput(Op::triangular_solve, *this, A, upper, transpose, unitriangular));
}
Tensor Tensor::cholesky(bool upper) const {
  return InvokeOp(Op::cholesky, *this, upper);
}
std::tuple<Tensor, Tensor> Tensor::qr(bool some) const {
  return TupleOf<2>(InvokeOpMultiOutput(Op::qr, *this, some));
}
std::tuple<Tensor, Tensor, Tensor> Tensor::svd(bool some, bool compute_uv) const {
  return TupleOf<3>(InvokeOpMultiOutput(Op::svd, *this, some, compute_uv));
}
Tensor Tensor::softmax(int64_t dim, std::optional<ElementType> dtype) const {
  return InvokeOp(Op::softmax_int, *this, dim, dtype);
}
Tensor Tensor::log_softmax(int64_t dim, std::optional<ElementType> dtype) const {
  return InvokeOp(Op::log_softmax_int, *this, dim, dtype);
}
Tensor Tensor::bernoulli() const {
  return InvokeOp(Op::bernoulli, *this);
}
Tensor Tensor::bernoulli(double p) const {
  return InvokeOp(Op::bernoulli_p, *this, p);
}
const Tensor& Tensor::bernoulli_(double p) const {
  InvokeOp(Op::bernoulli_inplace_float, *this, p);
  return *this;
}
const Tensor& Tensor::uniform_(double from, double to) const {
  InvokeOp(Op::uniform_inplace, *this, from, to);
  return *this;
}
const Tensor& Tensor::normal_(double mean, double std) const {
  InvokeOp(Op::normal_inplace, *this, mean, std);
  return *this;
}
const Tensor& Tensor::exponential_(double lambd) const {
  InvokeOp(Op::exponential_inplace, *this, lambd);
  return *this;
}
const Tensor& Tensor::random_() const {
  InvokeOp(Op::random_inplace, *this);
  return *this;
}
const Tensor& Tensor::random_(int64_t to) const {
  InvokeOp(Op::random_inplace_to, *this, to);
  return *this;
}
const Tensor& Tensor::random_(int64_t from, std::optional<int64_t> to) const {
  InvokeOp(Op::random_inplace_from, *this, from, to);
  return *this;
}
Tensor Tensor::multinomial(int64_t num_samples, bool replacement) const {
  return InvokeOp(Op::multinomial, *this, num_samples, replacement);
}
Tensor Tensor::view(DimList size) const {
  return InvokeOp(Op::view, *this, size);
}
Tensor Tensor::reshape(DimList shape) const {
  return InvokeOp(Op::reshape, *this, shape);
}
Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const {
  return InvokeOp(Op::flatten_using_ints, *this, start_dim, end_dim);
}
Tensor Tensor::expand(DimList size, bool implicit) const {
  return InvokeOp(Op::expand, *this, size, implicit);
}
Tensor Tensor::permute(DimList dims) const {
  return InvokeOp(Op::permute, *this, dims);
}
Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const {
  return InvokeOp(Op::transpose_int, *this, dim0, dim1);
}
Tensor Tensor::unsqueeze(int64_t dim) const {
  return InvokeOp(Op::unsqueeze, *this, dim);
}
Tensor Tensor::squeeze() const {
  return InvokeOp(Op::squeeze, *this);
}
Tensor Tensor::squeeze(int64_t dim) const {
  return InvokeOp(Op::squeeze_dim, *this, dim);
}
Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) const {
  return InvokeOp(Op::slice_Tensor, *this, dim, start, end, step);
}
Tensor Tensor::select(int64_t dim, int64_t index) const {
  return InvokeOp(Op::select_int, *this, dim, index);
}
Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  return InvokeOp(Op::narrow, *this, dim, start, length);
}
Tensor Tensor::movedim(int64_t source, int64_t destination) const {
  return InvokeOp(Op::movedim_int, *this, source, destination);
}
Tensors Tensor::chunk(int64_t chunks, int64_t dim) const {
  return ListOf(InvokeOpMultiOutput(Op::chunk, *this, chunks, dim));
}
Tensors Tensor::split(int64_t split_size, int64_t dim) const {
  return ListOf(InvokeOpMultiOutput(Op::split_Tensor, *this, split_size, dim));
}
Tensors Tensor::split_with_sizes(DimList split_sizes, int64_t dim) const {
  return ListOf(InvokeOpMultiOutput(Op::split_with_sizes, *this, split_sizes, dim));
}
Tensors Tensor::unbind(int64_t dim) const {
  return ListOf(InvokeOpMultiOutput(Op::unbind_int, *this, dim));
}
Tensor Tensor::as_strided(DimList size, DimList stride, std::optional<int64_t> storage_offset) const {
  return InvokeOp(Op::as_strided, *this, size, stride, storage_offset);
}
Tensor Tensor::as_strided_scatter(const Tensor& src, DimList size, DimList stride,
                                  std::optional<int64_t> storage_offset) const {
  return InvokeOp(Op::as_strided_scatter, *this, src, size, stride, storage_offset);
}
Tensor Tensor::diagonal(int64_t offset, int64_t dim1, int64_t dim2) const {
  return InvokeOp(Op::diagonal, *this, offset, dim1, dim2);
}
Tensor Tensor::diagonal_scatter(const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) const {
  return InvokeOp(Op::diagonal_scatter, *this, src, offset, dim1, dim2);
}
Tensor Tensor::slice_scatter(const Tensor& src, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                             int64_t step) const {
  return InvokeOp(Op::slice_scatter, *this, src, dim, start, end, step);
}
Tensor Tensor::select_scatter(const Tensor& src, int64_t dim, int64_t index) const {
  return InvokeOp(Op::select_scatter, *this, src, dim, index);
}
Tensor Tensor::unfold(int64_t dimension, int64_t size, int64_t step) const {
  return InvokeOp(Op::unfold, *this, dimension, size, step);
}
Tensor Tensor::flip(DimList dims) const {
  return InvokeOp(Op::flip, *this, dims);
}
Tensor Tensor::roll(DimList shifts, DimList dims) const {
  return InvokeOp(Op::roll, *this, shifts, dims);
}
Tensor Tensor::repeat(DimList repeats) const {
  return InvokeOp(Op::repeat, *this, repeats);
}
Tensor Tensor::tile(DimList dims) const {
  return InvokeOp(Op::tile, *this, dims);
}
Tensor Tensor::repeat_interleave(int64_t repeats, std::optional<int64_t> dim,
                                 std::optional<int64_t> output_size) const {
  return InvokeOp(Op::repeat_interleave_self_int, *this, repeats, dim, output_size);
}
Tensor Tensor::tril(int64_t diagonal) const {
  return InvokeOp(Op::tril, *this, diagonal);
}
const Tensor& Tensor::tril_(int64_t diagonal) const {
  WriteInPlace(*this, InvokeOp(Op::tril, *this, diagonal));
  return *this;
}
Tensor Tensor::triu(int64_t diagonal) const {
  return InvokeOp(Op::triu, *this, diagonal);
}
const Tensor& Tensor::triu_(int64_t diagonal) const {
  WriteInPlace(*this, InvokeOp(Op::triu, *this, diagonal));
  return *this;
}
Tensor Tensor::index(const Tensors& indices) const {
  return InvokeOp(Op::index_Tensor, *this, indices);
}
Tensor Tensor::index_put(const Tensors& indices, const Tensor& values, bool accumulate) const {
  return InvokeOp(Op::index_put, *this, indices, values, accumulate);
}
const Tensor& Tensor::index_put_(const Tensors& indices, const Tensor& values, bool accumulate) const {
  InvokeOp(Op::index_put_inplace, *this, indices, values, accumulate);
  return *this;
}
Tensor Tensor::index_select(int64_t dim, const Tensor& index) const {
  return InvokeOp(Op::index_select, *this, dim, index);
}
Tensor Tensor::index_add(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) const {
  return InvokeOp(Op::index_add, *this, dim, index, source, alpha);
}
const Tensor& Tensor::index_add_(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) const {
  WriteInPlace(*this, InvokeOp(Op::index_add, *this, dim, index, source, alpha));
  return *this;
}
Tensor Tensor::index_copy(int64_t dim, const Tensor& index, const Tensor& source) const {
  return InvokeOp(Op::index_copy, *this, dim, index, source);
}
const Tensor& Tensor::index_copy_(int64_t dim, const Tensor& index, const Tensor& source) const {
  WriteInPlace(*this, InvokeOp(Op::index_copy, *this, dim, index, source));
  return *this;
}
Tensor Tensor::gather(int64_t dim, const Tensor& index, bool sparse_grad) const {
  return InvokeOp(Op::gather, *this, dim, index, sparse_grad);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src) const {
  return InvokeOp(Op::scatter_src, *this, dim, index, src);
}
const Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Tensor& src) const {
  WriteInPlace(*this, InvokeOp(Op::scatter_src, *this, dim, index, src));
  return *this;
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, Scalar value) const {
  return InvokeOp(Op::scatter_value, *this, dim, index, value);
}
const Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, Scalar value) const {
  WriteInPlace(*this, InvokeOp(Op::scatter_value, *this, dim, index, value));
  return *this;
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) const {
  return InvokeOp(Op::scatter_reduce, *this, dim, index, src, reduce);
}
const Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) const {
  WriteInPlace(*this, InvokeOp(Op::scatter_reduce, *this, dim, index, src, reduce));
  return *this;
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, Scalar value, std::string_view reduce) const {
  return InvokeOp(Op::scatter_value_reduce, *this, dim, index, value, reduce);
}
const Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, Scalar value, std::string_view reduce) const {
  WriteInPlace(*this, InvokeOp(Op::scatter_value_reduce, *this, dim, index, value, reduce));
  return *this;
}
Tensor Tensor::scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const {
  return InvokeOp(Op::scatter_add, *this, dim, index, src);
}
const Tensor& Tensor::scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) const {
  WriteInPlace(*this, InvokeOp(Op::scatter_add, *this, dim, index, src));
  return *this;
}
Tensor Tensor::scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                              bool include_self) const {
  return InvokeOp(Op::scatter_reduce_two, *this, dim, index, src, reduce, include_self);
}
const Tensor& Tensor::scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                                      bool include_self) const {
  WriteInPlace(*this, InvokeOp(Op::scatter_reduce_two, *this, dim, index, src, reduce, include_self));
  return *this;
}
std::tuple<Tensor, Tensor> Tensor::sort(int64_t dim, bool descending) const {
  return TupleOf<2>(InvokeOpMultiOutput(Op::sort, *this, dim, descending));
}
std::tuple<Tensor, Tensor> Tensor::sort(std::optional<bool> stable, int64_t dim, bool descending) const {
  return TupleOf<2>(InvokeOpMultiOutput(Op::sort_stable, *this, stable, dim, descending));
}
Tensor Tensor::argsort(int64_t dim, bool descending) const {
  return InvokeOp(Op::argsort, *this, dim, descending);
}
std::tuple<Tensor, Tensor> Tensor::topk(int64_t k, int64_t dim, bool largest, bool sorted) const {
  return TupleOf<2>(InvokeOpMultiOutput(Op::topk, *this, k, dim, largest, sorted));
}
Tensor Tensor::masked_select(const Tensor& mask) const {
  return InvokeOp(Op::masked_select, *this, mask);
}
Tensor Tensor::nonzero() const {
  return InvokeOp(Op::nonzero, *this);
}
Tensor Tensor::masked_scatter(const Tensor& mask, const Tensor& source) const {
  return InvokeOp(Op::masked_scatter, *this, mask, source);
}
const Tensor& Tensor::masked_scatter_(const Tensor& mask, const Tensor& source) const {
  WriteInPlace(*this, InvokeOp(Op::masked_scatter, *this, mask, source));
  return *this;
}

}  // namespace hlokit::lazy

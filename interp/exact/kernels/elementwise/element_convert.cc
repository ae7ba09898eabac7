// SPDX-License-Identifier: Apache-2.0
// Conversions between compute types, and between narrow floats and f32.
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "interp/exact/kernels/element_loop.h"
#include "interp/exact/program/element_op.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

struct Pred {
  uint8_t value;
};

template <typename T>
struct ComponentOf {
  using type = T;
};
template <typename F>
struct ComponentOf<std::complex<F>> {
  using type = F;
};

// Converts to an integer with saturation; NaN becomes 0.
template <typename To, typename From>
To Saturate(From v, From limit, To min, To max) {
  if (v >= limit) return max;
  if (v > static_cast<From>(min)) return static_cast<To>(v);
  return v == v ? min : To{0};
}

// Rounds `v` to odd: toward zero, with the last bit set if inexact. A second rounding to a narrower type then equals a
// single rounding of v.
float RoundToOdd(double v) {
  const float f = static_cast<float>(v);
  if (static_cast<double>(f) == v || f != f) return f;
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if (std::fabs(static_cast<double>(f)) > std::fabs(v)) --bits;
  return std::bit_cast<float>(bits | 1);
}
template <std::integral I>
float RoundToOdd(I v) {
  // The high part is exact in a float's 24 bits, with space below for the sticky bit.
  const bool negative = v < 0;
  uint64_t magnitude = negative ? uint64_t{0} - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  const int drop = 40 - std::countl_zero(magnitude | 1);
  if (drop > 0) {
    const uint64_t kept = magnitude >> drop;
    magnitude = (kept << drop == magnitude ? kept : kept | 1) << drop;
  }
  const float f = static_cast<float>(magnitude);
  return negative ? -f : f;
}

template <typename From, typename To>
void ConvertLoop(void* out, const void* a, const void*, const void*, int64_t n, int64_t param) {
  const From* x = static_cast<const From*>(a);
  To* r = static_cast<To*>(out);
  if constexpr (AnyComplex<To>) {
    using F = typename To::value_type;
    if constexpr (AnyComplex<From>) {
      for (int64_t i = 0; i < n; ++i) r[i] = To(static_cast<F>(x[i].real()), static_cast<F>(x[i].imag()));
    } else if constexpr (std::is_same_v<From, Pred>) {
      for (int64_t i = 0; i < n; ++i) r[i] = To(static_cast<F>(x[i].value != 0));
    } else {
      for (int64_t i = 0; i < n; ++i) r[i] = To(static_cast<F>(x[i]));
    }
  } else if constexpr (AnyComplex<From>) {
    if constexpr (std::is_same_v<To, Pred>) {
      for (int64_t i = 0; i < n; ++i) r[i].value = x[i] != From(0);
    } else {
      // Real parts.
      typename From::value_type real[64];
      for (int64_t i = 0; i < n; i += 64) {
        const int64_t count = n - i < 64 ? n - i : 64;
        for (int64_t j = 0; j < count; ++j) real[j] = x[i + j].real();
        ConvertLoop<typename From::value_type, To>(r + i, real, nullptr, nullptr, count, param);
      }
    }
  } else if constexpr (std::is_same_v<To, Pred>) {
    if constexpr (std::is_same_v<From, Pred>) {
      ForEachElement(n, [=](int64_t i) { r[i].value = x[i].value != 0; });
    } else {
      ForEachElement(n, [=](int64_t i) { r[i].value = x[i] != From{0}; });
    }
  } else if constexpr (std::is_same_v<From, Pred>) {
    ForEachElement(n, [=](int64_t i) { r[i] = static_cast<To>(x[i].value != 0); });
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    const int bits = static_cast<int>(param);
    constexpr bool kSigned = std::is_signed_v<To>;
    const To max = static_cast<To>(std::numeric_limits<To>::max() >> (8 * sizeof(To) - static_cast<size_t>(bits)));
    const To min = kSigned ? static_cast<To>(-max - 1) : To{0};
    const From limit = std::ldexp(From{1}, kSigned ? bits - 1 : bits);
    ForEachElement(n, [=](int64_t i) { r[i] = Saturate<To>(x[i], limit, min, max); });
  } else if constexpr (std::is_same_v<To, float> && sizeof(From) >= 4 && !std::is_same_v<From, float>) {
    if (param != 0) {
      for (int64_t i = 0; i < n; ++i) r[i] = RoundToOdd(x[i]);
    } else {
      ForEachElement(n, [=](int64_t i) { r[i] = static_cast<float>(x[i]); });
    }
  } else {
    ForEachElement(n, [=](int64_t i) { r[i] = static_cast<To>(x[i]); });
  }
}

template <typename From>
ElementFn FnFrom(ElementType to) {
  switch (to) {
    case ElementType::kPred:
      return ConvertLoop<From, Pred>;
    case ElementType::kS8:
      return ConvertLoop<From, int8_t>;
    case ElementType::kS16:
      return ConvertLoop<From, int16_t>;
    case ElementType::kS32:
      return ConvertLoop<From, int32_t>;
    case ElementType::kS64:
      return ConvertLoop<From, int64_t>;
    case ElementType::kU8:
      return ConvertLoop<From, uint8_t>;
    case ElementType::kU16:
      return ConvertLoop<From, uint16_t>;
    case ElementType::kU32:
      return ConvertLoop<From, uint32_t>;
    case ElementType::kU64:
      return ConvertLoop<From, uint64_t>;
    case ElementType::kF32:
      return ConvertLoop<From, float>;
    case ElementType::kF64:
      return ConvertLoop<From, double>;
    case ElementType::kC64:
      return ConvertLoop<From, std::complex<float>>;
    case ElementType::kC128:
      return ConvertLoop<From, std::complex<double>>;
    default:
      return nullptr;
  }
}

template <typename T>
void Load(void* to, const void* from, int64_t n) {
  float* r = static_cast<float*>(to);
  const T* x = static_cast<const T*>(from);
  ForEachElement(n, [=](int64_t i) { r[i] = static_cast<float>(x[i]); });
}
template <typename T>
void Store(void* to, const void* from, int64_t n) {
  T* r = static_cast<T*>(to);
  const float* x = static_cast<const float*>(from);
  ForEachElement(n, [=](int64_t i) { r[i] = T(x[i]); });
}
template <typename T>
void Wrap(void* to, const void* from, int64_t n) {
  T* r = static_cast<T*>(to);
  const uint8_t* x = static_cast<const uint8_t*>(from);
  ForEachElement(n, [=](int64_t i) { r[i] = T(x[i]); });
}

}  // namespace

ElementFn ConvertFnOf(ElementType from, ElementType to) {
  switch (from) {
    case ElementType::kPred:
      return FnFrom<Pred>(to);
    case ElementType::kS8:
      return FnFrom<int8_t>(to);
    case ElementType::kS16:
      return FnFrom<int16_t>(to);
    case ElementType::kS32:
      return FnFrom<int32_t>(to);
    case ElementType::kS64:
      return FnFrom<int64_t>(to);
    case ElementType::kU8:
      return FnFrom<uint8_t>(to);
    case ElementType::kU16:
      return FnFrom<uint16_t>(to);
    case ElementType::kU32:
      return FnFrom<uint32_t>(to);
    case ElementType::kU64:
      return FnFrom<uint64_t>(to);
    case ElementType::kF32:
      return FnFrom<float>(to);
    case ElementType::kF64:
      return FnFrom<double>(to);
    case ElementType::kC64:
      return FnFrom<std::complex<float>>(to);
    case ElementType::kC128:
      return FnFrom<std::complex<double>>(to);
    default:
      return nullptr;
  }
}

ConvertFn LoadFn(ElementType storage) {
  if (!IsFloat(storage) || BitsOf(storage) > 16) return nullptr;
  return VisitType(storage, []<typename T>(std::type_identity<T>) -> ConvertFn {
    if constexpr (SoftFloat<T>) return Load<T>;
    return nullptr;
  });
}

ConvertFn StoreFn(ElementType storage) {
  if (!IsArrayType(storage) || BitsOf(storage) > 16) return nullptr;
  return VisitType(storage, []<typename T>(std::type_identity<T>) -> ConvertFn {
    if constexpr (SoftFloat<T>) return Store<T>;
    if constexpr (requires { T::kIsSigned; }) return Wrap<T>;
    return nullptr;
  });
}

}  // namespace hlokit::interp

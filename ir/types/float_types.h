// SPDX-License-Identifier: Apache-2.0
// The floating-point types of HLO that C++ lacks, as one- and two-byte values, and the C++ type of each element type.
//
// Conversions round to nearest, ties to even but for f8e8m0fnu, and agree with ml_dtypes, which XLA takes these types
// from. The conversion of overflowing values, infinities and NaNs depends on the special values of the format:
//
//   f16, bf16, f8e5m2, f8e4m3, f8e3m4    IEEE 754: overflow is infinity, NaNs have a sign and a payload
//   f8e4m3fn                             no infinity: overflow and infinity become NaN, which has a sign
//   f8e5m2fnuz, f8e4m3fnuz, ...b11fnuz   no infinity and no -0, whose code 0x80 is the only NaN
//   f8e8m0fnu                            powers of two from 2^-127 to 2^127 only: zero, negative values and
//                                        overflow become NaN (0xff); ties become the greater power; values below
//                                        2^-126 become 2^-126 or, from 2^-127 down, 2^-127
//   f4e2m1fn                             neither infinity nor NaN: overflow saturates at +-6, NaN becomes -0
//
// A double converts to bf16 and f16 via float, rounding twice; to the narrower types it is rounded once. NaNs lose
// their payload when converted to bf16 and f16.
#ifndef HLOKIT_IR_TYPES_FLOAT_TYPES_H_
#define HLOKIT_IR_TYPES_FLOAT_TYPES_H_

#include <array>
#include <bit>
#include <compare>
#include <complex>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <utility>

#include "ir/types/element_type.h"
#include "ir/types/narrow_int.h"

namespace hlokit {

// Special values of a format; see the top of the file.
enum class NonFiniteBehavior : uint8_t { kIeee, kFn, kFnuz, kScale, kFinite };

// A float of a byte or less.
template <int kExponentBits, int kMantissaBits, int kBias, NonFiniteBehavior kSpecials>
class MiniFloat {
 public:
  constexpr MiniFloat() = default;
  constexpr explicit MiniFloat(double v) : bits_(Encode(v)) {}
  constexpr explicit MiniFloat(float v) : MiniFloat(static_cast<double>(v)) {}
  template <std::integral I>
  constexpr explicit MiniFloat(I v) : MiniFloat(static_cast<float>(v)) {}
  static constexpr MiniFloat FromBits(uint8_t bits) {
    MiniFloat f;
    f.bits_ = bits;
    return f;
  }

  constexpr uint8_t bits() const { return bits_; }
  constexpr explicit operator float() const {
    return std::is_constant_evaluated() ? static_cast<float>(Decode(bits_)) : kFloats[bits_];
  }
  constexpr explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }

  constexpr bool IsNan() const {
    switch (kSpecials) {
      case NonFiniteBehavior::kIeee:
        return (bits_ & kMagnitude) > kInfinity;
      case NonFiniteBehavior::kFn:
        return (bits_ & kMagnitude) == kNan;
      case NonFiniteBehavior::kFnuz:
      case NonFiniteBehavior::kScale:
        return bits_ == kNan;
      case NonFiniteBehavior::kFinite:
        return false;
    }
    return false;
  }
  constexpr MiniFloat operator-() const { return FromBits(WithSign(bits_, true)); }

  // The layout of the code, and the special codes.
  static constexpr int kBits = kExponentBits + kMantissaBits + (kSpecials == NonFiniteBehavior::kScale ? 0 : 1);
  static constexpr int kMantissa = kMantissaBits;
  static constexpr uint8_t kSign = kSpecials == NonFiniteBehavior::kScale ? 0 : 1 << (kBits - 1);
  static constexpr uint8_t kMagnitude = ((1 << kBits) - 1) & ~kSign;
  static constexpr uint8_t kTopExponent = ((1 << kExponentBits) - 1) << kMantissaBits;
  static constexpr uint8_t kNan = kSpecials == NonFiniteBehavior::kIeee     ? kTopExponent | 1 << (kMantissaBits - 1)
                                  : kSpecials == NonFiniteBehavior::kFnuz   ? kSign
                                  : kSpecials == NonFiniteBehavior::kFinite ? kSign
                                                                            : kMagnitude;
  static constexpr uint8_t kMaxFinite = kSpecials == NonFiniteBehavior::kIeee    ? kTopExponent - 1
                                        : kSpecials == NonFiniteBehavior::kFn    ? kMagnitude - 1
                                        : kSpecials == NonFiniteBehavior::kScale ? kMagnitude - 1
                                                                                 : kMagnitude;
  // The code of infinity and overflow.
  static constexpr uint8_t kInfinity = kSpecials == NonFiniteBehavior::kIeee     ? kTopExponent
                                       : kSpecials == NonFiniteBehavior::kFinite ? kMaxFinite
                                                                                 : kNan;

 private:
  static constexpr uint8_t WithSign(uint8_t code, bool negative) {
    if (!negative) return code;
    if (kSpecials == NonFiniteBehavior::kScale) return kNan;
    if (kSpecials == NonFiniteBehavior::kFnuz && (code & kMagnitude) == 0) return code;  // no -0
    return code ^ kSign;
  }

  static constexpr uint8_t Encode(double v) {
    constexpr uint64_t kInfinityBits = uint64_t{0x7ff} << 52;
    const uint64_t bits = std::bit_cast<uint64_t>(v);
    const bool negative = bits >> 63 != 0;
    const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
    if (magnitude > kInfinityBits) return WithSign(kNan, negative);
    if (magnitude == kInfinityBits) return WithSign(kInfinity, negative);
    if (magnitude == 0 && kSpecials == NonFiniteBehavior::kScale) return kNan;

    // Signs are handled on the bit pattern; a carry out of the mantissa increments the exponent.
    const int exponent = static_cast<int>(magnitude >> 52) - 1023 + kBias;  // as it will be stored, if positive
    uint64_t code;
    if (exponent >= 1) {
      const uint64_t value = magnitude - (static_cast<uint64_t>(1023 - kBias) << 52);
      constexpr int kShift = 52 - kMantissaBits;
      code = kSpecials == NonFiniteBehavior::kScale ? (value + (uint64_t{1} << (kShift - 1))) >> kShift
                                                    : RoundShift(value, kShift);
    } else {
      // A multiple of the smallest subnormal; subnormal doubles are below half of it. (A scale has no subnormals;
      // ml_dtypes rounds its lowest two values as if it had.)
      const int shift = 52 - kMantissaBits + 1 - exponent;
      const uint64_t significand = (uint64_t{1} << 52) | (magnitude & ((uint64_t{1} << 52) - 1));
      code = shift > 53 ? 0 : RoundShift(significand, shift);
    }
    return WithSign(code > kMaxFinite ? kInfinity : static_cast<uint8_t>(code), negative);
  }

  // Returns v / 2^shift, ties to even.
  static constexpr uint64_t RoundShift(uint64_t v, int shift) {
    return (v + ((v >> shift) & 1) + (uint64_t{1} << (shift - 1)) - 1) >> shift;
  }

  static constexpr double Decode(uint8_t code) {
    const bool negative = (code & kSign) != 0;
    const uint64_t sign = uint64_t{negative} << 63;
    if (FromBits(code).IsNan()) return std::bit_cast<double>(sign | uint64_t{0x7ff8} << 48);
    const uint8_t magnitude = code & kMagnitude;
    if (kSpecials == NonFiniteBehavior::kIeee && magnitude == kInfinity) {
      return std::bit_cast<double>(sign | uint64_t{0x7ff} << 52);
    }
    const int exponent = magnitude >> kMantissaBits;
    const uint64_t mantissa = magnitude & ((1 << kMantissaBits) - 1);
    double v;
    if (exponent == 0 && kSpecials != NonFiniteBehavior::kScale) {
      // An integer times the smallest subnormal.
      v = static_cast<double>(mantissa) *
          std::bit_cast<double>(static_cast<uint64_t>(1024 - kBias - kMantissaBits) << 52);
    } else {
      v = std::bit_cast<double>(static_cast<uint64_t>(exponent - kBias + 1023) << 52 | mantissa
                                                                                           << (52 - kMantissaBits));
    }
    return negative ? -v : v;
  }

  static constexpr std::array<float, 256> DecodeAll() {
    std::array<float, 256> floats{};
    for (int i = 0; i < 256; ++i) floats[i] = static_cast<float>(Decode(static_cast<uint8_t>(i)));
    return floats;
  }

  static const std::array<float, 256> kFloats;  // by code

  uint8_t bits_ = 0;
};

using F4E2M1FN = MiniFloat<2, 1, 1, NonFiniteBehavior::kFinite>;
using F8E3M4 = MiniFloat<3, 4, 3, NonFiniteBehavior::kIeee>;
using F8E4M3 = MiniFloat<4, 3, 7, NonFiniteBehavior::kIeee>;
using F8E4M3FN = MiniFloat<4, 3, 7, NonFiniteBehavior::kFn>;
using F8E4M3B11FNUZ = MiniFloat<4, 3, 11, NonFiniteBehavior::kFnuz>;
using F8E4M3FNUZ = MiniFloat<4, 3, 8, NonFiniteBehavior::kFnuz>;
using F8E5M2 = MiniFloat<5, 2, 15, NonFiniteBehavior::kIeee>;
using F8E5M2FNUZ = MiniFloat<5, 2, 16, NonFiniteBehavior::kFnuz>;
using F8E8M0FNU = MiniFloat<8, 0, 127, NonFiniteBehavior::kScale>;

extern template class MiniFloat<2, 1, 1, NonFiniteBehavior::kFinite>;
extern template class MiniFloat<3, 4, 3, NonFiniteBehavior::kIeee>;
extern template class MiniFloat<4, 3, 7, NonFiniteBehavior::kIeee>;
extern template class MiniFloat<4, 3, 7, NonFiniteBehavior::kFn>;
extern template class MiniFloat<4, 3, 11, NonFiniteBehavior::kFnuz>;
extern template class MiniFloat<4, 3, 8, NonFiniteBehavior::kFnuz>;
extern template class MiniFloat<5, 2, 15, NonFiniteBehavior::kIeee>;
extern template class MiniFloat<5, 2, 16, NonFiniteBehavior::kFnuz>;
extern template class MiniFloat<8, 0, 127, NonFiniteBehavior::kScale>;

// The upper half of a float. Loops over conversions vectorize.
class BF16 {
 public:
  constexpr BF16() = default;
  constexpr explicit BF16(float v) : bits_(Encode(std::bit_cast<uint32_t>(v))) {}
  constexpr explicit BF16(double v) : BF16(static_cast<float>(v)) {}
  template <std::integral I>
  constexpr explicit BF16(I v) : BF16(static_cast<float>(v)) {}
  static constexpr BF16 FromBits(uint16_t bits) {
    BF16 f;
    f.bits_ = bits;
    return f;
  }

  constexpr uint16_t bits() const { return bits_; }
  constexpr explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits_) << 16); }
  constexpr explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
  constexpr bool IsNan() const { return (bits_ & 0x7fff) > 0x7f80; }
  constexpr BF16 operator-() const { return FromBits(bits_ ^ 0x8000); }

 private:
  static constexpr uint16_t Encode(uint32_t v) {
    const uint32_t rounded = (v + 0x7fff + ((v >> 16) & 1)) >> 16;
    const uint32_t nan = ((v >> 16) & 0x8000) | 0x7fc0;
    return static_cast<uint16_t>((v & 0x7fffffff) > 0x7f800000 ? nan : rounded);
  }

  uint16_t bits_ = 0;
};

// IEEE 754 binary16. Loops over conversions vectorize: every case is computed, and masks select one. (With `?:`, GCC
// would branch instead, since floating-point operations may trap.)
class F16 {
 public:
  constexpr F16() = default;
  constexpr explicit F16(float v) : bits_(Encode(std::bit_cast<uint32_t>(v))) {}
  constexpr explicit F16(double v) : F16(static_cast<float>(v)) {}
  template <std::integral I>
  constexpr explicit F16(I v) : F16(static_cast<float>(v)) {}
  static constexpr F16 FromBits(uint16_t bits) {
    F16 f;
    f.bits_ = bits;
    return f;
  }

  constexpr uint16_t bits() const { return bits_; }
  constexpr explicit operator float() const { return Decode(bits_); }
  constexpr explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
  constexpr bool IsNan() const { return (bits_ & 0x7fff) > 0x7c00; }
  constexpr F16 operator-() const { return FromBits(bits_ ^ 0x8000); }

 private:
  static constexpr uint32_t Select(bool condition, uint32_t yes, uint32_t no) {
    const uint32_t mask = 0u - static_cast<uint32_t>(condition);
    return (yes & mask) | (no & ~mask);
  }

  static constexpr uint16_t Encode(uint32_t v) {
    const uint32_t sign = v & 0x80000000u;
    const uint32_t magnitude = v ^ sign;
    // Normal: rebias the exponent and round in one addition.
    const uint32_t normal = (magnitude - (uint32_t{127 - 15} << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    // Subnormal: adding 0.5 aligns the mantissa so that the float addition rounds it at the right bit.
    constexpr uint32_t kHalf = uint32_t{127 - 1} << 23;
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kHalf)) - kHalf;
    const uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    const uint32_t finite = Select(magnitude < (uint32_t{113} << 23), subnormal, normal);
    return static_cast<uint16_t>(Select(magnitude >= (uint32_t{127 + 16} << 23), special, finite) | sign >> 16);
  }

  static constexpr float Decode(uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const uint32_t shifted = static_cast<uint32_t>(bits & 0x7fff) << 13;
    const uint32_t exponent = shifted & (uint32_t{0x7c00} << 13);
    const uint32_t normal = shifted + (uint32_t{127 - 15} << 23);
    const uint32_t special = shifted + (uint32_t{255 - 31} << 23);  // keeps the payload of a NaN
    // Subnormal: add a leading one, then subtract it again.
    constexpr uint32_t kLeadingOne = uint32_t{113} << 23;
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(shifted + kLeadingOne) - std::bit_cast<float>(kLeadingOne));
    const uint32_t finite = Select(exponent == 0, subnormal, normal);
    return std::bit_cast<float>(Select(exponent == uint32_t{0x7c00} << 13, special, finite) | sign);
  }

  uint16_t bits_ = 0;
};

// The types defined here, and all types of a class.
template <typename T>
concept SoftFloat = requires(T v) {
  { v.IsNan() } -> std::same_as<bool>;
  T::FromBits(v.bits());
};
template <typename T>
concept AnyFloat = SoftFloat<T> || std::floating_point<T>;
template <typename T>
concept AnyComplex = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;
template <typename T>
concept AnyInteger = std::numeric_limits<T>::is_integer && !std::same_as<T, bool>;

// Arithmetic and comparisons use float, rounding after each operation.
template <SoftFloat T>
constexpr T operator+(T a, T b) {
  return T(static_cast<float>(a) + static_cast<float>(b));
}
template <SoftFloat T>
constexpr T operator-(T a, T b) {
  return T(static_cast<float>(a) - static_cast<float>(b));
}
template <SoftFloat T>
constexpr T operator*(T a, T b) {
  return T(static_cast<float>(a) * static_cast<float>(b));
}
template <SoftFloat T>
constexpr T operator/(T a, T b) {
  return T(static_cast<float>(a) / static_cast<float>(b));
}
template <SoftFloat T>
constexpr bool operator==(T a, T b) {
  return static_cast<float>(a) == static_cast<float>(b);
}
template <SoftFloat T>
constexpr std::partial_ordering operator<=>(T a, T b) {
  return static_cast<float>(a) <=> static_cast<float>(b);
}

// The C++ type of an element in a Literal; void for types that are not arrays.
template <ElementType kType>
struct NativeTypeOf {
  using type = void;
};
#define HLOKIT_NATIVE_TYPE(name, ...)                          \
  template <>                                                  \
  struct NativeTypeOf<ElementType::name> {                     \
    using type = __VA_ARGS__;                                  \
    static_assert(sizeof(type) == BytesOf(ElementType::name)); \
  };
HLOKIT_NATIVE_TYPE(kPred, bool)
HLOKIT_NATIVE_TYPE(kS1, Int1)
HLOKIT_NATIVE_TYPE(kS2, Int2)
HLOKIT_NATIVE_TYPE(kS4, Int4)
HLOKIT_NATIVE_TYPE(kS8, int8_t)
HLOKIT_NATIVE_TYPE(kS16, int16_t)
HLOKIT_NATIVE_TYPE(kS32, int32_t)
HLOKIT_NATIVE_TYPE(kS64, int64_t)
HLOKIT_NATIVE_TYPE(kU1, UInt1)
HLOKIT_NATIVE_TYPE(kU2, UInt2)
HLOKIT_NATIVE_TYPE(kU4, UInt4)
HLOKIT_NATIVE_TYPE(kU8, uint8_t)
HLOKIT_NATIVE_TYPE(kU16, uint16_t)
HLOKIT_NATIVE_TYPE(kU32, uint32_t)
HLOKIT_NATIVE_TYPE(kU64, uint64_t)
HLOKIT_NATIVE_TYPE(kF4E2M1FN, F4E2M1FN)
HLOKIT_NATIVE_TYPE(kF8E3M4, F8E3M4)
HLOKIT_NATIVE_TYPE(kF8E4M3, F8E4M3)
HLOKIT_NATIVE_TYPE(kF8E4M3FN, F8E4M3FN)
HLOKIT_NATIVE_TYPE(kF8E4M3B11FNUZ, F8E4M3B11FNUZ)
HLOKIT_NATIVE_TYPE(kF8E4M3FNUZ, F8E4M3FNUZ)
HLOKIT_NATIVE_TYPE(kF8E5M2, F8E5M2)
HLOKIT_NATIVE_TYPE(kF8E5M2FNUZ, F8E5M2FNUZ)
HLOKIT_NATIVE_TYPE(kF8E8M0FNU, F8E8M0FNU)
HLOKIT_NATIVE_TYPE(kBF16, BF16)
HLOKIT_NATIVE_TYPE(kF16, F16)
HLOKIT_NATIVE_TYPE(kF32, float)
HLOKIT_NATIVE_TYPE(kF64, double)
HLOKIT_NATIVE_TYPE(kC64, std::complex<float>)
HLOKIT_NATIVE_TYPE(kC128, std::complex<double>)
#undef HLOKIT_NATIVE_TYPE
template <ElementType kType>
using NativeType = typename NativeTypeOf<kType>::type;

// Calls f(std::type_identity<T>{}) with the C++ type T of `type`. Requires: an array type (IsArrayType).
template <typename F>
decltype(auto) VisitType(ElementType type, F&& f) {
  switch (type) {
#define ELEMENT_TYPE(name, text, element_class, bits, xla_name)                          \
  case ElementType::k##name:                                                             \
    if constexpr (bits != 0) {                                                           \
      return std::forward<F>(f)(std::type_identity<NativeType<ElementType::k##name>>{}); \
    }                                                                                    \
    break;
#include "ir/types/element_types.def"
  }
  std::abort();  // a caller's error; no input leads here
}

}  // namespace hlokit

// std::numeric_limits of these types.
namespace hlokit {

template <typename T, int kDigits, bool kIeee, bool kNan, bool kSigned = true>
struct SoftFloatLimits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = kSigned;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool is_iec559 = kIeee;
  static constexpr bool has_infinity = kIeee;
  static constexpr bool has_quiet_NaN = kNan;
  static constexpr bool has_signaling_NaN = kIeee;  // NaNs have payloads
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr int radix = 2;
  static constexpr int digits = kDigits;                                    // bits of the significand
  static constexpr int digits10 = (kDigits - 1) * 30103 / 100000;           // floor((digits - 1) * log10(2))
  static constexpr int max_digits10 = (kDigits * 30103 + 199999) / 100000;  // ceil(1 + digits * log10(2))
  static constexpr T epsilon() { return T(1.0 / (1 << (kDigits - 1))); }
};

}  // namespace hlokit

template <int kExponentBits, int kMantissaBits, int kBias, hlokit::NonFiniteBehavior kSpecials>
struct std::numeric_limits<hlokit::MiniFloat<kExponentBits, kMantissaBits, kBias, kSpecials>>
    : hlokit::SoftFloatLimits<hlokit::MiniFloat<kExponentBits, kMantissaBits, kBias, kSpecials>, kMantissaBits + 1,
                              kSpecials == hlokit::NonFiniteBehavior::kIeee,
                              kSpecials != hlokit::NonFiniteBehavior::kFinite,
                              kSpecials != hlokit::NonFiniteBehavior::kScale> {
  using T = hlokit::MiniFloat<kExponentBits, kMantissaBits, kBias, kSpecials>;
  static constexpr bool kScale = kSpecials == hlokit::NonFiniteBehavior::kScale;
  static constexpr T min() { return T::FromBits(kScale ? 0 : 1 << kMantissaBits); }
  static constexpr T denorm_min() { return T::FromBits(kScale ? 0 : 1); }
  static constexpr T max() { return T::FromBits(T::kMaxFinite); }
  static constexpr T lowest() { return kScale ? min() : T::FromBits(T::kMaxFinite | T::kSign); }
  static constexpr T infinity() { return T::FromBits(T::kInfinity); }
  static constexpr T quiet_NaN() { return T::FromBits(T::kNan); }
};

template <>
struct std::numeric_limits<hlokit::BF16> : hlokit::SoftFloatLimits<hlokit::BF16, 8, true, true> {
  static constexpr hlokit::BF16 min() { return hlokit::BF16::FromBits(0x0080); }
  static constexpr hlokit::BF16 denorm_min() { return hlokit::BF16::FromBits(0x0001); }
  static constexpr hlokit::BF16 max() { return hlokit::BF16::FromBits(0x7f7f); }
  static constexpr hlokit::BF16 lowest() { return hlokit::BF16::FromBits(0xff7f); }
  static constexpr hlokit::BF16 infinity() { return hlokit::BF16::FromBits(0x7f80); }
  static constexpr hlokit::BF16 quiet_NaN() { return hlokit::BF16::FromBits(0x7fc0); }
};

template <>
struct std::numeric_limits<hlokit::F16> : hlokit::SoftFloatLimits<hlokit::F16, 11, true, true> {
  static constexpr hlokit::F16 min() { return hlokit::F16::FromBits(0x0400); }
  static constexpr hlokit::F16 denorm_min() { return hlokit::F16::FromBits(0x0001); }
  static constexpr hlokit::F16 max() { return hlokit::F16::FromBits(0x7bff); }
  static constexpr hlokit::F16 lowest() { return hlokit::F16::FromBits(0xfbff); }
  static constexpr hlokit::F16 infinity() { return hlokit::F16::FromBits(0x7c00); }
  static constexpr hlokit::F16 quiet_NaN() { return hlokit::F16::FromBits(0x7e00); }
};

#endif  // HLOKIT_IR_TYPES_FLOAT_TYPES_H_

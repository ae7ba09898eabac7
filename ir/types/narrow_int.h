// SPDX-License-Identifier: Apache-2.0
// Integers of 1, 2 and 4 bits. Each takes a byte, as elements of a Literal do: signed values sign-extended, unsigned
// ones in the low bits. Arithmetic wraps around at the width of the type.
#ifndef HLOKIT_IR_TYPES_NARROW_INT_H_
#define HLOKIT_IR_TYPES_NARROW_INT_H_

#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace hlokit {

template <int kWidth, bool kSigned>
class NarrowInt {
 public:
  using Storage = std::conditional_t<kSigned, int8_t, uint8_t>;
  static constexpr int kBits = kWidth;
  static constexpr bool kIsSigned = kSigned;
  static constexpr Storage kMin = kSigned ? -(1 << (kWidth - 1)) : 0;
  static constexpr Storage kMax = (1 << (kSigned ? kWidth - 1 : kWidth)) - 1;

  constexpr NarrowInt() = default;
  // Returns the low bits of `v`.
  template <std::integral I>
  constexpr explicit NarrowInt(I v) : value_(Wrap(static_cast<uint8_t>(v))) {}

  template <typename T>
  requires std::is_arithmetic_v<T>
  constexpr explicit operator T() const { return static_cast<T>(value_); }
  constexpr Storage value() const { return value_; }

  friend constexpr auto operator<=>(NarrowInt, NarrowInt) = default;
  friend constexpr NarrowInt operator+(NarrowInt a, NarrowInt b) { return NarrowInt(a.value_ + b.value_); }
  friend constexpr NarrowInt operator-(NarrowInt a, NarrowInt b) { return NarrowInt(a.value_ - b.value_); }
  friend constexpr NarrowInt operator*(NarrowInt a, NarrowInt b) { return NarrowInt(a.value_ * b.value_); }
  friend constexpr NarrowInt operator&(NarrowInt a, NarrowInt b) { return NarrowInt(a.value_ & b.value_); }
  friend constexpr NarrowInt operator|(NarrowInt a, NarrowInt b) { return NarrowInt(a.value_ | b.value_); }
  friend constexpr NarrowInt operator^(NarrowInt a, NarrowInt b) { return NarrowInt(a.value_ ^ b.value_); }
  constexpr NarrowInt operator-() const { return NarrowInt(-value_); }
  constexpr NarrowInt operator~() const { return NarrowInt(~value_); }

 private:
  static constexpr Storage Wrap(uint8_t v) {
    // The left shift drops the bits beyond the width; the right shift is arithmetic if the type is signed.
    return static_cast<Storage>(static_cast<Storage>(v << (8 - kWidth)) >> (8 - kWidth));
  }

  Storage value_ = 0;
};

using Int1 = NarrowInt<1, true>;
using Int2 = NarrowInt<2, true>;
using Int4 = NarrowInt<4, true>;
using UInt1 = NarrowInt<1, false>;
using UInt2 = NarrowInt<2, false>;
using UInt4 = NarrowInt<4, false>;

}  // namespace hlokit

template <int kWidth, bool kSigned>
struct std::numeric_limits<hlokit::NarrowInt<kWidth, kSigned>> {
  using T = hlokit::NarrowInt<kWidth, kSigned>;
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = kSigned;
  static constexpr bool is_integer = true;
  static constexpr bool is_exact = true;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = true;
  static constexpr bool has_infinity = false;
  static constexpr bool has_quiet_NaN = false;
  static constexpr bool has_signaling_NaN = false;
  static constexpr int radix = 2;
  static constexpr int digits = kSigned ? kWidth - 1 : kWidth;
  static constexpr T min() { return T(T::kMin); }
  static constexpr T lowest() { return T(T::kMin); }
  static constexpr T max() { return T(T::kMax); }
};

#endif  // HLOKIT_IR_TYPES_NARROW_INT_H_

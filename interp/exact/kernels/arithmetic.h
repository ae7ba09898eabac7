// SPDX-License-Identifier: Apache-2.0
// Functions of elements that are the same for all kinds of numbers, shared by elementwise loops and reductions.
// Integers wrap.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_ARITHMETIC_H_
#define HLOKIT_INTERP_EXACT_KERNELS_ARITHMETIC_H_

#include <type_traits>

namespace hlokit::interp::arithmetic {

// An unsigned type at least as wide as int, without overflow; other numbers unchanged.
template <typename T>
struct WrappingType {
  using type = T;
};
template <typename T>
requires std::is_integral_v<T>
struct WrappingType<T> {
  using type = std::make_unsigned_t<decltype(T() + T())>;
};
template <typename T>
using Wrapping = typename WrappingType<T>::type;

struct Add {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Subtract {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct Multiply {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
// For floats and complex numbers.
struct Divide {
  template <typename T>
  static T Apply(T a, T b) {
    return a / b;
  }
};
struct Negate {
  template <typename T>
  static T Apply(T a) {
    return static_cast<T>(-static_cast<Wrapping<T>>(a));
  }
};
// Returns a NaN operand, the first one if both are. Zeros of either sign are equal, and the first one wins.
struct Maximum {
  template <typename T>
  static T Apply(T a, T b) {
    return a >= b || a != a ? a : b;
  }
};
struct Minimum {
  template <typename T>
  static T Apply(T a, T b) {
    return a <= b || a != a ? a : b;
  }
};
// For integers.
struct And {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

}  // namespace hlokit::interp::arithmetic

#endif  // HLOKIT_INTERP_EXACT_KERNELS_ARITHMETIC_H_

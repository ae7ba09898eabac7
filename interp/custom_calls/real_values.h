// SPDX-License-Identifier: Apache-2.0
// Converts arrays to and from doubles, for kernels where conversion is not the bottleneck.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_REAL_VALUES_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_REAL_VALUES_H_

#include <complex>
#include <cstddef>
#include <cstdint>

#include "ir/types/element_type.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {

// Reads n elements of a float type, `stride` elements apart.
inline void ReadReals(ElementType type, const std::byte* from, int64_t stride, int64_t n, double* to) {
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    if constexpr (AnyFloat<T>) {
      const T* x = reinterpret_cast<const T*>(from);
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<double>(x[i * stride]);
    }
  });
}
inline void WriteReals(ElementType type, const double* from, int64_t n, std::byte* to, int64_t stride) {
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    if constexpr (AnyFloat<T>) {
      T* x = reinterpret_cast<T*>(to);
      for (int64_t i = 0; i < n; ++i) x[i * stride] = static_cast<T>(from[i]);
    }
  });
}

// Reads n elements of a float or complex type, `stride` elements apart.
inline void ReadComplex(ElementType type, const std::byte* from, int64_t stride, int64_t n, std::complex<double>* to) {
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    const T* x = reinterpret_cast<const T*>(from);
    if constexpr (AnyFloat<T>) {
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<double>(x[i * stride]);
    } else if constexpr (AnyComplex<T>) {
      for (int64_t i = 0; i < n; ++i) to[i] = std::complex<double>(x[i * stride]);
    }
  });
}
inline void WriteComplex(ElementType type, const std::complex<double>* from, int64_t n, std::byte* to, int64_t stride) {
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    T* x = reinterpret_cast<T*>(to);
    if constexpr (AnyFloat<T>) {
      for (int64_t i = 0; i < n; ++i) x[i * stride] = static_cast<T>(from[i].real());
    } else if constexpr (AnyComplex<T>) {
      for (int64_t i = 0; i < n; ++i) x[i * stride] = T(from[i]);
    }
  });
}

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_REAL_VALUES_H_

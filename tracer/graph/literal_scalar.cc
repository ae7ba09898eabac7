// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/literal_scalar.h"

#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>

#include "ir/types/float_types.h"

namespace hlokit::lazy {

void StoreScalar(ElementType type, Scalar value, std::byte* to) {
  if (type == ElementType::kPred) {
    *to = static_cast<std::byte>(value.ToBool());
    return;
  }
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    T stored{};
    if constexpr (AnyFloat<T>) {
      stored = static_cast<T>(value.ToDouble());
    } else if constexpr (AnyComplex<T>) {
      stored = T(static_cast<typename T::value_type>(value.ToDouble()));
    } else if constexpr (std::is_integral_v<T>) {
      stored = static_cast<T>(value.ToInt());
    }
    std::memcpy(to, &stored, sizeof(stored));
  });
}

Scalar LoadScalar(ElementType type, const std::byte* from) {
  if (type == ElementType::kPred) return *from != std::byte{0};
  Scalar result;
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    T stored;
    std::memcpy(static_cast<void*>(&stored), from, sizeof(stored));
    if constexpr (AnyFloat<T>) {
      result = static_cast<double>(stored);
    } else if constexpr (AnyComplex<T>) {
      result = static_cast<double>(stored.real());
    } else if constexpr (std::is_integral_v<T>) {
      result = static_cast<int64_t>(stored);
    }
  });
  return result;
}

Literal FilledLiteral(Shape shape, Scalar value) {
  Literal literal = Literal::Zeros(shape);
  const size_t width = static_cast<size_t>(BytesOf(shape.element_type()));
  if (literal.size_bytes() < width) return literal;
  StoreScalar(shape.element_type(), value, literal.data());
  for (size_t i = width; i < literal.size_bytes(); i += width) std::memcpy(literal.data() + i, literal.data(), width);
  return literal;
}

Literal Converted(const Literal& value, Shape shape) {
  Literal out = Literal::Zeros(shape);
  const ElementType from = value.shape().element_type(), to = shape.element_type();
  if (from == to) {
    if (out.size_bytes() != 0) std::memcpy(out.data(), value.data(), out.size_bytes());
    return out;
  }
  const size_t read = static_cast<size_t>(BytesOf(from)), write = static_cast<size_t>(BytesOf(to));
  for (size_t i = 0; i < static_cast<size_t>(value.element_count()); ++i) {
    StoreScalar(to, LoadScalar(from, value.data() + i * read), out.data() + i * write);
  }
  return out;
}

Scalar LargestOf(ElementType type) {
  if (type == ElementType::kPred) return true;
  if (IsFloat(type)) return std::numeric_limits<double>::infinity();
  const int bits = BitsOf(type);
  if (IsSigned(type)) return static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
  return static_cast<int64_t>(bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
}

Scalar SmallestOf(ElementType type) {
  if (type == ElementType::kPred) return false;
  if (IsFloat(type)) return -std::numeric_limits<double>::infinity();
  if (!IsSigned(type)) return 0;
  return static_cast<int64_t>(~uint64_t{0} << (BitsOf(type) - 1));
}

double LargestFiniteOf(ElementType type) {
  double result = 0;
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    if constexpr (AnyFloat<T>) result = static_cast<double>(std::numeric_limits<T>::max());
  });
  return result;
}

double EpsilonOf(ElementType type) {
  if (type == ElementType::kF64) return 0x1p-52;
  if (type == ElementType::kBF16) return 0x1p-7;
  if (type == ElementType::kF16) return 0x1p-10;
  return 0x1p-23;
}

}  // namespace hlokit::lazy

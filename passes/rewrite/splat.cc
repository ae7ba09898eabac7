// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/splat.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ir/types/float_types.h"

namespace hlokit {
namespace {

constexpr size_t kMaxBytes = 4096;
constexpr int kMaxDepth = 16;

template <typename T>
inline constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

template <typename T>
T Load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

}  // namespace

std::optional<double> Splat::AsDouble() const {
  return VisitType(type, [&]<typename T>(std::type_identity<T>) -> std::optional<double> {
    if constexpr (kIsComplex<T>) {
      return std::nullopt;
    } else if constexpr (sizeof(T) == 8 && !std::is_same_v<T, double>) {
      const T value = Load<T>(data);
      // Beyond 2^53 neighboring doubles are more than 1 apart.
      constexpr int64_t kExact = int64_t{1} << 53;
      if constexpr (std::is_signed_v<T>) {
        if (value < -kExact) return std::nullopt;
      }
      if (value > static_cast<T>(kExact)) return std::nullopt;
      return static_cast<double>(value);
    } else {
      return static_cast<double>(Load<T>(data));
    }
  });
}

std::optional<int64_t> Splat::AsInt() const {
  if (!IsInteger(type) && type != ElementType::kPred) return std::nullopt;
  return VisitType(type, [&]<typename T>(std::type_identity<T>) -> std::optional<int64_t> {
    if constexpr (kIsComplex<T>) {
      return std::nullopt;
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      const uint64_t value = Load<uint64_t>(data);
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(value);
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<int64_t>(Load<T>(data));
    } else {
      return static_cast<int64_t>(static_cast<double>(Load<T>(data)));
    }
  });
}

bool Splat::Is(double v) const {
  if (IsComplex(type)) {
    if (type == ElementType::kC64) return Load<std::complex<float>>(data) == std::complex<float>(static_cast<float>(v));
    return Load<std::complex<double>>(data) == std::complex<double>(v);
  }
  const std::optional<double> value = AsDouble();
  return value && *value == v;
}

bool Splat::IsAllOnes() const {
  if (type == ElementType::kPred) return Is(1);
  if (IsSigned(type)) return Is(-1);
  if (!IsUnsigned(type)) return false;
  return VisitType(type, [&]<typename T>(std::type_identity<T>) {
    if constexpr (kIsComplex<T>) {
      return false;
    } else {
      return Load<T>(data) == std::numeric_limits<T>::max();
    }
  });
}

bool Splat::IsNegativeZero() const {
  const std::optional<double> value = IsFloat(type) ? AsDouble() : std::nullopt;
  return value && *value == 0 && std::signbit(*value);
}

bool Splat::IsInfinity(bool negative) const {
  const std::optional<double> value = IsFloat(type) ? AsDouble() : std::nullopt;
  return value && std::isinf(*value) && std::signbit(*value) == negative;
}

bool Splat::IsLowest() const {
  if (IsFloat(type)) return IsInfinity(true);
  if (IsComplex(type)) return false;
  return VisitType(type, [&]<typename T>(std::type_identity<T>) {
    if constexpr (kIsComplex<T>) {
      return false;
    } else {
      return Load<T>(data) == std::numeric_limits<T>::lowest();
    }
  });
}

bool Splat::IsHighest() const {
  if (IsFloat(type)) return IsInfinity(false);
  if (IsComplex(type)) return false;
  return VisitType(type, [&]<typename T>(std::type_identity<T>) {
    if constexpr (kIsComplex<T>) {
      return false;
    } else {
      return Load<T>(data) == std::numeric_limits<T>::max();
    }
  });
}

std::optional<Splat> SplatOf(Instruction i) {
  for (int depth = 0; depth < kMaxDepth && MovesElements(i.opcode()); ++depth) i = i.operand(0);
  if (i.opcode() != Opcode::kConstant || !i.shape().IsArray()) return std::nullopt;
  const LiteralRecord& literal = i.literal();
  const size_t element = static_cast<size_t>(BytesOf(i.shape().element_type()));
  if (literal.elided || literal.data == nullptr || literal.size_bytes < element) return std::nullopt;
  if (literal.size_bytes > kMaxBytes) return std::nullopt;
  if (std::memcmp(literal.data, literal.data + element, literal.size_bytes - element) != 0) return std::nullopt;
  return Splat{i.shape().element_type(), literal.data, i};
}

std::optional<int64_t> IntegerConstant(Instruction i) {
  if (!i.shape().IsArray() || i.shape().element_count() != 1) return std::nullopt;
  const std::optional<Splat> splat = SplatOf(i);
  return splat ? splat->AsInt() : std::nullopt;
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
#include "interp/values/engine_ulps.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

double LargestMagnitude(const Literal& literal) {
  double largest = 0;
  if (!literal.shape().IsArray()) return 0;
  const auto add = [&](double v) {
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  };
  VisitType(literal.shape().element_type(), [&]<typename T>(std::type_identity<T>) {
    for (const T& v : literal.values<T>()) {
      if constexpr (AnyComplex<T>) {
        add(v.real());
        add(v.imag());
      } else if constexpr (AnyFloat<T>) {
        add(static_cast<double>(v));
      }
    }
  });
  return largest;
}

// Returns the significand bits of a float type, or of the components of a complex type.
int SignificandBits(ElementType type) {
  return VisitType(ComponentType(type), []<typename T>(std::type_identity<T>) {
    if constexpr (AnyFloat<T>) return std::numeric_limits<T>::digits;
    return 0;
  });
}

}  // namespace

ErrorSpec EngineTolerance(Opcode opcode, absl::Span<const Literal> operands, const Literal& result) {
  const EngineUlps& row = kEngineUlpsOf[static_cast<size_t>(opcode)];
  ErrorSpec tolerance;
  if (row.ulps == 0 || !result.shape().IsArray()) return tolerance;
  const ElementType type = result.shape().element_type();
  if (!IsFloat(type) && !IsComplex(type)) return tolerance;
  tolerance.ulp = row.ulps;
  if (row.of_largest) {
    double largest = LargestMagnitude(result);
    for (const Literal& operand : operands) largest = std::max(largest, LargestMagnitude(operand));
    if (largest > 0) tolerance.absolute = row.ulps * std::ldexp(1.0, std::ilogb(largest) - SignificandBits(type) + 1);
  }
  return tolerance;
}

}  // namespace hlokit::interp

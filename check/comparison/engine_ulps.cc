// SPDX-License-Identifier: Apache-2.0
#include "check/comparison/engine_ulps.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "ir/graph/module.h"
#include "ir/graph/traversal.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

// Calls visit(double) for each floating-point number of an array, and each part of complex ones.
template <typename Visit>
void ForEachNumber(const Literal& literal, Visit visit) {
  if (!literal.shape().IsArray()) return;
  VisitType(literal.shape().element_type(), [&]<typename T>(std::type_identity<T>) {
    for (const T& v : literal.values<T>()) {
      if constexpr (AnyComplex<T>) {
        visit(static_cast<double>(v.real()));
        visit(static_cast<double>(v.imag()));
      } else if constexpr (AnyFloat<T>) {
        visit(static_cast<double>(v));
      }
    }
  });
}

double LargestMagnitude(const Literal& literal) {
  double largest = 0;
  ForEachNumber(literal, [&](double v) {
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
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

bool HasDefinedValues(Opcode opcode, absl::Span<const Literal> operands) {
  bool finite = true;
  if (kEngineUlpsOf[static_cast<size_t>(opcode)].finite_only) {
    for (const Literal& operand : operands) ForEachNumber(operand, [&](double v) { finite &= std::isfinite(v); });
  }
  return finite;
}

namespace {

ErrorSpec ToleranceOfRow(const EngineUlps& row, absl::Span<const Literal> operands, const Literal& result) {
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

}  // namespace

ErrorSpec EngineTolerance(Opcode opcode, absl::Span<const Literal> operands, const Literal& result) {
  return ToleranceOfRow(kEngineUlpsOf[static_cast<size_t>(opcode)], operands, result);
}

ErrorSpec EngineTolerance(Instruction instruction, absl::Span<const Literal> operands, const Literal& result) {
  const auto row_of = [](Instruction i) { return kEngineUlpsOf[static_cast<size_t>(i.opcode())]; };
  if (!HasTrait(instruction.opcode(), kControlFlow)) return ToleranceOfRow(row_of(instruction), operands, result);
  std::vector<ComputationId> callees;
  instruction.ForEachCallee([&](Computation callee) { callees.push_back(callee.id()); });
  EngineUlps sum{instruction.opcode(), 0};
  int rounding = 0;
  for (const ComputationId id : ReachableComputations(instruction.module(), callees)) {
    for (const Instruction i : instruction.module().computation(id).instructions()) {
      sum.ulps += row_of(i).ulps;
      sum.of_largest |= row_of(i).of_largest;
      rounding += row_of(i).ulps > 0 ? 1 : 0;
    }
  }
  sum.of_largest |= rounding > 1;
  return ToleranceOfRow(sum, operands, result);
}

}  // namespace hlokit::interp

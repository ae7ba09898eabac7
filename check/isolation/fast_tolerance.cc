// SPDX-License-Identifier: Apache-2.0
#include "check/isolation/fast_tolerance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "check/comparison/engine_ulps.h"
#include "interp/compiled/loops/loop_builder.h"
#include "interp/compiled/products/product_error.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode_set.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

// Copies a literal with the magnitudes of its numbers. NaN and infinities, which bound nothing, become zero.
Literal Magnitudes(const Literal& of) {
  Literal copy = of;
  if (!of.shape().IsArray()) return copy;
  VisitType(of.shape().element_type(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (AnyFloat<T>) {
      for (T& v : copy.values<T>()) {
        const double magnitude = std::fabs(static_cast<double>(v));
        v = static_cast<T>(std::isfinite(magnitude) ? magnitude : 0.0);
      }
    }
  });
  return copy;
}

double Largest(const Literal& literal) {
  double largest = 0;
  if (!literal.shape().IsArray()) return largest;
  VisitType(literal.shape().element_type(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (AnyFloat<T>) {
      for (const T& v : literal.values<T>()) largest = std::max(largest, static_cast<double>(v));
    }
  });
  return largest;
}

// Sums in another order.
bool Accumulates(Opcode opcode) { return opcode == Opcode::kReduce || compiled::NormFormOf(opcode) != nullptr; }

}  // namespace

ErrorSpec FastTolerance::Of(Instruction instruction, absl::Span<const Literal> operands, const Literal& result) {
  ErrorSpec tolerance;
  const Opcode opcode = instruction.opcode();
  if (!result.shape().IsArray() || !IsFloat(result.shape().element_type())) return tolerance;
  // Two units of the generated function, and one of the exact engine's.
  if (compiled::IsApproximate(opcode)) tolerance.ulp = 3;
  if (Accumulates(opcode)) return EngineTolerance(Opcode::kReduce, operands, result);
  if (HasTrait(opcode, kControlFlow)) return EngineTolerance(instruction, operands, result);
  if (!OpcodeSet{Opcode::kDot, Opcode::kConvolution}.Contains(opcode)) return tolerance;
  const absl::StatusOr<std::vector<Literal>> terms = OnMagnitudes(instruction, operands);
  if (!terms.ok() || terms->empty()) return tolerance;
  // Of the largest sum of magnitudes; narrower types are rounded once more.
  const double largest = Largest((*terms)[0]);
  const int64_t count = TermsOf(instruction);
  tolerance.absolute = std::numeric_limits<double>::infinity();
  if (std::isfinite(largest)) {
    tolerance.absolute =
        std::ldexp(compiled::ProductDifferenceUnits(count) * largest, -24) + 2 * compiled::ProductUnderflow(count);
  }
  if (BitsOf(result.shape().element_type()) < 32) tolerance.ulp = 1;
  return tolerance;
}

int64_t FastTolerance::TermsOf(Instruction product) {
  double terms = 1;
  if (product.opcode() == Opcode::kDot) {
    for (int64_t d : DotDims::Of(product).lhs_contracting) {
      terms *= static_cast<double>(product.operand(0).shape().dim(d));
    }
  } else {
    const ConvolutionDims dims = ConvolutionDims::Of(product);
    const Shape kernel = product.operand(1).shape();
    for (int64_t d = 0; d < kernel.rank(); ++d) {
      if (d != dims.kernel_output_feature) terms *= static_cast<double>(kernel.dim(d));
    }
  }
  return static_cast<int64_t>(std::min(terms, 0x1p53));
}

absl::StatusOr<std::vector<Literal>> FastTolerance::OnMagnitudes(Instruction instruction,
                                                                 absl::Span<const Literal> operands) {
  std::vector<Literal> magnitudes;
  for (const Literal& operand : operands) magnitudes.push_back(Magnitudes(operand));
  return exact_.Run(instruction, magnitudes);
}

}  // namespace hlokit::interp

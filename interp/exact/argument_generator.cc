// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/argument_generator.h"

#include <cmath>
#include <type_traits>

#include "interp/exact/argument_constraints.h"
#include "interp/exact/compiled_computation_builder.h"
#include "ir/graph/literal_fill.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

// Multiplies by the largest power of two not above 1 / sqrt(products).
void ScaleFactors(int64_t products, Literal* factors) {
  int exponent = 0;
  while (exponent < 31 && (int64_t{1} << (2 * exponent)) < products) ++exponent;
  VisitType(factors->shape().element_type(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (AnyFloat<T>) {
      for (T& v : factors->values<T>()) v = static_cast<T>(std::ldexp(static_cast<double>(v), -exponent));
    }
  });
}

// `uses` may be shorter than `leaves`.
std::vector<Literal> MakeLeaves(absl::Span<const Shape> leaves, absl::Span<const ArgumentConstraints> uses,
                                uint64_t seed) {
  std::vector<Literal> arguments;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const uint64_t start = seed + (uint64_t{i} << 32);
    const ArgumentConstraints use = i < uses.size() ? uses[i] : ArgumentConstraints();
    if (!leaves[i].IsArray()) {
      arguments.push_back(Literal::Zeros(leaves[i]));
    } else if (use.index_bound > 0) {
      arguments.push_back(FillIndices(leaves[i], use.index_bound, start));
    } else if (use.positive && IsFloat(leaves[i].element_type())) {
      arguments.push_back(FillPositive(leaves[i], start));
    } else {
      arguments.push_back(FillElided(leaves[i], FillKind::kRandom, start));
      const ElementType type = leaves[i].element_type();
      if (use.contraction_size > 0 && IsFloat(type) && BitsOf(type) >= 16)
        ScaleFactors(use.contraction_size, &arguments.back());
    }
  }
  return arguments;
}

}  // namespace

std::vector<Literal> MakeFakeArguments(const Module& module, uint64_t seed) {
  std::vector<Shape> leaves;
  const Computation entry = module.entry();
  for (int64_t i = 0; i < entry.parameter_count(); ++i) AppendLeaves(entry.parameter(i).shape(), &leaves);
  return MakeLeaves(leaves, InferArgumentConstraints(module), seed);
}

std::vector<Literal> MakeFakeArguments(absl::Span<const Shape> leaves, uint64_t seed) {
  return MakeLeaves(leaves, {}, seed);
}

}  // namespace hlokit::interp

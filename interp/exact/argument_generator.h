// SPDX-License-Identifier: Apache-2.0
// Made-up arguments: small floats, positive where a root is taken of them, and integers that are valid where the
// program uses them as indices.
#ifndef HLOKIT_INTERP_EXACT_ARGUMENT_GENERATOR_H_
#define HLOKIT_INTERP_EXACT_ARGUMENT_GENERATOR_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// Depends on the module and the seed alone. Leaf i, an array, is made with seed + 2^32 i: floats in (0, 1] where they
// have to be positive (argument_constraints.h) and in [-1, 1) elsewhere, integers below their index bound or else in
// [0, 16), or what their type has of that (FillElided, FillPositive and FillIndices say more). Factors of sums of n
// products, of a type with the range for it (f16 and wider), are scaled by the power of two at or below 1 / sqrt n: so
// the layers of a network neither blow values up nor make them vanish.
std::vector<Literal> MakeFakeArguments(const Module& module, uint64_t seed);

// The same without a look at how they are used, for several modules that are to be given the same.
std::vector<Literal> MakeFakeArguments(absl::Span<const Shape> leaves, uint64_t seed);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_ARGUMENT_GENERATOR_H_

// Made-up arguments: small floats, and integers that are valid where the program uses them as indices.
#ifndef HLOKIT_INTERP_REFERENCE_ARGUMENT_GENERATOR_H_
#define HLOKIT_INTERP_REFERENCE_ARGUMENT_GENERATOR_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/literal.h"
#include "ir/module.h"

namespace hlokit::interp {

// For each leaf of the entry's parameters, tuples flattened: n if the elements are used as indices of which 0, ..., n -
// 1 are in bounds everywhere, 0 if they are not. An index of gather, scatter, dynamic-slice, dynamic-update-slice, a
// size for set-dimension-size, a branch of conditional is followed back through instructions that only move or convert
// values, and through calls, loops and conditionals; where it went through arithmetic the trail ends.
std::vector<int64_t> IndexBounds(const Module& module);

// Depends on the module and the seed alone. Leaf i, an array, is made with seed + 2^32 i: floats in [-1, 1), integers
// below their index bound or else in [0, 16), or what their type has of that (FillElided and FillIndices say more).
std::vector<Literal> MakeArguments(const Module& module, uint64_t seed);

// The same without a look at how they are used, for several modules that are to be given the same.
std::vector<Literal> MakeArguments(absl::Span<const Shape> leaves, uint64_t seed);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_REFERENCE_ARGUMENT_GENERATOR_H_

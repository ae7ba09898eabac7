// SPDX-License-Identifier: Apache-2.0
// Generates synthetic arguments: small floats, positive if a root of them is taken, and integers that are in bounds
// where the program uses them as indices.
#ifndef HLOKIT_CHECK_ARGUMENTS_ARGUMENT_GENERATOR_H_
#define HLOKIT_CHECK_ARGUMENTS_ARGUMENT_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// Generates the arguments as a function of the module and the seed. Leaf i, an array, uses seed + 2^32 i: floats in (0,
// 1] if they must be positive (argument_constraints.h), else in [-1, 1); integers below their index bound, else in [0,
// 16), as far as the type allows (see FillElided, FillPositive and FillIndices). Factors of contractions over n
// products of f16 and wider types are scaled by the largest power of two not above 1 / sqrt n, so that values neither
// explode nor vanish over the layers of a network.
std::vector<Literal> MakeFakeArguments(const Module& module, uint64_t seed);

struct GeneratorOptions {
  int num_threads = 0;            // 0: one per hardware thread
  int64_t max_bytes = INT64_MAX;  // of all arguments
  // Polled about every 20 ms; an error ends the generation and is returned.
  std::function<absl::Status()> poll;
};
// The same arguments, in several threads. Returns RESOURCE_EXHAUSTED, and allocates nothing, if they exceed the limit.
absl::StatusOr<std::vector<Literal>> MakeFakeArguments(const Module& module, uint64_t seed,
                                                       const GeneratorOptions& options);

// Generates arguments without constraints, for modules that must get equal arguments. The one without options must not
// be asked for more than memory holds.
absl::StatusOr<std::vector<Literal>> MakeFakeArguments(absl::Span<const Shape> leaves, uint64_t seed,
                                                       const GeneratorOptions& options);
std::vector<Literal> MakeFakeArguments(absl::Span<const Shape> leaves, uint64_t seed);

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_ARGUMENTS_ARGUMENT_GENERATOR_H_

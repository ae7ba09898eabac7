// SPDX-License-Identifier: Apache-2.0
// Lower bounds of what an expected program communicates, from its recorded parts: `tree:` lines, which give shapes only
// here and there. A permute has the bytes of what it moves, an all-gather at least twice those of its operand, and so
// on; what is not known counts as nothing.
#ifndef HLOKIT_TESTS_PROPERTIES_SPMD_TREES_H_
#define HLOKIT_TESTS_PROPERTIES_SPMD_TREES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hlokit::properties {

// Returns the bytes of a shape as expectations write it: f32[8,2]{1,0}, or a tuple of such.
int64_t BytesOfText(std::string_view text);

// Returns the shape without layouts and spaces.
std::string WithoutLayouts(std::string_view shape);

// Returns the least bytes of the result of each collective that the trees have, by kind.
// `trees`: "PATH = op:SHAPE(operand, …)"; `parameters`: bytes of the parameters of the entry, on one device.
std::map<std::string, std::vector<int64_t>> LeastBytes(const std::vector<std::string>& trees,
                                                       const std::vector<int64_t>& parameters);

}  // namespace hlokit::properties

#endif  // HLOKIT_TESTS_PROPERTIES_SPMD_TREES_H_

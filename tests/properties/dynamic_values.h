// SPDX-License-Identifier: Apache-2.0
// Results of a pass that makes arrays with dynamic dimensions static. The interpreters compute such arrays at their
// bounds, so they cannot run the module before the pass with smaller sizes. Instead:
//   at the bounds       with each size equal to its bound, the results are those of the module before;
//   below the bounds    the results do not depend on the elements beyond the sizes: filled with zeros, or with NaN and
//                       large integers, they are the same.
// Elements of a result beyond its size are ignored.
#ifndef HLOKIT_TESTS_PROPERTIES_DYNAMIC_VALUES_H_
#define HLOKIT_TESTS_PROPERTIES_DYNAMIC_VALUES_H_

#include <string_view>

#include "ir/graph/module.h"
#include "tests/properties/module_values.h"

namespace hlokit::properties {

// Returns true if the module sets sizes of dimensions.
bool SetsDimensionSizes(const Module& module);

// Checks the pass `pipeline`, which made `after` of `before`. Not run unless every size is a parameter of the entry.
ValueComparison CompareDynamicValues(const Module& before, const Module& after, std::string_view pipeline);

}  // namespace hlokit::properties

#endif  // HLOKIT_TESTS_PROPERTIES_DYNAMIC_VALUES_H_

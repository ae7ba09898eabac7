// SPDX-License-Identifier: Apache-2.0
// Programs that are too large to run, with smaller dimensions.
#ifndef HLOKIT_TESTS_PROPERTIES_SMALLER_MODULE_H_
#define HLOKIT_TESTS_PROPERTIES_SMALLER_MODULE_H_

#include <cstdint>

#include "ir/graph/module.h"

namespace hlokit::properties {

// Returns flops and bytes of a run.
double WorkOf(const Module& module);

// Makes dimensions smaller, the largest sizes first and all of one size together, until the work is at most `max_work`
// or nothing more can become smaller. Sizes keep their remainder for `tiles`, the number of tiles that a dimension may
// have, and have at least two elements for each. A size on which more depends than shapes (windows, slices, merged
// dimensions) stays.
void MakeSmaller(Module* module, int64_t tiles, double max_work);

}  // namespace hlokit::properties

#endif  // HLOKIT_TESTS_PROPERTIES_SMALLER_MODULE_H_

// SPDX-License-Identifier: Apache-2.0
// Inserts copies where two values that must be distinct would share a buffer.
#ifndef HLOKIT_PASSES_SCHEDULE_COPY_INSERTION_H_
#define HLOKIT_PASSES_SCHEDULE_COPY_INSERTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module_fwd.h"
#include "passes/remarks/remark.h"

namespace hlokit {

// Adds copies so that
//   - each array of a loop state can keep one buffer: initial values have no other user, and the body returns no
//     constant, no array of another element, and no array twice;
//   - operands that are updated in place (dynamic-update-slice, scatter) have no other user and are neither constants
//     nor parameters;
//   - results of the entry and of branches are distinct and are neither parameters nor constants, except entry
//     parameters that input_output_alias assigns to that result.
//
// Conservative: other users count even if they run first. Nested tuples in loop states are left as they are. Returns
// the number of copies; a second run adds none. Modules with a schedule do not change. `remarks`: gets the reason of
// each; null: nobody.
absl::StatusOr<int64_t> InsertCopies(Module& module, RemarkCollector* remarks = nullptr);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_COPY_INSERTION_H_

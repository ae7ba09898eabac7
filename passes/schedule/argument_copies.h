// SPDX-License-Identifier: Apache-2.0
// Inserts the copies that arguments of a program need, whose memory is the caller's.
#ifndef HLOKIT_PASSES_SCHEDULE_ARGUMENT_COPIES_H_
#define HLOKIT_PASSES_SCHEDULE_ARGUMENT_COPIES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module_fwd.h"

namespace hlokit {

// Adds copies in the entry computation where an argument or a constant
//   - is a result, also under another name such as a transpose that moves no data, unless it is donated;
//   - is updated in place by an instruction, a fusion or a loop, unless it is donated.
// Scalars and arrays in other memory spaces are left alone. Returns the number
// of copies; a second run adds none. Modules with a schedule do not change.
absl::StatusOr<int64_t> InsertArgumentCopies(Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_ARGUMENT_COPIES_H_

// SPDX-License-Identifier: Apache-2.0
// Inserts the copies that arguments of a program need, whose memory is the caller's.
#ifndef HLOKIT_PASSES_SCHEDULE_ARGUMENT_COPIES_H_
#define HLOKIT_PASSES_SCHEDULE_ARGUMENT_COPIES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/remarks/remark.h"

namespace hlokit {

// Adds copies in the entry computation where an argument or a constant
//   - is a result, also under another name such as a transpose that moves no data, unless it is donated;
//   - is updated in place by an instruction, a fusion or a loop, unless it is donated.
// Scalars and arrays in other memory spaces are left alone. Returns the number
// of copies; a second run adds none. Modules with a schedule do not change.
// `remarks`: gets the reason of each; null: nobody.
absl::StatusOr<int64_t> InsertArgumentCopies(Module& module, RemarkCollector* remarks = nullptr);

// Says why there is a copy of `value`: `user` overwrites it, or it is a result of the computation if there is no user.
// Does nothing if `remarks` is null.
void AddCopyRemark(InstructionId copy, Instruction value, Instruction user, RemarkCollector* remarks);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_ARGUMENT_COPIES_H_

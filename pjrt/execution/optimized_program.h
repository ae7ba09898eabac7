// SPDX-License-Identifier: Apache-2.0
// Programs as callers see them after compilation: a HloModuleProtoWithConfig with what XLA's compiler records of
// partitioning and of devices.
#ifndef HLOKIT_PJRT_EXECUTION_OPTIMIZED_PROGRAM_H_
#define HLOKIT_PJRT_EXECUTION_OPTIMIZED_PROGRAM_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "parser/proto/xla.pb.h"
#include "pjrt/execution/program.h"

namespace hlokit::pjrt {

// Returns the serialized message of `module`, which is `program` in some stage of compilation.
absl::StatusOr<std::string> OptimizedProgramBytes(const Module& module, const Program& program);

// Returns the assignment to devices with these ids, by replica, then partition.
xla::DeviceAssignmentProto AssignmentProto(const CompileOptions& options, absl::Span<const int> ids);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_EXECUTION_OPTIMIZED_PROGRAM_H_

// SPDX-License-Identifier: Apache-2.0
// A module as an HloProto with the buffers of its memory plan, for XProf's graph viewer, memory viewer and op profile.
// Large constants have no values.
#ifndef HLOKIT_SIMULATOR_EXPORT_HLO_PROTO_H_
#define HLOKIT_SIMULATOR_EXPORT_HLO_PROTO_H_

#include <cstdint>
#include <string>

#include "simulator/program/kernel_plan.h"
#include "simulator/report/report.h"

namespace hlokit::tpu {

// Returns the serialized message. A scheduled module has the sequences of all computations that are no fusions. Buffers
// in HBM (color 0): one allocation for each parameter and constant, and one for all temporaries and results, with a
// heap trace: results take memory from the time at which they are computed, so the allocation is not `maybe_live_out`,
// which readers count from the beginning. Buffers in vector memory (color 1): one allocation for the arrays of the
// entry computation, with its trace.
std::string HloProtoBytes(const ReportInput& input, const KernelPlan& plan, int64_t program_id);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_HLO_PROTO_H_

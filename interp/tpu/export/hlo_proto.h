// SPDX-License-Identifier: Apache-2.0
// A module as an HloProto, with the buffers that its memory plan makes: what the graph viewer, the memory viewer and
// the op profile of XProf read. Literals, windows and dimension numbers are left out; the viewers show names, shapes,
// operands, calls and metadata.
#ifndef HLOKIT_INTERP_TPU_EXPORT_HLO_PROTO_H_
#define HLOKIT_INTERP_TPU_EXPORT_HLO_PROTO_H_

#include <cstdint>
#include <string>

#include "interp/tpu/program/kernel_plan.h"
#include "interp/tpu/report/report.h"

namespace hlokit::tpu {

// The serialized message. The buffers of HBM (color 0): one allocation for each parameter and constant, one for all
// that lives in between, with a trace of its heap; of vector memory (color 1): one for the arrays that the entry
// computation keeps there, with its trace.
std::string HloProtoBytes(const ReportInput& input, const KernelPlan& plan, int64_t program_id);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_EXPORT_HLO_PROTO_H_

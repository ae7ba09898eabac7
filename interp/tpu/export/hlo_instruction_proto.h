// SPDX-License-Identifier: Apache-2.0
// Instructions and their attributes as the messages of hlo.proto.
#ifndef HLOKIT_INTERP_TPU_EXPORT_HLO_INSTRUCTION_PROTO_H_
#define HLOKIT_INTERP_TPU_EXPORT_HLO_INSTRUCTION_PROTO_H_

#include <cstdint>

#include "interp/tpu/export/hlo.pb.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

// Messages of profiles keep ids apart from 0, which is no id.
inline int64_t IdOf(InstructionId id) { return static_cast<int64_t>(id.value) + 1; }
inline int64_t IdOf(ComputationId id) { return static_cast<int64_t>(id.value) + 1; }

// Constants of more elements than this are written without their values: no viewer shows them.
inline constexpr int64_t kMaxLiteralElements = 256;

// What hlo.proto has no field for, and where values came from (origin), is left out.
void WriteInstruction(Instruction instruction, xla::HloInstructionProto* out);

void WriteFrontendAttributes(const Context& context, ListId attributes, xla::FrontendAttributes* out);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_EXPORT_HLO_INSTRUCTION_PROTO_H_

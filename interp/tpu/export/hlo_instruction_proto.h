// SPDX-License-Identifier: Apache-2.0
// Instructions and their attributes as the messages of hlo.proto.
#ifndef HLOKIT_INTERP_TPU_EXPORT_HLO_INSTRUCTION_PROTO_H_
#define HLOKIT_INTERP_TPU_EXPORT_HLO_INSTRUCTION_PROTO_H_

#include <cstdint>

#include "interp/tpu/export/hlo.pb.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

// Returns the id in messages of profiles, where 0 means no id.
inline int64_t IdOf(InstructionId id) { return static_cast<int64_t>(id.value) + 1; }
inline int64_t IdOf(ComputationId id) { return static_cast<int64_t>(id.value) + 1; }

// Constants with more elements are written without values; no viewer shows them.
inline constexpr int64_t kMaxLiteralElements = 256;

// Writes an instruction without the attributes that hlo.proto has no field for and without original_value.
void WriteInstruction(Instruction instruction, xla::HloInstructionProto* out);

void WriteFrontendAttributes(const Context& context, ListId attributes, xla::FrontendAttributes* out);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_EXPORT_HLO_INSTRUCTION_PROTO_H_

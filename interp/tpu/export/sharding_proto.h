// SPDX-License-Identifier: Apache-2.0
// Shardings and groups of devices as the messages of xla_data.proto.
#ifndef HLOKIT_INTERP_TPU_EXPORT_SHARDING_PROTO_H_
#define HLOKIT_INTERP_TPU_EXPORT_SHARDING_PROTO_H_

#include "interp/tpu/export/hlo.pb.h"
#include "ir/core/ids.h"
#include "ir/graph/context.h"

namespace hlokit::tpu {

// As Attr::kSharding holds it.
void WriteSharding(const Context& context, ListId sharding, xla::OpSharding* out);
// As Attr::kReplicaGroups holds them; iotas stay iotas, axes of a mesh are written as groups.
void WriteReplicaGroups(const Context& context, ListId groups, xla::HloInstructionProto* out);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_EXPORT_SHARDING_PROTO_H_

// SPDX-License-Identifier: Apache-2.0
// Shardings and device groups as the messages of xla_data.proto.
#ifndef HLOKIT_INTERP_TPU_EXPORT_SHARDING_PROTO_H_
#define HLOKIT_INTERP_TPU_EXPORT_SHARDING_PROTO_H_

#include "interp/tpu/export/hlo.pb.h"
#include "ir/core/ids.h"
#include "ir/graph/context.h"

namespace hlokit::tpu {

// Writes a sharding. `sharding`: value of Attr::kSharding.
void WriteSharding(const Context& context, ListId sharding, xla::OpSharding* out);
// Writes replica groups. `groups`: value of Attr::kReplicaGroups. Iotas stay iotas; mesh axes become groups.
void WriteReplicaGroups(const Context& context, ListId groups, xla::HloInstructionProto* out);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_EXPORT_SHARDING_PROTO_H_

// SPDX-License-Identifier: Apache-2.0
// Shardings and device groups as XLA's OpSharding, CollectiveDeviceListProto and the newer forms.
#ifndef HLOKIT_PARSER_PROTO_SHARDING_PROTO_H_
#define HLOKIT_PARSER_PROTO_SHARDING_PROTO_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/core/ids.h"
#include "ir/graph/context.h"
#include "parser/proto/hlo.pb.h"
#include "parser/proto/xla_data.pb.h"

namespace hlokit {

// Metadata of the leaves of a sharding, which the caller reads and writes.
using WriteMetadataFn = std::function<void(MetadataId, xla::OpMetadata*)>;
using ReadMetadataFn = std::function<MetadataId(const xla::OpMetadata&)>;

// Writes a value of Attr::kSharding. Returns ResourceExhausted if a tuple has too many leaves for a message.
absl::Status WriteSharding(const Context& context, ListId sharding, const WriteMetadataFn& write_metadata,
                           xla::OpSharding* out);
// Reads a sharding into its canonical form, as the parser of HLO text does.
absl::StatusOr<ListId> ReadSharding(const xla::OpSharding& proto, const ReadMetadataFn& read_metadata,
                                    Context* context);

// Writes a value of Attr::kReplicaGroups into the field of its form.
void WriteReplicaGroups(const Context& context, ListId groups, xla::HloInstructionProto* out);
// Reads the groups of an instruction, also of the forms of older files.
absl::StatusOr<ListId> ReadReplicaGroups(const xla::HloInstructionProto& proto, Context* context);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_SHARDING_PROTO_H_

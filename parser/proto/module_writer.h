// SPDX-License-Identifier: Apache-2.0
// Module -> XLA's HloModuleProto, as XLA writes it.
#ifndef HLOKIT_PARSER_PROTO_MODULE_WRITER_H_
#define HLOKIT_PARSER_PROTO_MODULE_WRITER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ir/graph/module.h"
#include "parser/proto/hlo.pb.h"
#include "parser/proto/instruction_writer.h"
#include "parser/proto/kept_fields.h"
#include "parser/proto/module_reader.h"

namespace hlokit {

struct ProtoWriteOptions {
  int64_t max_literal_elements = INT64_MAX;  // constants with more are written without a value
  const KeptFields* kept = nullptr;          // of the file that the module was read from
};

// Returns the numbers that WriteModuleProto gives computations and instructions.
ProtoIds ProtoIdsOf(const Module& module, const KeptFields* kept = nullptr);

// Returns ResourceExhausted if a part is too large for a message.
absl::Status WriteModuleProto(const Module& module, const ProtoWriteOptions& options, xla::HloModuleProto* out);

// Returns what writing `module`, which was read from `*proto`, would not give back. The message is as before when the
// function returns.
absl::StatusOr<KeptFields> FindKeptFields(const Module& module, const ModuleReadMap& map, xla::HloModuleProto* proto);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_MODULE_WRITER_H_

// SPDX-License-Identifier: Apache-2.0
// The header of a module as the fields of XLA's HloModuleProto and HloModuleConfigProto.
#ifndef HLOKIT_PARSER_PROTO_HEADER_PROTO_H_
#define HLOKIT_PARSER_PROTO_HEADER_PROTO_H_

#include "absl/status/status.h"
#include "ir/graph/module.h"
#include "parser/proto/hlo.pb.h"
#include "parser/proto/shape_proto.h"
#include "parser/proto/xla.pb.h"
#include "parser/text/parse_options.h"

namespace hlokit {

// Sets the header except its name, its stack frames and whether the module is scheduled. Requires: all computations
// are in the module. `config` may be null.
absl::Status ReadHeaderProto(const xla::HloModuleProto& proto, const xla::HloModuleConfigProto* config,
                             const ParseOptions& options, Module* module);

// Writes the header except names, computations, and schedules.
absl::Status WriteHeaderProto(const Module& module, ShapeWriter* shapes, xla::HloModuleProto* out);

// Returns true if the header has attributes that only a HloModuleConfigProto holds.
bool NeedsConfig(const ModuleHeader& header);
// Sets these attributes and the layout of the entry, which XLA requires, and leaves the other fields as they are.
absl::Status WriteConfigProto(const Module& module, xla::HloModuleConfigProto* out);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_HEADER_PROTO_H_

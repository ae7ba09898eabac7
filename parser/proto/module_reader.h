// SPDX-License-Identifier: Apache-2.0
// XLA's HloModuleProto -> Module. Reads all that XLA's reader accepts: instructions numbered through the module or in
// each computation, in any order, and the fields of older files. Time and memory are linear in the message.
#ifndef HLOKIT_PARSER_PROTO_MODULE_READER_H_
#define HLOKIT_PARSER_PROTO_MODULE_READER_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/graph/context.h"
#include "ir/graph/module.h"
#include "parser/proto/hlo.pb.h"
#include "parser/proto/xla.pb.h"
#include "parser/text/parse_options.h"

namespace hlokit {

// Where the parts of a message are in the module that was read from it.
struct ModuleReadMap {
  std::vector<ComputationId> computations;               // in the order of the message
  std::vector<std::vector<InstructionId>> instructions;  // of each, in the order of the message
  std::vector<int32_t> frame_ids;                        // by stack frame of the module, from 1: that of the message
};

// Returns null after errors, which are in the sink, without locations: they name the instruction. `config`: has further
// attributes of the header; may be null. `map`: see above; may be null.
std::unique_ptr<Module> ReadModuleProto(const xla::HloModuleProto& proto, const xla::HloModuleConfigProto* config,
                                        const ParseOptions& options, DiagnosticSink* sink,
                                        std::shared_ptr<Context> context = nullptr, ModuleReadMap* map = nullptr);

// The same from the bytes of a message, which may have more than the 2 GiB that protobuf reads at once, though no
// instruction may; in less time and memory.
std::unique_ptr<Module> ReadModuleBytes(std::string_view bytes, const xla::HloModuleConfigProto* config,
                                        const ParseOptions& options, DiagnosticSink* sink,
                                        std::shared_ptr<Context> context = nullptr);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_MODULE_READER_H_

// SPDX-License-Identifier: Apache-2.0
// Attributes of an instruction from the fields of XLA's HloInstructionProto.
#ifndef HLOKIT_PARSER_PROTO_ATTRIBUTE_READER_H_
#define HLOKIT_PARSER_PROTO_ATTRIBUTE_READER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "parser/proto/hlo.pb.h"
#include "parser/proto/sharding_proto.h"
#include "parser/text/byte_limit.h"

namespace hlokit {

class AttributeReader {
 public:
  // The parts of the module that attributes refer to.
  struct Scope {
    const xla::HloModuleProto* proto = nullptr;
    std::function<absl::StatusOr<ComputationId>(int64_t)> computation;  // by the number in the message
    ReadMetadataFn metadata;
    ByteLimit* literal_bytes = nullptr;
  };

  AttributeReader(Module* module, Scope scope) : module_(*module), scope_(std::move(scope)) {}

  // Appends the attributes of an `opcode` except its metadata and control predecessors; fields that it does not have
  // are not read. Those of older files are read as the ones of today.
  absl::Status Read(const xla::HloInstructionProto& proto, Opcode opcode, absl::Span<const InstructionId> operands,
                    std::vector<AttrValue>* attrs);

 private:
  using Payload = absl::StatusOr<std::optional<uint32_t>>;

  // What an instruction is read from.
  struct Source {
    const xla::HloInstructionProto& proto;
    Opcode opcode;
    absl::Span<const InstructionId> operands;
  };

  // Each returns nullopt if the instruction does not have the attribute.
  Payload ReadOne(const Source& in, Attr attr);
#define PROTO_CUSTOM(Name) Payload Read##Name(const Source& in);
#include "parser/proto/attribute_fields.def"
  Payload ReadCallee(const Source& in, Attr attr);
  Payload ReadText(const Source& in, Attr attr);

  static Payload Absent() { return std::optional<uint32_t>(); }
  Payload Callee(const xla::HloInstructionProto& proto, int index);
  Payload Callees(const xla::HloInstructionProto& proto);
  Payload Enum(Attr attr, int number);
  Payload EnumText(Attr attr, const std::string& text);
  Payload Int(int64_t value) { return std::optional<uint32_t>(context().EncodeInt64(value)); }
  Payload String(const std::string& s) { return std::optional<uint32_t>(context().strings.Intern(s).value); }
  Payload List(absl::Span<const int64_t> list) { return std::optional<uint32_t>(module_.ListPayload(list)); }
  Payload ShardingOf(const xla::OpSharding& proto);
  // The shape of the first operand; invalid if there is none.
  Shape FirstOperand(const Source& in) const;
  Context& context() { return module_.context(); }

  Module& module_;
  Scope scope_;
};

// The opcode of a name in a message; nullopt if it is unknown. In older files each direction of a comparison is an
// opcode: *direction is then that, and empty otherwise.
std::optional<Opcode> ProtoOpcode(const std::string& name, std::string_view* direction);

// The bytes of `backend_config`, wherever the file has them. Null: none.
const std::string* BackendConfigOf(const xla::HloInstructionProto& proto, const xla::HloModuleProto& module);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_ATTRIBUTE_READER_H_

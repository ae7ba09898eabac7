// SPDX-License-Identifier: Apache-2.0
// Which of XLA's messages a file holds, and in which form: decided by what is in it, whatever its name.
#ifndef HLOKIT_PARSER_PROTO_PROTO_FORM_H_
#define HLOKIT_PARSER_PROTO_PROTO_FORM_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace hlokit {

// Messages with a module.
enum class ProtoMessage : uint8_t { kModule, kHlo, kSnapshot, kUnoptimizedSnapshot, kModuleWithConfig };
inline constexpr std::string_view kProtoMessageNames[] = {"HloModuleProto", "HloProto", "HloSnapshot",
                                                          "HloUnoptimizedSnapshot", "HloModuleProtoWithConfig"};
inline std::string_view ToString(ProtoMessage message) { return kProtoMessageNames[static_cast<size_t>(message)]; }

enum class ProtoEncoding : uint8_t {
  kBinary,
  kText,           // text format
  kJson,           // protobuf's JSON mapping
  kWithArguments,  // an unoptimized snapshot, whose length comes before it and whose arguments come after it
};

struct ProtoForm {
  ProtoMessage message = ProtoMessage::kModule;
  ProtoEncoding encoding = ProtoEncoding::kBinary;
};

// Returns nullopt if `bytes` hold none of these messages. Binary messages are told apart by their structure: the module
// has a computation with an instruction whose opcode is a word. Texts are told apart by the names of their fields.
std::optional<ProtoForm> DetectProto(std::string_view bytes);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_PROTO_FORM_H_

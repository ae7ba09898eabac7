// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/proto_file.h"

#include <algorithm>
#include <utility>

#include "ir/core/str_cat.h"
#include "parser/proto/header_proto.h"
#include "parser/proto/literal_proto.h"
#include "parser/proto/module_reader.h"
#include "parser/proto/module_writer.h"
#include "parser/proto/serialize.h"
#include "parser/proto/wire_format.h"

namespace hlokit {
namespace {

google::protobuf::Message* NewIn(google::protobuf::Arena* arena, ProtoMessage message) {
  using google::protobuf::Arena;
  switch (message) {
    case ProtoMessage::kModule:
      return Arena::CreateMessage<xla::HloModuleProto>(arena);
    case ProtoMessage::kHlo:
      return Arena::CreateMessage<xla::HloProto>(arena);
    case ProtoMessage::kSnapshot:
      return Arena::CreateMessage<xla::HloSnapshot>(arena);
    case ProtoMessage::kUnoptimizedSnapshot:
      return Arena::CreateMessage<xla::HloUnoptimizedSnapshot>(arena);
    case ProtoMessage::kModuleWithConfig:
      return Arena::CreateMessage<xla::HloModuleProtoWithConfig>(arena);
  }
  return nullptr;
}

xla::HloModuleProto* ModuleIn(ProtoMessage kind, google::protobuf::Message* message) {
  switch (kind) {
    case ProtoMessage::kModule:
      return static_cast<xla::HloModuleProto*>(message);
    case ProtoMessage::kHlo:
      return static_cast<xla::HloProto*>(message)->mutable_hlo_module();
    case ProtoMessage::kSnapshot:
      return static_cast<xla::HloSnapshot*>(message)->mutable_hlo()->mutable_hlo_module();
    case ProtoMessage::kUnoptimizedSnapshot:
      return static_cast<xla::HloUnoptimizedSnapshot*>(message)->mutable_hlo_module();
    case ProtoMessage::kModuleWithConfig:
      return static_cast<xla::HloModuleProtoWithConfig*>(message)->mutable_hlo_module();
  }
  return nullptr;
}

// Returns the offset in `text` of a line and column, both from 0; tabs count as in protobuf, up to the next eighth.
uint32_t OffsetOf(std::string_view text, int line, int column) {
  size_t at = 0;
  for (; line > 0 && at < text.size(); --line) at = std::min(text.find('\n', at), text.size() - 1) + 1;
  for (int reached = 0; reached < column && at < text.size() && text[at] != '\n'; ++at) {
    reached = text[at] == '\t' ? (reached / 8 + 1) * 8 : reached + 1;
  }
  return static_cast<uint32_t>(at);
}

template <typename T>
const T* As(const google::protobuf::Message* message) {
  return static_cast<const T*>(message);
}

absl::StatusOr<std::vector<Literal>> ReadLiterals(const google::protobuf::RepeatedPtrField<xla::LiteralProto>& protos,
                                                  Context* context, int64_t* bytes_left) {
  std::vector<Literal> values;
  for (const xla::LiteralProto& proto : protos) {
    absl::StatusOr<Literal> value = ReadLiteral(proto, context, bytes_left);
    if (!value.ok()) {
      return absl::Status(value.status().code(),
                          StrCat("argument ", values.size(), ": ", std::string(value.status().message())));
    }
    values.push_back(*std::move(value));
  }
  return values;
}

}  // namespace

ProtoFile::ProtoFile(ProtoForm form) : form_(form), message_(NewIn(&arena_, form.message)) {}

std::unique_ptr<ProtoFile> ProtoFile::Read(const SourceBuffer& source, std::string_view text, ProtoForm form,
                                           DiagnosticSink* sink) {
  std::unique_ptr<ProtoFile> file(new ProtoFile(form));
  if (form.encoding == ProtoEncoding::kWithArguments) {
    uint64_t length = 0;
    if (!ReadVarint(&text, &length) || length > text.size()) {
      sink->Error(DiagnosticKind::kUnexpectedToken, {}, "expected the length of an HloUnoptimizedSnapshot");
      return nullptr;
    }
    file->raw_arguments_ = text.substr(length);
    text = text.substr(0, length);
  }
  int line = -1, column = -1;
  const absl::Status status = ParseMessage(text, form.encoding, file->message_, &line, &column);
  if (status.ok()) return file;
  SourceRange range;
  const size_t begin = static_cast<size_t>(text.data() - source.text().data());
  if (line >= 0 && source.text().size() < SourceRange::kNoOffset) {
    range = {static_cast<uint32_t>(begin) + OffsetOf(text, line, column), 1};
  }
  const bool large = absl::IsResourceExhausted(status);
  sink->Error(large ? DiagnosticKind::kTooLarge : DiagnosticKind::kUnexpectedToken, range,
              StrCat(large ? "" : StrCat(ToString(form.message), ": "), std::string(status.message())));
  return nullptr;
}

xla::HloModuleProto* ProtoFile::module() { return ModuleIn(form_.message, message_); }

const xla::HloModuleConfigProto* ProtoFile::config() const {
  if (form_.message != ProtoMessage::kModuleWithConfig) return nullptr;
  const auto* with_config = As<xla::HloModuleProtoWithConfig>(message_);
  return with_config->has_config() ? &with_config->config() : nullptr;
}

const xla::BufferAssignmentProto* ProtoFile::buffer_assignment() const {
  const xla::HloProto* hlo = form_.message == ProtoMessage::kHlo        ? As<xla::HloProto>(message_)
                             : form_.message == ProtoMessage::kSnapshot ? &As<xla::HloSnapshot>(message_)->hlo()
                                                                        : nullptr;
  return hlo != nullptr && hlo->has_buffer_assignment() ? &hlo->buffer_assignment() : nullptr;
}

const xla::HloSnapshot* ProtoFile::snapshot() const {
  return form_.message == ProtoMessage::kSnapshot ? As<xla::HloSnapshot>(message_) : nullptr;
}

std::unique_ptr<Module> ProtoFile::ReadModule(const ParseOptions& options, DiagnosticSink* sink,
                                              std::shared_ptr<Context> context) {
  return ReadModuleProto(*module(), config(), options, sink, std::move(context));
}

std::unique_ptr<Module> ProtoFile::ReadModule(const ParseOptions& options, DiagnosticSink* sink, KeptFields* kept) {
  ModuleReadMap map;
  std::unique_ptr<Module> read = ReadModuleProto(*module(), config(), options, sink, nullptr, &map);
  if (read == nullptr) return nullptr;
  absl::StatusOr<KeptFields> found = FindKeptFields(*read, map, module());
  if (!found.ok()) {
    sink->Error(DiagnosticKind::kTooLarge, {}, std::string(found.status().message()));
    return nullptr;
  }
  *kept = *std::move(found);
  return read;
}

int ProtoFile::argument_lists() const {
  if (form_.message == ProtoMessage::kSnapshot) return 1;
  if (form_.message != ProtoMessage::kUnoptimizedSnapshot) return 0;
  return As<xla::HloUnoptimizedSnapshot>(message_)->partitions_size();
}

absl::StatusOr<std::vector<Literal>> ProtoFile::ReadArguments(int list, Context* context, int64_t max_bytes) const {
  if (form_.message == ProtoMessage::kSnapshot) return ReadLiterals(snapshot()->arguments(), context, &max_bytes);
  const auto* unoptimized = As<xla::HloUnoptimizedSnapshot>(message_);
  const xla::HloInputs& inputs = unoptimized->partitions(list);
  if (inputs.arguments_descriptors_size() == 0) return ReadLiterals(inputs.arguments(), context, &max_bytes);
  const auto cut = [] { return absl::InvalidArgumentError("the file ends before its arguments do"); };
  uint64_t offset = 0;
  for (int k = 0; k < list; ++k) {
    for (const xla::HloInputs::LiteralDescriptor& d : unoptimized->partitions(k).arguments_descriptors()) {
      if (d.argument_size_bytes() > raw_arguments_.size() - offset) return cut();
      offset += d.argument_size_bytes();
    }
  }
  std::vector<Literal> values;
  for (const xla::HloInputs::LiteralDescriptor& d : inputs.arguments_descriptors()) {
    if (d.argument_size_bytes() > raw_arguments_.size() - offset) return cut();
    absl::StatusOr<Literal> value =
        ReadRawLiteral(raw_arguments_.substr(offset, d.argument_size_bytes()), context, &max_bytes);
    if (!value.ok()) return value.status();
    values.push_back(*std::move(value));
    offset += d.argument_size_bytes();
  }
  return values;
}

bool ProtoFile::has_result() const { return snapshot() != nullptr && snapshot()->has_result(); }

absl::StatusOr<Literal> ProtoFile::ReadResult(Context* context, int64_t max_bytes) const {
  return ReadLiteral(snapshot()->result(), context, &max_bytes);
}

absl::Status ProtoFile::SetModule(const Module& from, const KeptFields* kept) {
  ProtoWriteOptions options;
  options.kept = kept;
  xla::HloModuleProto* to = module();
  to->Clear();
  if (absl::Status status = WriteModuleProto(from, options, to); !status.ok()) return status;
  if (form_.message == ProtoMessage::kModuleWithConfig) {
    WriteConfigProto(from, static_cast<xla::HloModuleProtoWithConfig*>(message_)->mutable_config());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ProtoFile::Write(ProtoEncoding encoding) const {
  absl::StatusOr<std::string> bytes = FormatMessage(*message_, encoding);
  if (!bytes.ok() || encoding != ProtoEncoding::kWithArguments) return bytes;
  std::string out;
  for (uint64_t length = bytes->size();; length >>= 7) {
    out.push_back(static_cast<char>((length & 0x7f) | (length > 0x7f ? 0x80 : 0)));
    if (length <= 0x7f) break;
  }
  out += *bytes;
  out += raw_arguments_;
  return out;
}

std::unique_ptr<Module> ParseProtoModulePart(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                             ProtoForm form, const ParseOptions& options, DiagnosticSink* sink,
                                             std::shared_ptr<Context> context) {
  const std::unique_ptr<ProtoFile> file = ProtoFile::Read(*source, text, form, sink);
  return file == nullptr ? nullptr : file->ReadModule(options, sink, std::move(context));
}

absl::StatusOr<std::string> WriteModuleAs(const Module& module, ProtoForm form, const KeptFields* kept) {
  google::protobuf::Arena arena;
  ProtoWriteOptions options;
  options.kept = kept;
  google::protobuf::Message* message = NewIn(&arena, form.message);
  if (form.message == ProtoMessage::kModuleWithConfig) {
    WriteConfigProto(module, static_cast<xla::HloModuleProtoWithConfig*>(message)->mutable_config());
  }
  xla::HloModuleProto* to = ModuleIn(form.message, message);
  if (absl::Status status = WriteModuleProto(module, options, to); !status.ok()) return status;
  return FormatMessage(*message, form.encoding);
}

}  // namespace hlokit

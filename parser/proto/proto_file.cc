// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/proto_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/core/hashing.h"
#include "ir/core/str_cat.h"
#include "ir/types/sized_shape.h"
#include "parser/proto/header_proto.h"
#include "parser/proto/literal_proto.h"
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

uint64_t HashOf(const google::protobuf::Message& message) {
  const std::string bytes = SerializedMessage(message);
  return HashBytes(bytes.data(), bytes.size());
}

// Returns the bytes of the module in a binary message, and its configuration; nullopt where they are not in one piece.
std::optional<std::string_view> ModuleBytes(std::string_view text, ProtoForm form, xla::HloModuleConfigProto* config) {
  if (form.encoding != ProtoEncoding::kBinary) return std::nullopt;
  const int depth = form.message == ProtoMessage::kModule ? 0 : form.message == ProtoMessage::kSnapshot ? 2 : 1;
  for (int level = 0; level < depth; ++level) {
    std::optional<std::string_view> inner;
    WireReader in(text);
    WireField field;
    while (in.Next(&field)) {
      if (field.kind != WireField::kBytes) continue;
      if (field.number == 1) {
        if (inner) return std::nullopt;  // two parts, which are merged
        inner = field.bytes;
      } else if (field.number == 2 && form.message == ProtoMessage::kModuleWithConfig) {
        const auto size = static_cast<int>(std::min<size_t>(field.bytes.size(), INT32_MAX));
        if (!config->MergeFromString(std::string(field.bytes.substr(0, static_cast<size_t>(size)))))
          return std::nullopt;
      }
    }
    if (!in.ok() || !inner) return std::nullopt;
    text = *inner;
  }
  return text;
}

template <typename T>
const T* As(const google::protobuf::Message* message) {
  return static_cast<const T*>(message);
}

// Reads a value whose dynamic arrays have their sizes (sized_shape.h).
absl::StatusOr<Literal> ReadSizedLiteral(const xla::LiteralProto& proto, Context* context, ByteLimit* limit) {
  absl::StatusOr<Literal> value = ReadLiteral(proto, context, limit);
  if (!value.ok() || !value->shape().has_dynamic_dims()) return value;
  std::vector<std::pair<const xla::LiteralProto*, Literal*>> open = {{&proto, &*value}};
  while (!open.empty()) {
    const auto [from, to] = open.back();
    open.pop_back();
    const Shape shape = to->shape();
    for (size_t k = 0; k < to->elements().size(); ++k) {
      open.emplace_back(&from->tuple_literals(static_cast<int>(k)), &to->elements()[k]);
    }
    if (!shape.IsArray() || !shape.has_dynamic_dims() || to->elided() || from->dynamic_sizes_size() == 0) continue;
    const std::vector<int64_t> dims(from->dynamic_sizes().begin(), from->dynamic_sizes().end());
    if (!FitsWithin(dims, shape) || std::any_of(dims.begin(), dims.end(), [](int64_t size) { return size < 0; })) {
      return absl::InvalidArgumentError(StrCat("literal: dynamic_sizes are not sizes of ", ToString(shape)));
    }
    Literal sized = Literal::Zeros(SizedShape(&context->shapes, shape, dims));
    CopyCommonElements(*to, &sized);
    *to = std::move(sized);
  }
  return value;
}

absl::StatusOr<std::vector<Literal>> ReadLiterals(const google::protobuf::RepeatedPtrField<xla::LiteralProto>& protos,
                                                  Context* context, ByteLimit* limit) {
  std::vector<Literal> values;
  for (const xla::LiteralProto& proto : protos) {
    absl::StatusOr<Literal> value = ReadSizedLiteral(proto, context, limit);
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
                                              std::shared_ptr<Context> context, ModuleReadMap* map) {
  return ReadModuleProto(*module(), config(), options, sink, std::move(context), map);
}

int ProtoFile::argument_lists() const {
  if (form_.message == ProtoMessage::kSnapshot) return 1;
  if (form_.message != ProtoMessage::kUnoptimizedSnapshot) return 0;
  return As<xla::HloUnoptimizedSnapshot>(message_)->partitions_size();
}

absl::StatusOr<std::vector<Literal>> ProtoFile::ReadArguments(int list, Context* context, ByteLimit* limit) const {
  if (form_.message == ProtoMessage::kSnapshot) return ReadLiterals(snapshot()->arguments(), context, limit);
  return ReadLiterals(As<xla::HloUnoptimizedSnapshot>(message_)->partitions(list).arguments(), context, limit);
}

bool ProtoFile::has_result() const { return snapshot() != nullptr && snapshot()->has_result(); }

absl::StatusOr<Literal> ProtoFile::ReadResult(Context* context, ByteLimit* limit) const {
  return ReadSizedLiteral(snapshot()->result(), context, limit);
}

std::unique_ptr<Module> ParseProtoModule(const SourceBuffer& source, std::string_view text, ProtoForm form,
                                         const ParseOptions& options, DiagnosticSink* sink,
                                         std::shared_ptr<Context> context,
                                         std::unique_ptr<const ProtoFileParts>* parts) {
  xla::HloModuleConfigProto config;
  if (const std::optional<std::string_view> bytes = ModuleBytes(text, form, &config); bytes && parts == nullptr) {
    const bool with_config = form.message == ProtoMessage::kModuleWithConfig;
    return ReadModuleBytes(*bytes, with_config ? &config : nullptr, options, sink, std::move(context));
  }
  std::unique_ptr<ProtoFile> file = ProtoFile::Read(source, text, form, sink);
  if (file == nullptr) return nullptr;
  if (parts == nullptr) return file->ReadModule(options, sink, std::move(context));
  ModuleReadMap map;
  std::unique_ptr<Module> module = file->ReadModule(options, sink, std::move(context), &map);
  if (module == nullptr) return nullptr;
  absl::StatusOr<KeptFields> kept = FindKeptFields(*module, map, file->module());
  if (!kept.ok()) {
    sink->Error(DiagnosticKind::kTooLarge, {}, std::string(kept.status().message()));
    return nullptr;
  }
  auto found = std::make_unique<ProtoFileParts>();
  found->fields = *std::move(kept);
  if (file->buffer_assignment() != nullptr) found->module_hash = HashOf(*file->module());
  file->module()->Clear();
  found->file = std::move(file);
  *parts = std::move(found);
  return module;
}

ProtoMessage MessageFor(const Module& module, const ProtoFileParts* parts) {
  if (parts != nullptr) return parts->file->form().message;
  return NeedsConfig(module.header()) ? ProtoMessage::kModuleWithConfig : ProtoMessage::kHlo;
}

absl::StatusOr<std::string> WriteModuleAs(const Module& module, ProtoForm form, const ProtoFileParts* parts) {
  google::protobuf::Arena arena;
  google::protobuf::Message* message = NewIn(&arena, form.message);
  const bool same_message = parts != nullptr && parts->file->form().message == form.message;
  if (same_message) message->CopyFrom(*parts->file->message());
  if (form.message == ProtoMessage::kModuleWithConfig) {
    absl::Status status =
        WriteConfigProto(module, static_cast<xla::HloModuleProtoWithConfig*>(message)->mutable_config());
    if (!status.ok()) return status;
  }
  ProtoWriteOptions options;
  if (parts != nullptr) options.kept = &parts->fields;
  xla::HloModuleProto* to = ModuleIn(form.message, message);
  to->Clear();
  if (absl::Status status = WriteModuleProto(module, options, to); !status.ok()) return status;
  if (same_message && parts->file->buffer_assignment() != nullptr && HashOf(*to) != parts->module_hash) {
    xla::HloProto* hlo = form.message == ProtoMessage::kHlo ? static_cast<xla::HloProto*>(message)
                                                            : static_cast<xla::HloSnapshot*>(message)->mutable_hlo();
    hlo->clear_buffer_assignment();
  }
  return FormatMessage(*message, form.encoding);
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
// Any message as bytes, text and JSON.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver.h"
#include "google/protobuf/util/type_resolver_util.h"
#include "ir/core/str_cat.h"
#include "parser/proto/proto_file.h"
#include "parser/proto/serialize.h"
#include "parser/proto/unoptimized_snapshot.h"

namespace hlokit {
namespace {

constexpr size_t kMaxMessageBytes = INT32_MAX;

// Errors are returned; protobuf would print some on standard error as well.
[[maybe_unused]] const bool kSilent = [] {
  google::protobuf::SetLogHandler(nullptr);
  return true;
}();

absl::Status TooLarge(std::string_view what) {
  return absl::ResourceExhaustedError(StrCat(what, " of 2 GiB and more are not supported by protobuf"));
}

// Keeps the first error.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (found_) return;
    found_ = true;
    line_ = line;
    column_ = column;
    message_ = message;
  }
  int line() const { return line_; }
  int column() const { return column_; }
  const std::string& message() const { return message_; }

 private:
  bool found_ = false;
  int line_ = -1, column_ = -1;
  std::string message_;
};

}  // namespace

absl::Status ParseMessage(std::string_view text, ProtoEncoding encoding, google::protobuf::Message* message, int* line,
                          int* column) {
  if (encoding == ProtoEncoding::kWithArguments) {
    auto* snapshot = dynamic_cast<xla::HloUnoptimizedSnapshot*>(message);
    if (snapshot != nullptr) return ReadUnoptimizedSnapshot(text, snapshot);
    return absl::InvalidArgumentError(StrCat("no file has the arguments after a ", message->GetDescriptor()->name()));
  }
  if (text.size() >= kMaxMessageBytes) return TooLarge("messages");
  const int size = static_cast<int>(text.size());
  switch (encoding) {
    case ProtoEncoding::kBinary:
      if (message->ParseFromArray(text.data(), size)) return absl::OkStatus();
      return absl::InvalidArgumentError(
          StrCat("expected a serialized ", message->GetDescriptor()->name(), ", found something else"));
    case ProtoEncoding::kText: {
      FirstError error;
      google::protobuf::TextFormat::Parser parser;
      parser.RecordErrorsTo(&error);
      constexpr int kMaxNesting = 100;  // as for bytes
      parser.SetRecursionLimit(kMaxNesting);
      google::protobuf::io::ArrayInputStream in(text.data(), size);
      if (parser.Parse(&in, message)) {
        // Escapes in text can be any bytes; strings of messages are UTF-8.
        const bool plain = std::all_of(text.begin(), text.end(),
                                       [](char c) { return c != '\\' && static_cast<unsigned char>(c) < 0x80; });
        if (plain) return absl::OkStatus();
        const std::unique_ptr<google::protobuf::Message> check(message->New());
        if (check->ParseFromString(SerializedMessage(*message))) return absl::OkStatus();
        return absl::InvalidArgumentError("a string is not UTF-8");
      }
      if (line != nullptr) *line = error.line();
      if (column != nullptr) *column = error.column();
      return absl::InvalidArgumentError(error.message().empty() ? "malformed message" : error.message());
    }
    case ProtoEncoding::kJson: {
      google::protobuf::util::JsonParseOptions options;
      const auto status = google::protobuf::util::JsonStringToMessage({text.data(), text.size()}, message, options);
      if (status.ok()) return absl::OkStatus();
      const std::string what(status.message().data(), status.message().size());
      return absl::InvalidArgumentError(what.substr(0, what.find('\n')));
    }
    case ProtoEncoding::kWithArguments:
      break;
  }
  return absl::InternalError("unknown encoding");
}

absl::Status ParseAnyEncoding(std::string_view text, google::protobuf::Message* message) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] == '{') {
    if (ParseMessage(text, ProtoEncoding::kJson, message).ok()) return absl::OkStatus();
    message->Clear();
  }
  if (message->GetDescriptor() == xla::HloUnoptimizedSnapshot::descriptor()) {
    const std::optional<ProtoForm> form = DetectProto(text);
    if (form && form->encoding == ProtoEncoding::kWithArguments) return ParseMessage(text, form->encoding, message);
  }
  const bool is_text = std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x7f || (c < 0x20 && (c < '\t' || c > '\r'));
  });
  const ProtoEncoding first = is_text ? ProtoEncoding::kText : ProtoEncoding::kBinary;
  const absl::Status status = ParseMessage(text, first, message);
  if (status.ok()) return status;
  message->Clear();
  if (ParseMessage(text, is_text ? ProtoEncoding::kBinary : ProtoEncoding::kText, message).ok()) {
    return absl::OkStatus();
  }
  return status;
}

absl::StatusOr<std::string> FormatMessage(const google::protobuf::Message& message, ProtoEncoding encoding) {
  if (encoding == ProtoEncoding::kWithArguments) {
    const auto* snapshot = dynamic_cast<const xla::HloUnoptimizedSnapshot*>(&message);
    if (snapshot != nullptr) return WriteUnoptimizedSnapshot(*snapshot);
    return absl::InvalidArgumentError(StrCat("no file has the arguments after a ", message.GetDescriptor()->name()));
  }
  if (message.ByteSizeLong() >= kMaxMessageBytes) return TooLarge("messages");
  std::string out;
  switch (encoding) {
    case ProtoEncoding::kBinary:
      return SerializedMessage(message);
    case ProtoEncoding::kText:
      google::protobuf::TextFormat::PrintToString(message, &out);
      return out;
    case ProtoEncoding::kJson: {
      google::protobuf::util::JsonPrintOptions options;
      options.add_whitespace = true;
      // From bytes of ours, in which the entries of maps have an order.
      constexpr char kPrefix[] = "type.googleapis.com";
      const google::protobuf::Descriptor& type = *message.GetDescriptor();
      const std::unique_ptr<google::protobuf::util::TypeResolver> resolver(
          google::protobuf::util::NewTypeResolverForDescriptorPool(kPrefix, type.file()->pool()));
      const auto status = google::protobuf::util::BinaryToJsonString(
          resolver.get(), StrCat(kPrefix, "/", type.full_name()), SerializedMessage(message), &out, options);
      if (status.ok()) return out;
      return absl::InvalidArgumentError(std::string(status.message().data(), status.message().size()));
    }
    case ProtoEncoding::kWithArguments:
      break;
  }
  return absl::InternalError("unknown encoding");
}

std::unique_ptr<google::protobuf::Message> NewMessage(std::string_view name) {
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  // Without a use of their descriptors the linker may leave out files of messages.
  xla::HloProto::descriptor();
  xla::HloModuleProtoWithConfig::descriptor();
  const google::protobuf::Descriptor* descriptor = pool->FindMessageTypeByName(std::string(name));
  if (descriptor == nullptr) descriptor = pool->FindMessageTypeByName(StrCat("xla.", name));
  if (descriptor == nullptr) return nullptr;
  const google::protobuf::Message* prototype =
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor);
  return prototype == nullptr ? nullptr : std::unique_ptr<google::protobuf::Message>(prototype->New());
}

}  // namespace hlokit

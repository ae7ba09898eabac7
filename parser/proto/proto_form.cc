// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/proto_form.h"

#include <algorithm>
#include <string>
#include <vector>

#include "parser/proto/hlo.pb.h"
#include "parser/proto/wire_format.h"
#include "parser/proto/xla.pb.h"
#include "parser/text/scan.h"

namespace hlokit {
namespace {

// ---- binary ----

bool IsOpcodeWord(std::string_view s) {
  return !s.empty() && s.size() < 64 && std::all_of(s.begin(), s.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// Returns the first field of that number that is bytes.
std::optional<std::string_view> FirstBytes(std::string_view message, int number) {
  WireReader in(message);
  WireField field;
  while (in.Next(&field)) {
    if (field.number == number && field.kind == WireField::kBytes) return field.bytes;
  }
  return std::nullopt;
}

bool HoldsInstruction(std::string_view computation) {
  const std::optional<std::string_view> instruction = FirstBytes(computation, 2);
  if (!instruction) return false;
  const std::optional<std::string_view> opcode = FirstBytes(*instruction, 2);
  return opcode && IsOpcodeWord(*opcode);
}

// Looks at the fields of the message itself, and into its first computation.
bool IsModule(std::string_view message) {
  WireReader in(message);
  WireField field;
  bool found = false;
  while (in.Next(&field)) {
    if (field.number != 3) continue;
    if (field.kind != WireField::kBytes) return false;
    if (!found && !HoldsInstruction(field.bytes)) return false;
    found = true;
  }
  return in.ok() && found;
}

// A ShapeProto begins with its element type, a small number in field 2.
bool BeginsShape(std::string_view message) {
  WireReader in(message);
  WireField field;
  return in.Next(&field) && field.number == 2 && field.kind == WireField::kVarint && field.varint < 64;
}

// Tells a configuration, which begins with the shapes of the program, from the inputs of a partition, which begin with
// literals or with their sizes.
bool IsConfig(std::string_view message) {
  WireReader in(message);
  WireField field;
  bool others = false;
  while (in.Next(&field)) {
    if (field.number == 1 && field.kind == WireField::kBytes) {
      const std::optional<std::string_view> result = FirstBytes(field.bytes, 2);
      if (result && BeginsShape(*result)) return true;
    }
    others = others || field.number > 2 || field.kind != WireField::kBytes;
  }
  return in.ok() && others;
}

// Of a message whose field 1 is a module.
std::optional<ProtoMessage> MessageAroundModule(std::string_view message) {
  WireReader in(message);
  WireField field;
  int second = 0;
  bool version = false;
  std::string_view first_second;
  while (in.Next(&field)) {
    if (field.number == 2 && field.kind == WireField::kBytes && second++ == 0) first_second = field.bytes;
    version = version || (field.number == 3 && field.kind == WireField::kVarint);
  }
  if (!in.ok()) return std::nullopt;
  if (second == 0) return version ? ProtoMessage::kUnoptimizedSnapshot : ProtoMessage::kHlo;
  const bool config = second == 1 && !version && (first_second.empty() || IsConfig(first_second));
  return config ? ProtoMessage::kModuleWithConfig : ProtoMessage::kUnoptimizedSnapshot;
}

std::optional<ProtoMessage> BinaryMessage(std::string_view bytes) {
  constexpr char kFirstField = '\x0a';
  if (IsModule(bytes)) return ProtoMessage::kModule;
  if (!bytes.starts_with(kFirstField)) return std::nullopt;
  const std::optional<std::string_view> inner = FirstBytes(bytes, 1);
  if (!inner) return std::nullopt;
  if (IsModule(*inner)) return MessageAroundModule(bytes);
  const std::optional<std::string_view> module = FirstBytes(*inner, 1);
  if (module && IsModule(*module)) return ProtoMessage::kSnapshot;
  return std::nullopt;
}

std::optional<ProtoForm> BinaryForm(std::string_view bytes) {
  if (const std::optional<ProtoMessage> message = BinaryMessage(bytes)) {
    return ProtoForm{*message, ProtoEncoding::kBinary};
  }
  std::string_view rest = bytes;
  uint64_t length;
  if (!ReadVarint(&rest, &length) || length > rest.size() || length < 16) return std::nullopt;
  const std::optional<std::string_view> module = FirstBytes(rest.substr(0, length), 1);
  if (module && IsModule(*module)) return ProtoForm{ProtoMessage::kUnoptimizedSnapshot, ProtoEncoding::kWithArguments};
  return std::nullopt;
}

// ---- texts ----

const google::protobuf::Descriptor* DescriptorOf(ProtoMessage message) {
  switch (message) {
    case ProtoMessage::kModule:
      return xla::HloModuleProto::descriptor();
    case ProtoMessage::kHlo:
      return xla::HloProto::descriptor();
    case ProtoMessage::kSnapshot:
      return xla::HloSnapshot::descriptor();
    case ProtoMessage::kUnoptimizedSnapshot:
      return xla::HloUnoptimizedSnapshot::descriptor();
    case ProtoMessage::kModuleWithConfig:
      return xla::HloModuleProtoWithConfig::descriptor();
  }
  return nullptr;
}

// Returns the first message, in the order of XLA's loader, that has all these fields and one with a module.
std::optional<ProtoMessage> MessageWithFields(const std::vector<std::string>& names, bool json) {
  if (names.empty()) return std::nullopt;
  for (ProtoMessage message : {ProtoMessage::kSnapshot, ProtoMessage::kHlo, ProtoMessage::kModule,
                               ProtoMessage::kUnoptimizedSnapshot, ProtoMessage::kModuleWithConfig}) {
    const google::protobuf::Descriptor* descriptor = DescriptorOf(message);
    bool has_module = message == ProtoMessage::kModule;
    const bool all = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      const google::protobuf::FieldDescriptor* field = descriptor->FindFieldByName(name);
      if (field == nullptr && json) field = descriptor->FindFieldByCamelcaseName(name);
      has_module = has_module || (field != nullptr && field->number() == 1);
      return field != nullptr;
    });
    if (all && has_module) return message;
  }
  return std::nullopt;
}

// Skips a quoted string that starts at `p`.
const char* StringEnd(const char* p, const char* end) {
  const char quote = *p++;
  for (; p < end && *p != quote; ++p) {
    if (*p == '\\' && p + 1 < end) ++p;
  }
  return p < end ? p + 1 : end;
}

// Collects the names of the fields of the outermost message in text format; none if it does not look like one.
std::vector<std::string> TextFieldNames(std::string_view text) {
  std::vector<std::string> names;
  const char* p = text.data();
  const char* const end = p + text.size();
  int64_t depth = 0;
  bool value = false;  // after a colon
  while (p < end) {
    const char c = *p;
    if (c == '#') {
      while (p < end && *p != '\n') ++p;
    } else if (c == '"' || c == '\'') {
      if (depth == 0 && !value) return {};
      p = StringEnd(p, end);
      value = value && depth != 0;
    } else if (c == '{' || c == '<' || c == '[') {
      if (depth == 0 && names.empty()) return {};
      ++depth;
      ++p;
    } else if (c == '}' || c == '>' || c == ']') {
      if (--depth < 0) return {};
      if (depth == 0) value = false;
      ++p;
    } else if (c == ':') {
      if (depth == 0) value = true;
      ++p;
    } else if (depth == 0 && char_class::IsName(c)) {
      const char* begin = p;
      while (p < end && char_class::IsName(*p)) ++p;
      if (value) {
        value = false;
        continue;
      }
      const char* next = p;
      while (next < end && char_class::Is(*next, char_class::kWhitespace)) ++next;
      if (next == end || (*next != ':' && *next != '{' && *next != '<')) return {};
      std::string name(begin, p);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
      constexpr size_t kMaxFields = 64;
      if (names.size() > kMaxFields) return {};
    } else if (depth == 0 && !char_class::Is(c, char_class::kWhitespace) && c != ',' && c != ';') {
      return {};
    } else {
      ++p;
    }
  }
  return names;
}

// Collects the keys of the outermost object of a JSON text.
std::vector<std::string> JsonKeys(std::string_view text) {
  std::vector<std::string> keys;
  const char* p = text.data();
  const char* const end = p + text.size();
  int64_t depth = 0;
  bool key = false;
  for (; p < end; ++p) {
    const char c = *p;
    if (c == '"') {
      const char* after = StringEnd(p, end);
      if (depth == 1 && key) keys.emplace_back(p + 1, std::max(p + 1, after - 1));
      key = false;
      p = after - 1;
    } else if (c == '{' || c == '[') {
      ++depth;
      key = depth == 1;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 1) {
      key = true;
    }
  }
  return keys;
}

std::string_view SkipSpace(std::string_view text) {
  while (!text.empty() && char_class::Is(text.front(), char_class::kWhitespace)) text.remove_prefix(1);
  return text;
}

}  // namespace

std::optional<ProtoForm> DetectProto(std::string_view bytes) {
  const std::string_view text = SkipSpace(bytes);
  if (text.starts_with("HloModule")) return std::nullopt;
  if (std::optional<ProtoForm> form = BinaryForm(bytes)) return form;
  if (text.empty()) return std::nullopt;
  if (text.front() == '{') {
    if (SkipSpace(text.substr(1)).starts_with("\"format\"")) return std::nullopt;  // our own JSON
    const std::optional<ProtoMessage> message = MessageWithFields(JsonKeys(text), /*json=*/true);
    if (!message) return std::nullopt;
    return ProtoForm{*message, ProtoEncoding::kJson};
  }
  if (text.front() != '#' && !(text.front() >= 'a' && text.front() <= 'z')) return std::nullopt;
  const std::optional<ProtoMessage> message = MessageWithFields(TextFieldNames(text), /*json=*/false);
  if (!message) return std::nullopt;
  return ProtoForm{*message, ProtoEncoding::kText};
}

}  // namespace hlokit

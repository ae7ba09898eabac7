// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/metadata_parser.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/graph/metadata.h"

namespace hlokit {
namespace {

bool TakePrefix(const char** p, const char* end, std::string_view prefix) {
  if (static_cast<size_t>(end - *p) < prefix.size() || std::memcmp(*p, prefix.data(), prefix.size()) != 0) return false;
  *p += prefix.size();
  return true;
}

// Parses `{op_name="..." stack_frame_id=N}` or its first half, the form of most metadata. Returns false, with nothing
// consumed, for anything else.
bool ParseUsual(TextCursor& in, Context* context, MetadataId* id, StackFrameNumbering* frames) {
  in.SkipWhitespace();
  const char* p = in.cursor();
  const char* const end = in.end();
  if (!TakePrefix(&p, end, "{op_name=\"")) return false;
  const auto* close = static_cast<const char*>(std::memchr(p, '"', static_cast<size_t>(end - p)));
  if (close == nullptr || close == p) return false;
  const std::string_view name(p, static_cast<size_t>(close - p));
  if (std::memchr(name.data(), '\\', name.size()) != nullptr) return false;
  p = close + 1;
  int64_t frame = 0;
  if (TakePrefix(&p, end, " stack_frame_id=")) {
    const char* digits = p;
    while (*p >= '0' && *p <= '9' && p - digits < 9) frame = frame * 10 + (*p++ - '0');
    if (p == digits) return false;
  }
  if (*p != '}') return false;
  in.set_cursor(p + 1);
  Metadata metadata;
  metadata.op_name = context->strings.InternStable(name);
  metadata.stack_frame_id = frames != nullptr ? frames->Number(frame) : frame;
  *id = context->metadata.Intern(metadata);
  return true;
}

// The fields of Metadata by type.
struct Field {
  std::string_view name;
  StringId Metadata::*string = nullptr;
  int64_t Metadata::*number = nullptr;
  ListId Metadata::*list = nullptr;
  bool Metadata::*flag = nullptr;
};
constexpr Field kFields[] = {
    {"op_name", &Metadata::op_name},
    {"stack_frame_id", nullptr, &Metadata::stack_frame_id},
    {"source_file", &Metadata::source_file},
    {"source_line", nullptr, &Metadata::source_line},
    {"source_end_line", nullptr, &Metadata::source_end_line},
    {"source_column", nullptr, &Metadata::source_column},
    {"source_end_column", nullptr, &Metadata::source_end_column},
    {"op_type", &Metadata::op_type},
    {"scheduling_name", &Metadata::scheduling_name},
    {"deduplicated_name", &Metadata::deduplicated_name},
    {"profile_type", nullptr, nullptr, &Metadata::profile_types},
    {"metadata_payload", &Metadata::payload},
    {"preserve_layout", nullptr, nullptr, nullptr, &Metadata::preserve_layout},
};

bool ParseProfileTypes(TextCursor& in, Context* context, ListId* list) {
  constexpr int64_t kLast = 3;  // invalid, window, flag, integer
  std::vector<int64_t> types;
  if (!in.Expect('{', "before profile types")) return false;
  if (in.Peek() != '}') {
    do {
      const SourceRange range = in.Next();
      int64_t type;
      if (!in.Int(&type)) return false;
      if (type < 0 || type > kLast) {
        return in.Error(DiagnosticKind::kBadAttribute, range, StrCat("expected a profile type from 0 to ", kLast));
      }
      types.push_back(type);
    } while (in.TryConsume(','));
  }
  if (!types.empty()) *list = context->lists.Intern(types);
  return in.Expect('}', "after profile types");
}

bool HasValue(const Field& field, const Metadata& metadata) {
  if (field.string != nullptr) return (metadata.*field.string).valid();
  if (field.number != nullptr) return metadata.*field.number != 0;
  if (field.list != nullptr) return (metadata.*field.list).valid();
  return metadata.*field.flag;
}

bool ParseField(TextCursor& in, Context* context, const Field& field, std::string* scratch, Metadata* metadata) {
  if (field.string != nullptr) {
    std::string_view value;
    bool stable;
    if (!in.String(&value, scratch, &stable)) return false;
    // An empty string is equivalent to none.
    if (!value.empty()) {
      metadata->*field.string = stable ? context->strings.InternStable(value) : context->strings.Intern(value);
    }
    return true;
  }
  if (field.number != nullptr) {
    const SourceRange range = in.Next();
    int64_t& value = metadata->*field.number;
    if (!in.Int(&value)) return false;
    if (value == static_cast<int32_t>(value)) return true;
    return in.Error(DiagnosticKind::kNumberOutOfRange, range, StrCat(value, " does not fit in 32 bits"));
  }
  if (field.list != nullptr) return ParseProfileTypes(in, context, &(metadata->*field.list));
  return in.Bool(&(metadata->*field.flag));
}

}  // namespace

bool ParseMetadata(TextCursor& in, Context* context, MetadataId* id, StackFrameNumbering* frames) {
  if (ParseUsual(in, context, id, frames)) return true;
  Metadata metadata;
  std::string scratch;
  uint32_t seen = 0;
  if (!in.Expect('{', "before metadata")) return false;
  while (!in.TryConsume('}')) {
    const SourceRange range = in.Next();
    std::string_view name;
    if (!in.ExpectName(&name, "a field of metadata")) return false;
    uint32_t i = 0;
    while (i < std::size(kFields) && kFields[i].name != name) ++i;
    if (i == std::size(kFields)) {
      std::vector<std::string_view> names;
      for (const Field& field : kFields) names.push_back(field.name);
      return in.Error(DiagnosticKind::kUnknownAttribute, range, StrCat("unknown metadata field `", name, "`"),
                      DidYouMean(name, names));
    }
    if ((seen >> i & 1) != 0) {
      return in.Error(DiagnosticKind::kDuplicateAttribute, range, StrCat("duplicate attribute `", name, "`"));
    }
    seen |= uint32_t{1} << i;
    if (!in.Expect('=', "after a field of metadata") || !ParseField(in, context, kFields[i], &scratch, &metadata)) {
      return false;
    }
    in.TryConsume(',');
  }
  if (frames != nullptr) metadata.stack_frame_id = frames->Number(metadata.stack_frame_id);
  bool any = false;
  for (const Field& field : kFields) any |= HasValue(field, metadata);
  *id = any ? context->metadata.Intern(metadata) : MetadataId();
  return true;
}

}  // namespace hlokit

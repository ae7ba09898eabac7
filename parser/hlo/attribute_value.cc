// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/attribute_value.h"

#include <memory>
#include <string>

#include "ir/core/str_cat.h"
#include "parser/hlo/attribute_parser.h"
#include "parser/hlo/shape_parser.h"

namespace hlokit {

std::optional<uint32_t> ParseAttributeValue(Attr attr, std::string_view text, Context* context, DiagnosticSink* sink) {
  // Strings of the value may point into its text.
  const auto source = std::make_shared<const SourceBuffer>("value", std::string(text));
  context->Keep(source);
  TextCursor cursor(source->text(), sink, 0);
  constexpr int64_t kMaxNesting = 100;
  ShapeParser shapes(&cursor, context, kMaxNesting);
  LiteralBudget budget;
  AttributeParser parser(&cursor, context, &shapes, &budget);
  uint32_t payload = 0;
  const bool ok = parser.Parse(attr, &payload);
  if (ok && !cursor.AtEnd()) {
    sink->Error(DiagnosticKind::kUnexpectedToken, {cursor.Offset(), 0},
                StrCat("text after the value of `", ToString(attr), "`"));
  }
  if (!ok || sink->has_errors()) return std::nullopt;
  return payload;
}

absl::StatusOr<uint32_t> ParseAttributeValue(Attr attr, std::string_view text, Context* context) {
  DiagnosticSink sink;
  if (const std::optional<uint32_t> payload = ParseAttributeValue(attr, text, context, &sink)) return *payload;
  return sink.ToStatus(SourceBuffer("value", std::string(text)));
}

}  // namespace hlokit

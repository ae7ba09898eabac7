// SPDX-License-Identifier: Apache-2.0
#include "tracer/text/literal_line.h"

#include <string>

#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"
#include "parser/hlo/literal_parser.h"
#include "parser/text/text_cursor.h"

namespace hlokit::lazy {

std::optional<Literal> ReadLiteralLine(const SourceBuffer& source, std::string_view line, Context* context,
                                       int64_t max_bytes, DiagnosticSink* sink) {
  const uint32_t at = static_cast<uint32_t>(line.data() - source.text().data());
  const size_t blank = line.find(' ');
  const std::string_view shape_text = line.substr(0, blank);
  const SourceRange shape_range = {at, static_cast<uint32_t>(shape_text.size())};
  const absl::StatusOr<Shape> shape = ParseShapeText(shape_text, context);
  if (!shape.ok() || !shape->IsArray()) {
    sink->Error(DiagnosticKind::kBadShape, shape_range, "expected the shape of an array",
                "a value is written f32[2] {1, 2}");
    return std::nullopt;
  }
  if (hlokit::ByteSize(*shape) > max_bytes) {
    sink->Error(DiagnosticKind::kEvaluation, shape_range, StrCat("values have at most ", max_bytes, " bytes"));
    return std::nullopt;
  }
  if (blank == std::string_view::npos) {
    sink->Error(DiagnosticKind::kBadLiteral, shape_range, "missing value");
    return std::nullopt;
  }
  // The parser requires NUL-terminated text.
  const std::string body(line.substr(blank));
  TextCursor reader(body, sink, at + static_cast<uint32_t>(blank));
  LiteralLimits limits;
  limits.propagate_complex_nan = false;
  LiteralId id;
  if (!ParseLiteral(reader, context, *shape, limits, &id)) return std::nullopt;
  if (!reader.AtEnd()) {
    sink->Error(DiagnosticKind::kUnexpectedToken, {reader.Offset(), 0}, "text after the value");
    return std::nullopt;
  }
  if (context->literals[id].elided) {
    sink->Error(DiagnosticKind::kEvaluation, shape_range, "the value is elided");
    return std::nullopt;
  }
  return context->literals.ToLiteral(id);
}

}  // namespace hlokit::lazy

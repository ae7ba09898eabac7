// SPDX-License-Identifier: Apache-2.0
#include "io/arrays/arguments.h"

#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/text/literal_text.h"
#include "ir/types/sized_shape.h"
#include "parser/formats/parser.h"
#include "parser/hlo/literal_parser.h"
#include "parser/text/text_cursor.h"

namespace hlokit::interp {
namespace {

std::string_view Trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

// Returns the shape of a line: ends at the ']', or at the '}' of a layout that follows directly, unless nothing comes
// after it.
std::string_view ShapeOf(std::string_view line) {
  const size_t bracket = line.find(']');
  if (bracket == std::string_view::npos) return line.substr(0, line.find(' '));
  size_t end = bracket + 1;
  if (end < line.size() && line[end] == '{') {
    int depth = 0;
    size_t i = end;
    for (; i < line.size(); ++i) {
      if (line[i] == '{') ++depth;
      if (line[i] == '}' && --depth == 0) break;
    }
    if (i < line.size() && !Trim(line.substr(i + 1)).empty()) end = i + 1;
  }
  return line.substr(0, end);
}

// Returns the sizes in parentheses that follow a dynamic shape directly, with them: "(2,3)"; or "".
std::string_view SizesOf(std::string_view line, std::string_view shape) {
  const std::string_view rest = line.substr(shape.size());
  if (!rest.starts_with("(") || shape.find("<=") == std::string_view::npos) return {};
  return rest.substr(0, rest.find(')') == std::string_view::npos ? rest.size() : rest.find(')') + 1);
}

// Returns the dimensions of a value: the sizes in the text if it has some, or those of the shape. Nullopt if the sizes
// are not integers, one for each dimension and within its bound.
std::optional<std::vector<int64_t>> DimsOf(Shape shape, std::string_view sizes) {
  std::vector<int64_t> dims;
  if (sizes.empty()) {
    dims.assign(shape.dims().begin(), shape.dims().end());
    return dims;
  }
  const char* at = sizes.data();
  const char* const end = at + sizes.size();
  while (at < end && *at != ')') {
    const auto [next, error] = std::from_chars(at + 1, end, dims.emplace_back());
    if (error != std::errc() || next == end || (*next != ',' && *next != ')')) return std::nullopt;
    at = next;
  }
  if (static_cast<int64_t>(dims.size()) != shape.rank()) return std::nullopt;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < 0 || dims[d] > shape.dims()[d]) return std::nullopt;
  }
  return dims;
}

// Returns true if a literal of `shape`, with these dimensions, is one of `expected`.
bool Fits(Shape shape, absl::Span<const int64_t> dims, Shape expected) {
  if (!shape.IsArray() || shape.has_unbounded_dims() || shape.element_type() != expected.element_type()) return false;
  if (shape.has_dynamic_dims() && shape.dims() != expected.dims()) return false;
  return FitsWithin(dims, expected);
}

}  // namespace

std::optional<std::vector<Literal>> ReadArguments(const SourceBuffer& source, absl::Span<const Shape> shapes,
                                                  Context* context, DiagnosticSink* sink, std::string_view noun) {
  const std::string_view text = source.text();
  std::vector<Literal> arguments;
  const auto skip_tokens = [&] {
    while (arguments.size() < shapes.size() && !shapes[arguments.size()].IsArray()) {
      arguments.push_back(Literal::Zeros(shapes[arguments.size()]));
    }
  };
  size_t begin = 0;
  while (begin < text.size() && !sink->limit_reached()) {
    size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view line = Trim(text.substr(begin, end - begin));
    begin = end + 1;
    if (line.empty() || line.starts_with("//") || line.starts_with("#")) continue;
    const uint32_t at = static_cast<uint32_t>(line.data() - text.data());
    const std::string_view shape_text = ShapeOf(line);
    const SourceRange shape_range = {at, static_cast<uint32_t>(shape_text.size())};
    if (shape_text.starts_with("token") || shape_text.starts_with("opaque")) continue;
    skip_tokens();
    if (arguments.size() == shapes.size()) {
      sink->Error(DiagnosticKind::kEvaluation, shape_range,
                  StrCat("too many ", noun, "s: the program has ", shapes.size()));
      return std::nullopt;
    }
    const Shape expected = shapes[arguments.size()];
    const absl::StatusOr<Shape> shape = ParseShapeText(shape_text, context);
    if (!shape.ok()) {
      sink->Error(DiagnosticKind::kBadShape, shape_range, std::string(shape.status().message()));
      return std::nullopt;
    }
    const std::string_view sizes = SizesOf(line, shape_text);
    const std::optional<std::vector<int64_t>> dims = DimsOf(*shape, sizes);
    if (!dims || !Fits(*shape, *dims, expected)) {
      sink->Error(DiagnosticKind::kEvaluation, shape_range,
                  StrCat(noun, " ", arguments.size(), " has shape ", shape_text, sizes, ", expected ",
                         ToString(expected, /*with_layout=*/false)));
      return std::nullopt;
    }
    const Shape sized = SizedShape(&context->shapes, expected, *dims);
    const uint32_t body = at + static_cast<uint32_t>(shape_text.size() + sizes.size());
    TextCursor reader(text.substr(body), sink, body);
    LiteralId literal;
    LiteralLimits limits;
    limits.propagate_complex_nan = false;  // keeps recorded values
    if (!ParseLiteral(reader, context, sized, limits, &literal)) return std::nullopt;
    // The literal may span several lines. Nothing may follow it on the last.
    const size_t rest = reader.Here();
    size_t line_end = text.find('\n', rest);
    if (line_end == std::string_view::npos) line_end = text.size();
    if (!Trim(text.substr(rest, line_end - rest)).empty()) {
      sink->Error(DiagnosticKind::kUnexpectedToken, {static_cast<uint32_t>(rest), 0},
                  StrCat("expected the end of the line after the value of ", noun, " ", arguments.size()));
      return std::nullopt;
    }
    begin = line_end + 1;
    if (context->literals[literal].elided) {
      sink->Error(DiagnosticKind::kEvaluation, shape_range,
                  StrCat("the value of ", noun, " ", arguments.size(), " is elided"));
      return std::nullopt;
    }
    arguments.push_back(context->literals.ToLiteral(literal));
  }
  skip_tokens();
  if (arguments.size() != shapes.size()) {
    sink->Error(DiagnosticKind::kEvaluation, {static_cast<uint32_t>(text.size()), 0},
                StrCat("expected ", shapes.size(), " ", noun, "s, found ", arguments.size()));
    return std::nullopt;
  }
  return arguments;
}

void PrintLeaves(TextWriter& out, absl::Span<const Literal> leaves, absl::Span<const Shape> declared) {
  for (size_t k = 0; k < leaves.size(); ++k) {
    const Literal& leaf = leaves[k];
    const Shape shape = declared.empty() ? leaf.shape() : declared[k % declared.size()];
    if (!shape.IsArray()) {
      out << ToString(leaf.shape(), /*with_layout=*/false);
    } else if (shape.has_dynamic_dims()) {
      out << SizedShapeText(shape, leaf.shape().dims()) << ' ';
      PrintLiteral(out, leaf);
    } else {
      PrintLiteral(out, leaf, {.with_shape = true, .with_layout = false});
    }
    out << '\n';
  }
}

}  // namespace hlokit::interp

// SPDX-License-Identifier: Apache-2.0
#include "ir/core/diagnostic.h"

#include <algorithm>
#include <numeric>

#include "ir/core/json_writer.h"
#include "ir/core/printable_text.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"

namespace hlokit {
namespace {

// Returns the indices of the diagnostics in order of location, those without one last.
std::vector<size_t> InOrder(const DiagnosticSink& sink) {
  std::vector<size_t> order(sink.diagnostics().size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return sink.diagnostics()[a].range.offset < sink.diagnostics()[b].range.offset;
  });
  return order;
}

std::string Where(const SourceBuffer& source, const Diagnostic& d) {
  if (d.range.offset == SourceRange::kNoOffset) return source.name();
  const LineColumn at = LineColumnAt(source.text(), d.range.offset);
  return StrCat(source.name(), ":", at.line, ":", at.column);
}

std::string_view ToString(Severity severity) { return severity == Severity::kError ? "error" : "warning"; }

// A part of a line around a column.
struct Excerpt {
  std::string_view text;
  size_t column = 0;  // in the text, in bytes
  bool cut_before = false, cut_after = false;
};

// Returns `at`, or the start of the character that it is in the middle of.
size_t CharacterBegin(std::string_view text, size_t at) {
  for (size_t back = 1; back < 4 && back <= at && at < text.size(); ++back) {
    if (Utf8Length(text.substr(at - back)) > back) return at - back;
  }
  return at;
}

// Returns about `width` bytes of the line.
Excerpt ExcerptOf(std::string_view line, size_t column, size_t width) {
  if (line.size() <= width) return {line, column};
  const size_t begin = CharacterBegin(line, column > width / 2 ? column - width / 2 : 0);
  const size_t end = CharacterBegin(line, std::min(begin + width, line.size()));
  return {line.substr(begin, end - begin), column - begin, begin > 0, end < line.size()};
}

// Appends the source line, truncated around the column if it is very long, and a caret run under it.
void AppendExcerpt(std::string* out, std::string_view text, SourceRange range) {
  constexpr size_t kWidth = 160;
  std::string_view line = LineAt(text, range.offset);
  if (line.ends_with('\r')) line.remove_suffix(1);
  const size_t column = std::min(static_cast<size_t>(LineColumnAt(text, range.offset).column - 1), line.size());
  Excerpt excerpt = ExcerptOf(line, column, kWidth);
  // An escape has four columns for a byte.
  if (Printable(excerpt.text) != excerpt.text) excerpt = ExcerptOf(line, column, kWidth / 4);
  StrAppend(out, "  ", excerpt.cut_before ? "..." : "");
  std::string before(excerpt.cut_before ? 3 : 0, ' ');
  size_t width = 0;
  for (size_t i = 0; i < excerpt.text.size();) {
    const ShownCharacter shown = AppendShown(out, excerpt.text.substr(i));
    if (i < excerpt.column) {
      before.append(excerpt.text[i] == '\t' ? "\t" : std::string(shown.columns, ' '));
    } else if (i - excerpt.column < range.size) {
      width += shown.columns;
    }
    i += shown.bytes;
  }
  StrAppend(out, excerpt.cut_after ? "..." : "", "\n  ", before, "^", std::string(width > 1 ? width - 1 : 0, '~'),
            "\n");
}

}  // namespace

std::string_view ToString(DiagnosticKind kind) {
  static constexpr std::string_view kTexts[] = {
#define DIAGNOSTIC(name, text) text,
#include "ir/core/diagnostics.def"
  };
  return kTexts[static_cast<size_t>(kind)];
}

void DiagnosticSink::Report(Diagnostic d) {
  size_t& count = d.severity == Severity::kError ? errors_ : warnings_;
  if (count++ < limit_) diagnostics_.push_back(std::move(d));
}

absl::Status DiagnosticSink::ToStatus(const SourceBuffer& source) const {
  if (!has_errors()) return absl::OkStatus();
  for (size_t i : InOrder(*this)) {
    const Diagnostic& d = diagnostics_[i];
    if (d.severity == Severity::kError) {
      return absl::InvalidArgumentError(StrCat(Where(source, d), ": ", d.message));
    }
  }
  return absl::InvalidArgumentError(StrCat(source.name(), ": rejected"));
}

std::string RenderText(const DiagnosticSink& sink, const SourceBuffer& source) {
  std::string out;
  for (size_t i : InOrder(sink)) {
    const Diagnostic& d = sink.diagnostics()[i];
    StrAppend(&out, Where(source, d), ": ", ToString(d.severity), ": ", Printable(d.message), "\n");
    if (d.range.offset != SourceRange::kNoOffset) AppendExcerpt(&out, source.text(), d.range);
    if (!d.hint.empty()) StrAppend(&out, "  hint: ", Printable(d.hint), "\n");
  }
  const size_t shown = sink.diagnostics().size();
  const size_t all = sink.error_count() + sink.warning_count();
  if (all > shown) StrAppend(&out, source.name(), ": ", all - shown, " more diagnostics not shown\n");
  return out;
}

std::string RenderJson(const DiagnosticSink& sink, const SourceBuffer& source) {
  std::string text;
  TextWriter out(&text);
  JsonWriter json(&out, JsonLayout::kSpaced);
  json.BeginArray();
  for (size_t i : InOrder(sink)) {
    const Diagnostic& d = sink.diagnostics()[i];
    json.Line("\n  ").BeginObject().Member("file", source.name());
    if (d.range.offset != SourceRange::kNoOffset) {
      const LineColumn from = LineColumnAt(source.text(), d.range.offset);
      const LineColumn to = LineColumnAt(source.text(), size_t{d.range.offset} + d.range.size);
      json.Member("line", from.line).Member("column", from.column);
      json.Member("end_line", to.line).Member("end_column", to.column);
    }
    json.Member("severity", ToString(d.severity)).Member("kind", ToString(d.kind));
    json.Member("message", d.message).Member("hint", d.hint).EndObject();
  }
  json.EndArray("\n");
  out << '\n';
  out.Flush();
  return text;
}

}  // namespace hlokit

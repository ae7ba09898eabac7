// SPDX-License-Identifier: Apache-2.0
#include "ir/core/diagnostic.h"

#include <algorithm>
#include <numeric>

#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"

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

// Appends the source line, truncated around the column if it is very long, and a caret run under it.
void AppendExcerpt(std::string* out, std::string_view text, SourceRange range) {
  constexpr size_t kWidth = 160;
  std::string_view line = LineAt(text, range.offset);
  size_t column = static_cast<size_t>(LineColumnAt(text, range.offset).column - 1);
  std::string_view lead;
  if (line.size() > kWidth) {
    const size_t start = column > kWidth / 2 ? column - kWidth / 2 : 0;
    line = line.substr(std::min(start, line.size()));
    column -= start;
    if (start > 0) lead = "...";
  }
  std::string_view tail;
  if (line.size() > kWidth) {
    line = line.substr(0, kWidth);
    tail = "...";
  }
  if (line.find('\0') != std::string_view::npos) return;  // binary data would only garble the terminal
  StrAppend(out, "  ", lead);
  for (char c : line) out->push_back(static_cast<unsigned char>(c) < 0x20 && c != '\t' ? ' ' : c);
  StrAppend(out, tail, "\n  ", std::string(lead.size(), ' '));
  for (size_t i = 0; i < column && i < line.size(); ++i) out->push_back(line[i] == '\t' ? '\t' : ' ');
  const size_t remaining = line.size() > column ? line.size() - column : 1;
  StrAppend(out, "^", std::string(std::min<size_t>(range.size > 0 ? range.size - 1 : 0, remaining - 1), '~'), "\n");
}

}  // namespace

std::string_view ToString(DiagnosticKind kind) {
  static constexpr std::string_view kTexts[] = {
#define DIAGNOSTIC(name, text) text,
#include "ir/core/diagnostics.def"
#include "ir/core/text_writer.h"
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
    StrAppend(&out, Where(source, d), ": ", ToString(d.severity), ": ", d.message, "\n");
    if (d.range.offset != SourceRange::kNoOffset) AppendExcerpt(&out, source.text(), d.range);
    if (!d.hint.empty()) StrAppend(&out, "  hint: ", d.hint, "\n");
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

// SPDX-License-Identifier: Apache-2.0
#include "ir/core/expected_diagnostics.h"

#include <charconv>
#include <string_view>
#include <vector>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

struct Expectation {
  int64_t line;  // line of the diagnostic
  int64_t comment_line;
  Severity severity;
  std::string_view text;
  bool met = false;
};

std::vector<Expectation> Expectations(std::string_view text, size_t begin, size_t end) {
  std::vector<Expectation> found;
  int64_t line = 1;
  for (size_t i = 0; i < begin; ++i) line += text[i] == '\n';
  for (size_t at = begin; at < end;) {
    size_t stop = text.find('\n', at);
    if (stop == std::string_view::npos || stop > end) stop = end;
    const std::string_view row = text.substr(at, stop - at);
    const size_t comment = row.find("// ");
    for (size_t p = comment == std::string_view::npos ? row.size() : row.find("expected-", comment); p < row.size();
         p = row.find("expected-", p + 1)) {
      Expectation e{line, line, Severity::kError, {}};
      std::string_view rest = row.substr(p + 9);
      if (rest.substr(0, 7) == "warning") {
        e.severity = Severity::kWarning;
        rest.remove_prefix(7);
      } else if (rest.substr(0, 5) == "error") {
        rest.remove_prefix(5);
      } else {
        continue;
      }
      if (!rest.empty() && rest[0] == '@') {
        rest.remove_prefix(1);
        if (rest.substr(0, 5) == "above") {
          --e.line;
        } else if (rest.substr(0, 5) == "below") {
          ++e.line;
        } else {
          int64_t offset = 0;
          const size_t sign = !rest.empty() && rest[0] == '+' ? 1 : 0;
          std::from_chars(rest.data() + sign, rest.data() + rest.size(), offset);
          e.line = SaturatingAdd(e.line, offset);
        }
      }
      const size_t open = rest.find("{{");
      const size_t close = rest.find("}}", open == std::string_view::npos ? 0 : open);
      if (open == std::string_view::npos || close == std::string_view::npos) continue;
      e.text = rest.substr(open + 2, close - open - 2);
      found.push_back(e);
    }
    ++line;
    at = stop + 1;
  }
  return found;
}

}  // namespace

std::string CompareWithExpected(const DiagnosticSink& sink, const SourceBuffer& source, size_t begin, size_t end) {
  std::vector<Expectation> expected = Expectations(source.text(), begin, end);
  std::string out;
  for (const Diagnostic& d : sink.diagnostics()) {
    const int64_t line =
        d.range.offset == SourceRange::kNoOffset ? 0 : LineColumnAt(source.text(), d.range.offset).line;
    const std::string message = StrCat(d.message, " [", ToString(d.kind), "]");
    bool matched = false;
    for (Expectation& e : expected) {
      if (e.met || e.severity != d.severity || e.line != line || message.find(e.text) == std::string::npos) continue;
      e.met = matched = true;
      break;
    }
    if (!matched) {
      StrAppend(&out, source.name(), ":", line, ": unexpected ",
                d.severity == Severity::kError ? "error: " : "warning: ", message, "\n");
    }
  }
  for (const Expectation& e : expected) {
    if (e.met) continue;
    StrAppend(&out, source.name(), ":", e.comment_line, ": expected ",
              e.severity == Severity::kError ? "error" : "warning", " \"", e.text, "\" at line ", e.line,
              " was not produced\n");
  }
  return out;
}

}  // namespace hlokit

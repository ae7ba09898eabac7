// SPDX-License-Identifier: Apache-2.0
#include "parser/formats/source_names.h"

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "parser/formats/stablehlo_program.h"

namespace hlokit {
namespace {

// Returns the name in the text at `offset`, with a leading `%`.
std::string_view TokenAt(std::string_view text, uint32_t offset) {
  if (offset >= text.size()) return "";
  const auto is_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  };
  size_t end = offset + (text[offset] == '%');
  while (end < text.size() && is_name(text[end])) ++end;
  return text.substr(offset, end - offset);
}

}  // namespace

DiagnosticSink WithSourceNames(const DiagnosticSink& sink, const Module& module, const SourceBuffer& source) {
  std::map<std::string, std::string, std::less<>> source_names;  // both in backquotes
  const bool has_names = !LooksLikeStablehlo(source.text());
  const auto add = [&](std::string_view name, uint32_t offset) {
    if (offset == InstructionRecord::kNoSourceOffset) return;
    std::string_view token = TokenAt(source.text(), offset);
    if (token.starts_with('%')) token.remove_prefix(1);
    if (!token.empty() && token != name) source_names.emplace(StrCat("`", name, "`"), StrCat("`", token, "`"));
  };
  for (Computation c : module.computations()) {
    if (!has_names) break;
    add(c.name(), c.record().source_offset);
    for (Instruction i : c.instructions()) add(i.name(), i.record().source_offset);
  }
  DiagnosticSink renamed;
  for (Diagnostic d : sink.diagnostics()) {
    std::string message;
    for (std::string_view rest = d.message; !rest.empty();) {
      const size_t begin = rest.find('`');
      const size_t end = begin == std::string_view::npos ? begin : rest.find('`', begin + 1);
      if (end == std::string_view::npos) {
        StrAppend(&message, rest);
        break;
      }
      const std::string_view quoted = rest.substr(begin, end + 1 - begin);
      const auto known = source_names.find(quoted);
      StrAppend(&message, rest.substr(0, begin),
                known == source_names.end() ? quoted : std::string_view(known->second));
      rest.remove_prefix(end + 1);
    }
    d.message = std::move(message);
    if (d.range.offset != SourceRange::kNoOffset) {
      if (const size_t size = TokenAt(source.text(), d.range.offset).size(); size > 0) {
        d.range.size = static_cast<uint32_t>(size);
      }
    }
    renamed.Report(std::move(d));
  }
  return renamed;
}

}  // namespace hlokit

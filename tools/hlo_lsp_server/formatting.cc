// SPDX-License-Identifier: Apache-2.0
// The text as the printer writes it: long, short (no signatures, no %) or canonical (names tmp_0, tmp_1, and shapes of
// operands). The edit replaces what differs, from the first line to the last.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "parser/text/scan.h"
#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {
namespace {

// XLA's own short and canonical forms leave out metadata, configurations and control dependencies; formatting loses
// nothing, so these are the forms in how they write the rest.
PrintOptions OptionsOf(FormatStyle style) {
  PrintOptions options = PrintOptions::Lossless();
  switch (style) {
    case FormatStyle::kLong:
      break;
    case FormatStyle::kShort:
      options.print_program_shape = false;
      options.print_percent = false;
      options.print_operand_index_annotation_interval_set = false;
      break;
    case FormatStyle::kCanonical:
      options.print_program_shape = false;
      options.print_percent = false;
      options.print_operand_index_annotation_interval_set = false;
      options.print_operand_shape = true;
      options.canonicalize_instruction_names = true;
      break;
  }
  return options;
}

// A comment that goes with what follows it, or at the end of a line with what is before it.
struct KeptComment {
  std::string_view text;
  bool trailing = false;
  std::string key;  // of the instruction or computation; "": the start of the file, "$": its end
};

std::string KeyOfSymbol(const SymbolIndex& index, const Symbol& s) {
  if (s.kind == SymbolKind::kModule) return "";
  const std::string_view parent = s.parent == kNoSymbol ? std::string_view() : index.NameOf(index.symbol(s.parent));
  return StrCat(parent, "/", index.NameOf(s));
}

// Finds `//` comments. Returns false if there is one in the middle of an instruction, or one of `/* */` other than the
// printer's own `/*index=5*/`, which have no place in the printed text.
bool FindComments(const TextDocument& text, const SymbolIndex& index, std::vector<KeptComment>* comments) {
  const std::string_view all = text.text();
  const char* const end = all.data() + all.size();
  for (const char* p = all.data(); (p = scan::FindAny<'/', '"'>(p, end)) < end;) {
    if (*p++ == '"') {
      while ((p = scan::FindAny<'"', '\\'>(p, end)) < end && *p == '\\') p = std::min(p + 2, end);
      if (p < end) ++p;
      continue;
    }
    if (p >= end || (*p != '/' && *p != '*')) continue;
    const char* const start = p - 1;
    if (*p == '*') {
      if (!std::string_view(start, static_cast<size_t>(end - start)).starts_with("/*index=")) return false;
      continue;
    }
    p = scan::FindAny<'\n', '\r'>(p, end);
    const auto offset = static_cast<uint32_t>(start - all.data());
    const std::string_view before =
        all.substr(text.LineStart(text.LineOf(offset)), offset - text.LineStart(text.LineOf(offset)));
    KeptComment comment{{start, static_cast<size_t>(p - start)}, before.find_first_not_of(" \t") != before.npos, ""};
    const auto after = [](uint32_t at, const Symbol& s) { return at < s.begin; };
    const auto next = std::upper_bound(index.symbols().begin(), index.symbols().end(), offset, after);
    if (comment.trailing) {
      if (next == index.symbols().begin()) return false;
      const Symbol& s = next[-1];
      if (s.kind == SymbolKind::kInstruction && s.end > offset) return false;
      comment.key = KeyOfSymbol(index, s);
    } else {
      comment.key = next == index.symbols().end() ? "$" : KeyOfSymbol(index, *next);
    }
    comments->push_back(std::move(comment));
  }
  return true;
}

// Returns the printed text with the comments at the lines of their instructions.
std::string WithComments(std::string printed, const std::vector<KeptComment>& comments) {
  if (comments.empty()) return printed;
  const SymbolIndex index = SymbolIndex::OfHlo(printed);
  absl::flat_hash_map<std::string, std::vector<const KeptComment*>> by_key;
  for (const KeptComment& c : comments) by_key[c.key].push_back(&c);
  std::string out;
  size_t done = 0;
  const auto copy_to = [&](size_t offset) {
    out.append(printed, done, offset - done);
    done = offset;
  };
  for (const Symbol& s : index.symbols()) {
    const auto found = by_key.find(KeyOfSymbol(index, s));
    if (found == by_key.end()) continue;
    const size_t newline = printed.rfind('\n', s.begin);
    const size_t line = s.begin == 0 || newline == std::string::npos ? 0 : newline + 1;
    copy_to(std::max(line, done));
    for (const KeptComment* c : found->second) {
      if (!c->trailing) StrAppend(&out, printed.substr(line, s.begin - line), c->text, "\n");
    }
    copy_to(std::min(printed.find('\n', s.kind == SymbolKind::kInstruction ? s.end : s.begin), printed.size()));
    for (const KeptComment* c : found->second) {
      if (c->trailing) StrAppend(&out, "  ", c->text);
    }
    by_key.erase(found);
  }
  copy_to(printed.size());
  if (const auto rest = by_key.find("$"); rest != by_key.end()) {
    for (const KeptComment* c : rest->second) StrAppend(&out, c->text, "\n");
    by_key.erase(rest);
  }
  return by_key.empty() ? out : "";
}

}  // namespace

absl::Status Formatting(const Request& request, JsonWriter* result) {
  Document& document = request.document;
  if (document.language() != Language::kHlo) {
    return absl::FailedPreconditionError("only HLO text is formatted");
  }
  if (document.analysis().has_errors()) {
    return absl::FailedPreconditionError("the module has errors: correct them before it is formatted");
  }
  if (document.analysis().modules().size() != 1) {
    return absl::FailedPreconditionError("a file with several modules is not formatted");
  }
  std::vector<KeptComment> comments;
  if (!FindComments(document.text(), document.index(), &comments)) {
    return absl::FailedPreconditionError("formatting would lose a comment within a line: move it to a line of its own");
  }
  if (!comments.empty() && request.settings.style == FormatStyle::kCanonical) {
    return absl::FailedPreconditionError("the canonical form has other names, so comments would lose their place");
  }
  if (request.settings.style == FormatStyle::kCanonical && document.analysis().modules()[0]->may_have_control_edges()) {
    return absl::FailedPreconditionError(
        "the canonical form has other names, which control dependencies do not follow");
  }
  const std::string printed = ToString(*document.analysis().modules()[0], OptionsOf(request.settings.style));
  const std::string formatted = WithComments(printed, comments);
  if (formatted.empty()) {
    return absl::FailedPreconditionError("formatting would lose a comment: its instruction has another name");
  }
  const std::string_view old = document.text().text();
  const std::string_view now = formatted;
  size_t same = static_cast<size_t>(std::mismatch(old.begin(), old.end(), now.begin(), now.end()).first - old.begin());
  result->BeginArray();
  if (old != now) {
    while (same > 0 && old[same - 1] != '\n') --same;
    size_t tail =
        static_cast<size_t>(std::mismatch(old.rbegin(), old.rend() - static_cast<std::ptrdiff_t>(same), now.rbegin(),
                                          now.rend() - static_cast<std::ptrdiff_t>(std::min(same, now.size())))
                                .first -
                            old.rbegin());
    while (tail > 0 && old[old.size() - tail - 1] != '\n') --tail;
    result->BeginObject().Key("range");
    WriteRange(document.text(), static_cast<uint32_t>(same), static_cast<uint32_t>(old.size() - tail), result);
    result->Member("newText", now.substr(same, now.size() - tail - same)).EndObject();
  }
  result->EndArray();
  return absl::OkStatus();
}

}  // namespace hlokit::lsp

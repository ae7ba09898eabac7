// SPDX-License-Identifier: Apache-2.0
// What can be done about a place: the hint of a diagnostic, and commands on the instruction.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "parser/text/scan.h"
#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {
namespace {

struct Fix {
  std::string title;
  uint32_t begin = 0;
  uint32_t end = 0;
  std::string text;
};

// Returns the texts in backquotes.
std::vector<std::string_view> Quoted(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t open = text.find('`'); open != std::string_view::npos;) {
    const size_t close = text.find('`', open + 1);
    if (close == std::string_view::npos) break;
    words.push_back(text.substr(open + 1, close - open - 1));
    open = text.find('`', close + 1);
  }
  return words;
}

// Returns the part of the range that a suggestion replaces: the word that the message quotes, if the range has it,
// without a sigil.
TextRange WrongWord(std::string_view text, const Diagnostic& d) {
  const auto begin = std::min<size_t>(d.range.offset, text.size());
  const std::string_view ranged = text.substr(begin, d.range.size);
  const auto from = static_cast<uint32_t>(begin);
  for (const std::string_view word : Quoted(d.message)) {
    const size_t at = word.empty() ? std::string_view::npos : ranged.find(word);
    if (at == std::string_view::npos) continue;
    const auto start = static_cast<uint32_t>(begin + at);
    return {start, start + static_cast<uint32_t>(word.size())};
  }
  return {from, from + static_cast<uint32_t>(ranged.size())};
}

// Adds the edits that the hint of a diagnostic names: "did you mean `X`?", "expected one of `A`, `B`", "one of A B",
// "close it with `X`".
void AddHintFixes(std::string_view text, const Diagnostic& d, std::vector<Fix>* fixes) {
  constexpr std::string_view kMean = "did you mean ", kOneOf = "one of ", kClose = "close it with ",
                             kExpected = "expected ";
  // A message that has no hint of its own may end in one.
  std::string_view hint = d.hint;
  if (hint.empty() && d.message.find(kMean) != std::string::npos) {
    hint = std::string_view(d.message).substr(d.message.find(kMean));
  }
  const TextRange wrong = WrongWord(text, d);
  const auto replace = [&](std::string_view with) {
    fixes->push_back({StrCat("Change to `", with, "`"), wrong.begin, wrong.end, std::string(with)});
  };
  if (hint.starts_with(kMean)) {
    const std::vector<std::string_view> words = Quoted(hint);
    if (!words.empty()) replace(words[0]);
  } else if (hint.starts_with(kClose)) {
    const std::vector<std::string_view> words = Quoted(hint);
    if (words.empty()) return;
    const auto end = static_cast<uint32_t>(std::min(text.find('\n', d.range.offset), text.size()));
    fixes->push_back({StrCat("Add `", words[0], "`"), end, end, StrCat(" ", words[0])});
  } else if (hint.starts_with(kExpected)) {
    for (const std::string_view word : Quoted(hint)) replace(word);
  } else if (hint.starts_with(kOneOf)) {
    std::string_view rest = hint.substr(kOneOf.size());
    while (!rest.empty()) {
      const size_t space = std::min(rest.find(' '), rest.size());
      if (space > 0) replace(rest.substr(0, space));
      rest.remove_prefix(std::min(space + 1, rest.size()));
    }
  }
}

// "... is declared as f32[5], but the shape inferred from its operands and attributes is f32[4]": the inferred one,
// with the layout as it is where the number of dimensions is the same.
void AddShapeFix(const SymbolIndex& index, const Diagnostic& d, std::vector<Fix>* fixes) {
  constexpr std::string_view kInferred = "the shape inferred from its operands and attributes is ";
  const size_t at = d.message.find(kInferred);
  if (d.kind != DiagnosticKind::kInference || at == std::string::npos) return;
  std::string shape = d.message.substr(at + kInferred.size());
  if (shape.find(' ') != std::string::npos && shape[0] != '(') return;
  const Occurrence* const o = index.At(d.range.offset);
  if (o == nullptr || o->symbol == kNoSymbol || index.symbol(o->symbol).shape.size == 0) return;
  const SourceRange range = index.symbol(o->symbol).shape;
  const std::string_view old = index.TextOf(range);
  const size_t layout = old.find("]{");
  if (layout != std::string_view::npos && old[0] != '(' && shape[0] != '(' &&
      std::count(old.begin(), old.begin() + static_cast<std::ptrdiff_t>(layout), ',') ==
          std::count(shape.begin(), shape.end(), ',')) {
    StrAppend(&shape, old.substr(layout + 1));
  }
  fixes->push_back({StrCat("Use the inferred shape ", shape), range.offset, range.offset + range.size, shape});
}

void WriteFix(const Document& document, const Diagnostic& d, const Fix& fix, bool preferred, JsonWriter* json) {
  json->BeginObject().Member("title", fix.title).Member("kind", "quickfix").Member("isPreferred", preferred);
  json->Key("diagnostics").BeginArray();
  WriteDiagnostic(document, d, json);
  json->EndArray().Key("edit").BeginObject().Key("changes").BeginObject().Key(document.uri()).BeginArray();
  json->BeginObject().Key("range");
  WriteRange(document.text(), fix.begin, fix.end, json);
  json->Member("newText", fix.text).EndObject().EndArray().EndObject().EndObject().EndObject();
}

void WriteCommand(const Document& document, std::string_view title, std::string_view kind, std::string_view command,
                  std::string_view name, JsonWriter* json) {
  json->BeginObject().Member("title", title).Member("kind", kind).Key("command").BeginObject();
  json->Member("title", title).Member("command", command).Key("arguments").BeginArray().Value(document.uri());
  json->BeginObject();
  if (!name.empty()) json->Member("name", name);
  json->EndObject().EndArray().EndObject().EndObject();
}

bool MayBeDead(const SymbolIndex& index) {
  return std::any_of(index.symbols().begin(), index.symbols().end(), [](const Symbol& s) {
    return s.kind == SymbolKind::kInstruction && s.users == 0 && !s.root && !s.parameter;
  });
}

// Returns true if the client asked for actions of the kind, or for all.
bool Wants(const Json& params, std::string_view kind) {
  const Json* const only = Find(params, {"context", "only"});
  if (only == nullptr || !only->is_array() || only->empty()) return true;
  return std::any_of(only->begin(), only->end(), [kind](const Json& each) {
    return each.is_string() && kind.starts_with(each.get_ref<const std::string&>());
  });
}

}  // namespace

absl::Status CodeActions(const Request& request, JsonWriter* result) {
  Document& document = request.document;
  const SymbolIndex& index = document.index();
  const TextRange range = RangeAt(document.text(), Find(request.params, {"range"}));
  result->BeginArray();
  if (Wants(request.params, "quickfix")) {
    for (const Diagnostic& d : document.analysis().diagnostics()) {
      if (d.range.offset > range.end || d.range.offset + d.range.size < range.begin) continue;
      std::vector<Fix> fixes;
      AddHintFixes(document.text().text(), d, &fixes);
      AddShapeFix(index, d, &fixes);
      for (const Fix& fix : fixes) WriteFix(document, d, fix, fixes.size() == 1, result);
    }
  }
  if (document.language() == Language::kHlo && !document.analysis().modules().empty()) {
    const uint32_t id = index.Enclosing(range.begin, SymbolKind::kInstruction);
    if (id != kNoSymbol && Wants(request.params, "refactor.extract")) {
      const std::string_view name = index.NameOf(index.symbol(id));
      WriteCommand(document, StrCat("Extract `", name, "` to a file"), "refactor.extract", "hlo.extract", name, result);
      WriteCommand(document, StrCat("Reduce the module to `", name, "`"), "refactor.extract", "hlo.reduce", name,
                   result);
    }
    if (Wants(request.params, "refactor.rewrite") && MayBeDead(index)) {
      WriteCommand(document, "Remove dead instructions", "refactor.rewrite", "hlo.removeDead", "", result);
    }
  }
  result->EndArray();
  return absl::OkStatus();
}

}  // namespace hlokit::lsp

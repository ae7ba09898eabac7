// SPDX-License-Identifier: Apache-2.0
// The outline of a document, by computation or by scope of the metadata, and what can be folded.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "parser/text/scan.h"
#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {
namespace {

// Kinds of symbols of the protocol.
enum OutlineKind : int { kOutlineModule = 2, kOutlineNamespace = 3, kOutlineFunction = 12, kOutlineVariable = 13 };

// Opens the object of a symbol, up to its children.
void BeginSymbol(const Document& document, const SymbolIndex& index, const Symbol& s, JsonWriter* json) {
  const std::string_view name = index.NameOf(s);
  std::string detail;
  int kind = kOutlineVariable;
  switch (s.kind) {
    case SymbolKind::kModule:
      kind = kOutlineModule;
      break;
    case SymbolKind::kComputation:
      kind = kOutlineFunction;
      detail = s.entry ? "entry" : "";
      break;
    case SymbolKind::kInstruction:
      detail = index.TextOf(s.opcode);
      if (s.shape.size > 0 && s.shape.size <= 200) StrAppend(&detail, detail.empty() ? "" : " ", index.TextOf(s.shape));
      break;
  }
  json->BeginObject().Member("name", name.empty() ? "(body)" : name).Member("detail", detail).Member("kind", kind);
  json->Key("range");
  WriteRange(document.text(), s.begin, std::max(s.end, s.name.offset + s.name.size), json);
  json->Key("selectionRange");
  WriteRange(document.text(), s.name.offset, s.name.offset + s.name.size, json);
}

// By computation: instructions are in theirs. Symbols are in text order, so each computation's instructions follow it;
// bodies within attributes are left out with what is in them.
void WriteByComputation(const Document& document, const SymbolIndex& index, JsonWriter* json) {
  uint32_t open = kNoSymbol;
  const auto close = [&] {
    if (open != kNoSymbol) json->EndArray().EndObject();
    open = kNoSymbol;
  };
  json->BeginArray();
  for (uint32_t id = 0; id < index.symbols().size(); ++id) {
    const Symbol& s = index.symbol(id);
    switch (s.kind) {
      case SymbolKind::kModule:
        close();
        BeginSymbol(document, index, s, json);
        json->EndObject();
        break;
      case SymbolKind::kComputation:
        if (s.name.size == 0) break;
        close();
        BeginSymbol(document, index, s, json);
        json->Key("children").BeginArray();
        open = id;
        break;
      case SymbolKind::kInstruction:
        if (s.parent != open) break;
        BeginSymbol(document, index, s, json);
        json->EndObject();
        break;
    }
  }
  close();
  json->EndArray();
}

// Returns the scope of an instruction: its op_name without the last part, "" without one. Up to the next symbol, which
// may be in a body that is an attribute of this one.
std::string_view ScopeOf(const SymbolIndex& index, uint32_t id) {
  constexpr std::string_view kKey = "op_name=\"";
  const Symbol& s = index.symbol(id);
  const uint32_t next = id + 1 < index.symbols().size() ? index.symbol(id + 1).begin : s.end;
  const std::string_view whole = index.text().substr(s.begin, std::min(s.end, next) - s.begin);
  const size_t key = whole.find(kKey);
  if (key == std::string_view::npos) return {};
  std::string_view name = whole.substr(key + kKey.size());
  name = name.substr(0, name.find('"'));
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}

// By scope: those of an outline are nested, and a scope comes where its first instruction is. As deep as kMaxDepth.
class ScopeTree {
 public:
  static constexpr size_t kMaxDepth = 32;
  struct Node {
    std::string_view name;  // the last part
    uint32_t first = kNoSymbol;
    uint32_t last = kNoSymbol;
    uint32_t parent = 0;
    std::vector<uint32_t> children;
    std::vector<uint32_t> instructions;
  };

  explicit ScopeTree(const SymbolIndex& index) : nodes_(1) {
    for (uint32_t id = 0; id < index.symbols().size(); ++id) {
      if (index.symbol(id).kind == SymbolKind::kInstruction) Add(id, ScopeOf(index, id));
    }
  }
  const Node& node(uint32_t id) const { return nodes_[id]; }

 private:
  void Add(uint32_t instruction, std::string_view scope) {
    uint32_t at = 0;
    size_t depth = 0;
    for (size_t begin = 0; begin < scope.size() && depth < kMaxDepth; ++depth) {
      const size_t end = depth + 1 == kMaxDepth ? scope.size() : std::min(scope.find('/', begin), scope.size());
      const auto [slot, is_new] = by_path_.try_emplace(scope.substr(0, end), static_cast<uint32_t>(nodes_.size()));
      if (is_new) {
        nodes_[at].children.push_back(slot->second);
        nodes_.push_back({scope.substr(begin, end - begin), instruction, instruction, at, {}, {}});
      }
      at = slot->second;
      nodes_[at].last = instruction;
      begin = end + 1;
    }
    nodes_[at].instructions.push_back(instruction);
  }

  std::vector<Node> nodes_;
  absl::flat_hash_map<std::string_view, uint32_t> by_path_;
};

void WriteByScope(const Document& document, const SymbolIndex& index, JsonWriter* json) {
  const ScopeTree tree(index);
  struct Open {
    uint32_t node;
    size_t next;
  };
  std::vector<Open> open = {{0, 0}};
  const auto instructions = [&](uint32_t node) {
    for (const uint32_t id : tree.node(node).instructions) {
      BeginSymbol(document, index, index.symbol(id), json);
      json->EndObject();
    }
  };
  json->BeginArray();
  while (!open.empty()) {
    const ScopeTree::Node& node = tree.node(open.back().node);
    if (open.back().next == node.children.size()) {
      instructions(open.back().node);
      json->EndArray();
      open.pop_back();
      if (!open.empty()) json->EndObject();
      continue;
    }
    const uint32_t child = node.children[open.back().next++];
    const ScopeTree::Node& c = tree.node(child);
    const Symbol& first = index.symbol(c.first);
    json->BeginObject().Member("name", c.name.empty() ? "/" : c.name).Member("kind", int{kOutlineNamespace});
    json->Key("range");
    WriteRange(document.text(), first.begin, std::max(first.end, index.symbol(c.last).end), json);
    json->Key("selectionRange");
    WriteRange(document.text(), first.begin, first.begin, json);
    json->Key("children").BeginArray();
    open.push_back({child, 0});
  }
}

void WriteFold(int64_t first, int64_t last, const char* kind, JsonWriter* json) {
  if (last <= first) return;
  json->BeginObject().Member("startLine", first).Member("endLine", last);
  if (kind != nullptr) json->Member("kind", kind);
  json->EndObject();
}

// Runs of lines that are comments, and the tables of files and stack frames before the computations.
void WriteLineFolds(const TextDocument& text, JsonWriter* json) {
  int64_t comment = -1, table = -1;
  for (int64_t line = 0; line <= text.line_count(); ++line) {
    std::string_view s = text.text().substr(text.LineStart(line), text.LineStart(line + 1) - text.LineStart(line));
    while (!s.empty() && char_class::Is(s[0], char_class::kWhitespace)) s.remove_prefix(1);
    const bool is_comment = line < text.line_count() && s.starts_with("//");
    const bool is_row = !s.empty() && char_class::IsDigit(s[0]);
    const bool begins_table = s.starts_with("FileNames") || s.starts_with("FunctionNames") ||
                              s.starts_with("FileLocations") || s.starts_with("StackFrames");
    if (comment >= 0 && !is_comment) WriteFold(comment, line - 1, "comment", json);
    comment = is_comment ? (comment >= 0 ? comment : line) : -1;
    if (table >= 0 && !is_row) {
      WriteFold(table, line - 1, nullptr, json);
      table = -1;
    }
    if (begins_table) table = line;
  }
}

}  // namespace

absl::Status DocumentSymbols(const Request& request, JsonWriter* result) {
  const SymbolIndex& index = request.document.index();
  if (request.settings.symbols_by_scope && request.document.language() == Language::kHlo) {
    WriteByScope(request.document, index, result);
  } else {
    WriteByComputation(request.document, index, result);
  }
  return absl::OkStatus();
}

absl::Status FoldingRanges(const Request& request, JsonWriter* result) {
  const TextDocument& text = request.document.text();
  result->BeginArray();
  for (const Symbol& s : request.document.index().symbols()) {
    const int64_t first = text.LineOf(s.begin);
    WriteFold(first, text.LineOf(s.end) - (s.kind == SymbolKind::kComputation ? 1 : 0), nullptr, result);
  }
  WriteLineFolds(text, result);
  result->EndArray();
  return absl::OkStatus();
}

}  // namespace hlokit::lsp

// SPDX-License-Identifier: Apache-2.0
// From a name to its definition and its uses, and another name for all of them.
#include <algorithm>
#include <string>

#include "ir/core/str_cat.h"
#include "parser/text/scan.h"
#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {
namespace {

// Returns the name at the position of the request; null if there is none.
const Occurrence* NameAt(const Request& request) {
  const Json none;
  const Json* const position = Find(request.params, {"position"});
  return request.document.index().At(OffsetAt(request.document.text(), position == nullptr ? none : *position));
}

bool IsName(std::string_view name) {
  return !name.empty() && char_class::Is(name[0], char_class::kNameStart) &&
         scan::NameEnd(name.data(), name.data() + name.size()) == name.data() + name.size();
}

// In MLIR, values may be numbers.
bool IsMlirName(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c == '$' || char_class::IsName(c); });
}

// Returns true if another symbol of the scope has the name already.
bool IsTaken(const SymbolIndex& index, const Symbol& symbol, std::string_view name) {
  return std::any_of(index.symbols().begin(), index.symbols().end(), [&](const Symbol& other) {
    return other.kind == symbol.kind && other.parent == symbol.parent && index.NameOf(other) == name;
  });
}

}  // namespace

absl::Status Definition(const Request& request, JsonWriter* result) {
  const Occurrence* const o = NameAt(request);
  if (o == nullptr || o->symbol == kNoSymbol) {
    result->Null();
    return absl::OkStatus();
  }
  const Symbol& symbol = request.document.index().symbol(o->symbol);
  WriteLocation(request.document.uri(), request.document.text(), symbol.name.offset,
                symbol.name.offset + symbol.name.size, result);
  return absl::OkStatus();
}

absl::Status References(const Request& request, JsonWriter* result) {
  const Occurrence* const o = NameAt(request);
  const bool declaration = BoolAt(request.params, {"context", "includeDeclaration"});
  result->BeginArray();
  if (o != nullptr && o->symbol != kNoSymbol) {
    for (const Occurrence& each : request.document.index().OccurrencesOf(o->symbol)) {
      if (each.definition != 0 && !declaration) continue;
      WriteLocation(request.document.uri(), request.document.text(), each.offset, each.offset + each.size, result);
    }
  }
  result->EndArray();
  return absl::OkStatus();
}

absl::Status DocumentHighlight(const Request& request, JsonWriter* result) {
  const Occurrence* const o = NameAt(request);
  result->BeginArray();
  if (o != nullptr && o->symbol != kNoSymbol) {
    for (const Occurrence& each : request.document.index().OccurrencesOf(o->symbol)) {
      constexpr int kRead = 2, kWrite = 3;
      result->BeginObject().Key("range");
      WriteRange(request.document.text(), each.offset, each.offset + each.size, result);
      result->Member("kind", each.definition != 0 ? kWrite : kRead).EndObject();
    }
  }
  result->EndArray();
  return absl::OkStatus();
}

absl::Status PrepareRename(const Request& request, JsonWriter* result) {
  const Occurrence* const o = NameAt(request);
  if (o == nullptr || o->symbol == kNoSymbol) {
    result->Null();
    return absl::OkStatus();
  }
  result->BeginObject().Key("range");
  WriteRange(request.document.text(), o->offset, o->offset + o->size, result);
  result->Member("placeholder", request.document.text().text().substr(o->offset, o->size)).EndObject();
  return absl::OkStatus();
}

// Changes names where they are names: those within strings, as in metadata, stay.
absl::Status Rename(const Request& request, JsonWriter* result) {
  Document& document = request.document;
  const Occurrence* const o = NameAt(request);
  if (o == nullptr || o->symbol == kNoSymbol) return absl::InvalidArgumentError("there is no name here to change");
  std::string name = StringAt(request.params, {"newName"});
  if (!name.empty() && (name[0] == '%' || name[0] == '@')) name.erase(0, 1);
  const SymbolIndex& index = document.index();
  const Symbol& symbol = index.symbol(o->symbol);
  const bool mlir = document.language() == Language::kStablehlo;
  if (mlir ? !IsMlirName(name) : !IsName(name)) {
    return absl::InvalidArgumentError(StrCat("`", name, "` is no name: expected letters, digits, `_`, `.` and `-`",
                                             mlir ? "" : ", first a letter or `_`"));
  }
  if (name != index.NameOf(symbol) && IsTaken(index, symbol, name)) {
    return absl::InvalidArgumentError(
        StrCat(symbol.kind == SymbolKind::kComputation ? "a computation" : "an instruction", " is named `", name,
               "` already"));
  }
  result->BeginObject().Key("changes").BeginObject().Key(document.uri()).BeginArray();
  for (const Occurrence& each : index.OccurrencesOf(o->symbol)) {
    result->BeginObject().Key("range");
    WriteRange(document.text(), each.offset, each.offset + each.size, result);
    result->Member("newText", name).EndObject();
  }
  result->EndArray().EndObject().EndObject();
  return absl::OkStatus();
}

}  // namespace hlokit::lsp

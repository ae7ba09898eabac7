// SPDX-License-Identifier: Apache-2.0
// Hints between the words of the text: shapes after operands, and at the end of an instruction how often it is used and
// what it costs.
#include <algorithm>
#include <string>
#include <string_view>

#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/text/shape_text.h"
#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {
namespace {

constexpr size_t kMaxHintBytes = 60;

void WriteHint(const TextDocument& text, uint32_t offset, std::string_view label, bool is_type, JsonWriter* json) {
  json->BeginObject().Key("position");
  WritePosition(text, offset, json);
  json->Member("label", label).Member("paddingLeft", true);
  if (is_type) json->Member("kind", 1);
  json->EndObject();
}

// Returns the shape without layout, shortened; "" if it is not known.
std::string ShapeHint(Document& document, const Symbol& operand) {
  std::string shape;
  if (const Instruction i = document.InstructionOf(operand); i.valid()) {
    TextWriter out(&shape);
    PrintShape(out, i.shape(), false);
  } else {
    shape = document.index().TextOf(operand.shape);
    if (!shape.starts_with('(')) shape = shape.substr(0, shape.find('{'));
  }
  if (shape.size() > kMaxHintBytes) shape = StrCat(shape.substr(0, kMaxHintBytes - 3), "...");
  return shape;
}

void WriteInstructionHints(const Request& request, const Symbol& s, JsonWriter* json) {
  Document& document = request.document;
  const SymbolIndex& index = document.index();
  const TextDocument& text = document.text();
  if (request.settings.operand_shapes && s.operands != 0) {
    for (size_t k = index.LowerBound(s.operands); k < index.occurrences().size(); ++k) {
      const Occurrence& o = index.occurrences()[k];
      if (o.offset >= s.operands_end) break;
      if (o.definition != 0 || o.symbol == kNoSymbol) continue;
      const std::string shape = ShapeHint(document, index.symbol(o.symbol));
      if (!shape.empty()) WriteHint(text, o.offset + o.size, shape, true, json);
    }
  }
  std::string tail;
  if (request.settings.users && !s.root && s.users != 1) tail = s.users == 0 ? "unused" : Counted(s.users, "use");
  if (request.settings.costs) {
    if (const Instruction i = document.InstructionOf(s); i.valid()) {
      const std::string cost = CostText(document.analysis(), i);
      if (!cost.empty()) StrAppend(&tail, tail.empty() ? "" : ", ", cost);
    }
  }
  if (tail.empty()) return;
  const uint32_t line_end = text.OffsetAt({text.LineOf(s.end), int64_t{1} << 40});
  WriteHint(text, line_end, tail, false, json);
}

}  // namespace

absl::Status InlayHints(const Request& request, JsonWriter* result) {
  const TextRange range = RangeAt(request.document.text(), Find(request.params, {"range"}));
  const SymbolIndex& index = request.document.index();
  result->BeginArray();
  if (request.document.language() == Language::kHlo) {
    for (uint32_t k = index.FirstEndingAfter(range.begin); k < index.symbols().size(); ++k) {
      const Symbol& s = index.symbol(k);
      if (s.begin >= range.end) break;
      if (s.kind == SymbolKind::kInstruction && s.end >= range.begin) WriteInstructionHints(request, s, result);
    }
  }
  result->EndArray();
  return absl::OkStatus();
}

}  // namespace hlokit::lsp

// SPDX-License-Identifier: Apache-2.0
// What can stand at the cursor: opcodes with their operands and required attributes, attributes that the opcode takes,
// their values, names in scope, element types; passes and their options; parameters of a machine.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/ops/op_reference.h"
#include "ir/ops/opcode.h"
#include "ir/types/element_type.h"
#include "parser/text/scan.h"
#include "passes/core/registry.h"
#include "passes/target/device_description.h"
#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {
namespace {

constexpr size_t kMaxItems = 300;

// Kinds of items of the protocol.
enum ItemKind : int {
  kItemFunction = 3,
  kItemVariable = 6,
  kItemModule = 9,
  kItemProperty = 10,
  kItemKeyword = 14,
  kItemEnumMember = 20,
  kItemOperator = 24,
  kItemTypeParameter = 25,
};

// Collects items that contain the word before the cursor, which they replace.
class ItemWriter {
 public:
  ItemWriter(const TextDocument& text, uint32_t offset, JsonWriter* json) : text_(text), json_(*json), end_(offset) {
    begin_ = offset;
    while (begin_ > 0 && char_class::IsName(text.text()[begin_ - 1])) --begin_;
    word_ = text.text().substr(begin_, end_ - begin_);
    json_.BeginObject().Key("items").BeginArray();
  }
  uint32_t begin() const { return begin_; }
  bool full() const { return count_ >= kMaxItems; }

  void Add(std::string_view label, ItemKind kind, std::string_view detail, std::string_view documentation = {},
           std::string_view snippet = {}) {
    if (label.find(word_) == std::string_view::npos) return;
    if (full()) {
      incomplete_ = true;
      return;
    }
    json_.BeginObject().Member("label", label).Member("kind", int{kind});
    if (!detail.empty()) json_.Member("detail", detail);
    if (!documentation.empty()) json_.Member("documentation", documentation);
    // In the order of the rows: those that begin with the word before others.
    std::string order = StrCat(label.starts_with(word_) ? "a" : "b", 10000 + count_);
    json_.Member("sortText", order).Member("filterText", label);
    if (!snippet.empty()) json_.Member("insertTextFormat", 2);
    json_.Key("textEdit").BeginObject().Key("range");
    WriteRange(text_, begin_, end_, &json_);
    json_.Member("newText", snippet.empty() ? label : snippet).EndObject().EndObject();
    ++count_;
  }
  void Finish() { json_.EndArray().Member("isIncomplete", incomplete_).EndObject(); }

 private:
  const TextDocument& text_;
  JsonWriter& json_;
  uint32_t begin_ = 0;
  const uint32_t end_;
  std::string_view word_;
  size_t count_ = 0;
  bool incomplete_ = false;
};

// Returns the text of an instruction of the opcode with places to fill in: `dot(${1}, ${2}), lhs_...={${3}}`.
std::string OpcodeSnippet(Opcode opcode) {
  const OpcodeInfo& info = InfoOf(opcode);
  int place = 0;
  std::string text = StrCat(info.text, "(");
  for (int k = 0; k < std::max<int>(info.min_operands, info.max_operands == 0 ? 0 : 1); ++k) {
    StrAppend(&text, k == 0 ? "" : ", ", "${", ++place, "}");
  }
  if (opcode == Opcode::kParameter || opcode == Opcode::kConstant) text = StrCat(info.text, "(${", ++place, "}");
  text += ')';
  for (const AttrSpec& spec : info.attributes) {
    if (spec.presence != AttrSpec::kRequired) continue;
    const bool list = HoldsList(InfoOf(spec.attr).type);
    StrAppend(&text, ", ", ToString(spec.attr), "=", list ? "{${" : "${", ++place, list ? "}\\}" : "}");
  }
  return text;
}

void AddOpcodes(bool snippets, ItemWriter* items) {
  for (size_t k = 0; k < kOpcodeCount; ++k) {
    const auto opcode = static_cast<Opcode>(k);
    items->Add(ToString(opcode), kItemOperator, StrCat("operands: ", OperandCountText(opcode)), MeaningOf(opcode),
               snippets ? OpcodeSnippet(opcode) : "");
  }
}

void AddElementTypes(ItemWriter* items) {
  constexpr std::string_view kTypes[] = {
#define ELEMENT_TYPE(name, text, ...) text,
#include "ir/types/element_types.def"
  };
  for (const std::string_view type : kTypes) items->Add(type, kItemTypeParameter, "element type");
}

// Names of instructions of a computation before the offset, the nearest first.
void AddInstructions(const SymbolIndex& index, uint32_t computation, uint32_t before, ItemWriter* items) {
  const auto after = [](uint32_t at, const Symbol& s) { return at < s.begin; };
  auto it = std::upper_bound(index.symbols().begin(), index.symbols().end(), before, after);
  while (it != index.symbols().begin() && !items->full()) {
    --it;
    if (it->kind == SymbolKind::kComputation && it->name.size > 0) return;
    if (it->kind != SymbolKind::kInstruction || it->parent != computation || it->begin >= before) continue;
    std::string_view shape = index.TextOf(it->shape);
    items->Add(index.NameOf(*it), kItemVariable, StrCat(index.TextOf(it->opcode), " ", shape.substr(0, 200)));
  }
}

void AddComputations(const SymbolIndex& index, ItemWriter* items) {
  for (const Symbol& s : index.symbols()) {
    if (s.kind != SymbolKind::kComputation || s.name.size == 0 || s.entry) continue;
    items->Add(index.NameOf(s), kItemFunction, index.TextOf(s.shape).substr(0, 200));
  }
}

void AddAttributes(std::optional<Opcode> opcode, std::string_view instruction, ItemWriter* items) {
  const auto add = [&](Attr attr, std::string_view detail) {
    const AttrInfo& info = InfoOf(attr);
    if (info.text.empty() || instruction.find(StrCat(info.text, "=")) != std::string_view::npos) return;
    const bool list = HoldsList(info.type);
    items->Add(info.text, kItemProperty, detail, DescribeAttrType(info.type),
               StrCat(info.text, list ? "={${1}\\}" : "=${1}"));
  };
  if (opcode) {
    for (const AttrSpec& spec : InfoOf(*opcode).attributes) {
      if (spec.presence == AttrSpec::kLegacy) continue;
      add(spec.attr, spec.presence == AttrSpec::kRequired ? "required" : ToString(*opcode));
    }
  }
  for (size_t k = 0; k < kAttrCount; ++k) {
    const auto attr = static_cast<Attr>(k);
    if (IsCommon(attr)) add(attr, "of any instruction");
  }
}

// Where in the attributes of an instruction the end of `text` is.
struct AttributePlace {
  bool after_comma = false;
  std::string_view value_of;  // the attribute whose value it is in
};
AttributePlace PlaceIn(std::string_view text) {
  AttributePlace place;
  int64_t depth = 0;
  std::string_view name;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
      ++i;
      continue;
    }
    if (c == '{' || c == '(' || c == '[') ++depth;
    if (c == '}' || c == ')' || c == ']') --depth;
    if (c == ',' && depth <= 0) place = {true, {}};
    if (c == '=' && depth <= 0) place = {false, name};
    if (char_class::Is(c, char_class::kNameStart)) {
      const char* const stop = scan::NameEnd(text.data() + i, text.data() + text.size());
      const size_t size = static_cast<size_t>(stop - text.data()) - i;
      if (depth <= 0) name = text.substr(i, size);
      i += size;
    } else {
      ++i;
    }
  }
  return place;
}

void AddValues(const Request& request, std::string_view name, std::optional<Opcode> opcode, const Symbol& instruction,
               ItemWriter* items) {
  const SymbolIndex& index = request.document.index();
  for (const Attr attr : AttrsFromText(name)) {
    if (opcode && FindAttrSpec(*opcode, attr) == nullptr) continue;
    const AttrInfo& info = InfoOf(attr);
    for (const std::string_view text :
         info.enum_type == EnumType::kNone ? absl::Span<const std::string_view>() : EnumTexts(info.enum_type)) {
      items->Add(text, kItemEnumMember, name);
    }
    if (info.type == AttrType::kBool) {
      items->Add("true", kItemKeyword, name);
      items->Add("false", kItemKeyword, name);
    }
    if (NamesComputations(attr)) AddComputations(index, items);
    if (InfoOf(info.type).elements == ElementKind::kInstruction) {
      AddInstructions(index, instruction.parent, instruction.begin, items);
    }
    return;
  }
}

void CompleteHlo(const Request& request, uint32_t offset, bool snippets, ItemWriter* items) {
  Document& document = request.document;
  const SymbolIndex& index = document.index();
  const auto after = [](uint32_t at, const Symbol& s) { return at < s.begin; };
  const auto it = std::upper_bound(index.symbols().begin(), index.symbols().end(), items->begin(), after);
  const Symbol* const last = it == index.symbols().begin() ? nullptr : &it[-1];
  const std::string_view text = document.text().text();
  const bool in_instruction =
      last != nullptr && last->kind == SymbolKind::kInstruction &&
      (offset <= last->end || text.substr(last->end, offset - last->end).find('\n') == std::string_view::npos ||
       last->operands_end >= offset);
  if (!in_instruction) {
    items->Add("ROOT", kItemKeyword, "the result of the computation");
    if (last == nullptr || last->kind == SymbolKind::kModule) items->Add("HloModule", kItemKeyword, "a module");
    items->Add("ENTRY", kItemKeyword, "the entry computation");
    return;
  }
  const std::optional<Opcode> opcode = OpcodeFromText(index.TextOf(last->opcode));
  if (offset <= last->name.offset + last->name.size) return;
  if (last->operands == 0 || offset < last->operands) {
    if (last->shape.size == 0 || items->begin() < last->shape.offset + last->shape.size) AddElementTypes(items);
    AddOpcodes(snippets && text.substr(offset, 1) != "(", items);
  } else if (offset <= last->operands_end) {
    if (opcode != Opcode::kConstant && opcode != Opcode::kParameter) {
      AddInstructions(index, last->parent, last->begin, items);
    }
  } else {
    const AttributePlace place = PlaceIn(text.substr(last->operands_end + 1, offset - last->operands_end - 1));
    if (!place.value_of.empty()) {
      AddValues(request, place.value_of, opcode, *last, items);
    } else if (place.after_comma) {
      AddAttributes(opcode, text.substr(last->begin, std::max(last->end, offset) - last->begin), items);
    }
  }
}

void CompletePipeline(std::string_view text, uint32_t offset, ItemWriter* items) {
  // In the braces of a pass, its options.
  const std::string_view before = text.substr(0, offset);
  const size_t open = before.rfind('{');
  if (open != std::string_view::npos && before.find('}', open) == std::string_view::npos) {
    size_t begin = open;
    while (begin > 0 && char_class::IsName(text[begin - 1])) --begin;
    if (const PassInfo* pass = PassRegistry::Get().Find(text.substr(begin, open - begin))) {
      for (const OptionInfo& option : pass->options) items->Add(option.name, kItemProperty, pass->name, option.doc);
    }
    return;
  }
  for (const NamedPipeline& pipeline : PassRegistry::Get().pipelines()) {
    items->Add(pipeline.name, kItemModule, "pipeline", pipeline.summary);
  }
  for (const PassInfo* pass : PassRegistry::Get().passes()) {
    items->Add(pass->name, kItemFunction, pass->category, pass->summary);
  }
}

void CompleteMachine(std::string_view text, uint32_t offset, ItemWriter* items) {
  const size_t newline = text.rfind('\n', offset == 0 ? 0 : offset - 1);
  const size_t line = newline == std::string_view::npos || offset == 0 ? 0 : newline + 1;
  const std::string_view before = text.substr(line, offset - line);
  if (before.find("like ") != std::string_view::npos) {
    for (const std::string_view name : tpu::BuiltinDeviceDescriptions()) items->Add(name, kItemModule, "TPU");
    return;
  }
  if (before.find_first_not_of(" \t") != std::string_view::npos &&
      before.find(' ', before.find_first_not_of(" \t")) != std::string_view::npos) {
    return;  // a value
  }
  items->Add("like", kItemKeyword, "starts from a built-in description");
  for (const tpu::DeviceDescriptionField& field : tpu::DeviceDescriptionFields()) {
    items->Add(field.name, kItemProperty, "", field.meaning);
  }
}

void CompleteStablehlo(const Request& request, uint32_t offset, ItemWriter* items) {
  const SymbolIndex& index = request.document.index();
  const std::string_view text = request.document.text().text();
  const uint32_t begin = items->begin();
  if (begin > 0 && (text[begin - 1] == '%' || text[begin - 1] == '@')) {
    if (text[begin - 1] == '@') {
      AddComputations(index, items);
      for (const Symbol& s : index.symbols()) {
        if (s.kind == SymbolKind::kComputation && s.entry) items->Add(index.NameOf(s), kItemFunction, "");
      }
      return;
    }
    const uint32_t id = index.Enclosing(offset, SymbolKind::kComputation);
    for (const Symbol& s : index.symbols()) {
      if (s.kind == SymbolKind::kInstruction && s.parent == id && s.begin + 1 < begin) {
        items->Add(index.NameOf(s), kItemVariable, index.TextOf(s.opcode));
      }
    }
  }
}

}  // namespace

absl::Status Completion(const Request& request, JsonWriter* result) {
  const Json none;
  const Json* const position = Find(request.params, {"position"});
  const TextDocument& text = request.document.text();
  const uint32_t offset = OffsetAt(text, position == nullptr ? none : *position);
  ItemWriter items(text, offset, result);
  switch (request.document.language()) {
    case Language::kHlo:
      CompleteHlo(request, offset, request.settings.snippets, &items);
      break;
    case Language::kStablehlo:
      CompleteStablehlo(request, offset, &items);
      break;
    case Language::kPipeline:
      CompletePipeline(text.text(), offset, &items);
      break;
    case Language::kMachine:
      CompleteMachine(text.text(), offset, &items);
      break;
  }
  items.Finish();
  return absl::OkStatus();
}

}  // namespace hlokit::lsp

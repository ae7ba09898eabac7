// SPDX-License-Identifier: Apache-2.0
#include "parser/mlir/definition.h"

#include <algorithm>
#include <cstdlib>

#include "ir/core/hashing.h"
#include "ir/core/intern_index.h"

namespace hlokit::mlir {
namespace {

struct Row {
  OpKind kind;
  std::string_view name, operands, attributes, regions, results, format;
};
constexpr Row kRows[] = {
#define OP(kind, name, operands, attributes, regions, results, format, converter, opcode) \
  {OpKind::kind, name, operands, attributes, regions, results, format},
#include "parser/mlir/operations.def"
};

struct Named {
  std::string_view text, description;
};
constexpr Named kAttributeKinds[] = {
#define ATTRIBUTE_KIND(name, text, syntax, description) {text, description},
#include "parser/mlir/attribute_kinds.def"
};
constexpr AttributeSyntax kAttributeSyntaxes[] = {
#define ATTRIBUTE_KIND(name, text, syntax, description) AttributeSyntax::syntax,
#include "parser/mlir/attribute_kinds.def"
};
constexpr Named kTypeConstraints[] = {
#define TYPE_CONSTRAINT(name, text, description) {text, description},
#include "parser/mlir/type_constraints.def"
};
constexpr std::string_view kCustomSyntaxes[] = {
    "",
#define CUSTOM_SYNTAX(name, text) text,
#include "parser/mlir/custom_syntax.def"
};

// Errors of the table itself end the program: a test reads every row.
[[noreturn]] void BadRow() { std::abort(); }

std::string_view TakeWord(std::string_view* text) {
  while (text->starts_with(' ')) text->remove_prefix(1);
  const size_t end = text->find(' ');
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end);
  return word;
}

std::vector<ValueDefinition> ReadValues(std::string_view text) {
  std::vector<ValueDefinition> values;
  for (std::string_view word = TakeWord(&text); !word.empty(); word = TakeWord(&text)) {
    const size_t colon = word.find(':');
    if (colon == std::string_view::npos) BadRow();
    ValueDefinition value{word.substr(0, colon), TypeConstraint::kAny};
    if (value.name.ends_with('*') || value.name.ends_with('?')) {
      (value.name.ends_with('*') ? value.variadic : value.optional) = true;
      value.name.remove_suffix(1);
    }
    const std::string_view constraint = word.substr(colon + 1);
    size_t i = 0;
    while (i < std::size(kTypeConstraints) && kTypeConstraints[i].text != constraint) ++i;
    if (i == std::size(kTypeConstraints)) BadRow();
    value.constraint = static_cast<TypeConstraint>(i);
    values.push_back(value);
  }
  return values;
}

std::vector<AttributeDefinition> ReadAttributes(std::string_view text) {
  std::vector<AttributeDefinition> attributes;
  for (std::string_view word = TakeWord(&text); !word.empty(); word = TakeWord(&text)) {
    const size_t colon = word.rfind(':');
    if (colon == std::string_view::npos) BadRow();
    AttributeDefinition attribute;
    attribute.name = word.substr(0, colon);
    if (attribute.name.ends_with('?')) {
      attribute.optional = true;
      attribute.name.remove_suffix(1);
    } else if (const size_t equal = attribute.name.find('='); equal != std::string_view::npos) {
      attribute.has_default = true;
      attribute.default_text = attribute.name.substr(equal + 1);
      attribute.name = attribute.name.substr(0, equal);
    }
    const std::string_view kind = word.substr(colon + 1);
    size_t i = 0;
    while (i < std::size(kAttributeKinds) && kAttributeKinds[i].text != kind) ++i;
    if (i == std::size(kAttributeKinds)) BadRow();
    attribute.kind = static_cast<AttributeKind>(i);
    attributes.push_back(attribute);
  }
  return attributes;
}

CountRange CountsOf(const std::vector<ValueDefinition>& values) {
  CountRange range;
  for (const ValueDefinition& value : values) {
    range.min += !value.variadic && !value.optional;
    range.max = value.variadic || range.max == ~size_t{0} ? ~size_t{0} : range.max + 1;
  }
  return range;
}

template <typename List>
size_t IndexOf(const List& list, std::string_view name) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return i;
  }
  BadRow();
}

void ReadFormat(std::string_view text, OpDefinition* op) {
  using Kind = Directive::Kind;
  std::vector<size_t> groups;
  for (std::string_view word = TakeWord(&text); !word.empty(); word = TakeWord(&text)) {
    Directive directive;
    if (word.starts_with('\'')) {
      directive.kind = Kind::kLiteral;
      directive.text = word.substr(1, word.size() - 2);
    } else if (word.starts_with('%')) {
      directive.kind = Kind::kOperand;
      directive.index = IndexOf(op->operands, word.substr(1));
    } else if (word.starts_with('$')) {
      directive.kind = Kind::kAttribute;
      directive.index = IndexOf(op->attributes, word.substr(1));
      if (!groups.empty()) op->format[groups.back()].index = directive.index;
    } else if (word.starts_with('@')) {
      directive.kind = Kind::kCustom;
      size_t i = 1;
      while (i < std::size(kCustomSyntaxes) && kCustomSyntaxes[i] != word.substr(1)) ++i;
      if (i == std::size(kCustomSyntaxes)) BadRow();
      directive.custom = static_cast<Custom>(i);
    } else if (word == "[") {
      directive.kind = Kind::kOptional;
      groups.push_back(op->format.size());
    } else if (word == "]") {
      directive.kind = Kind::kEnd;
      op->format[groups.back()].end = op->format.size();
      groups.pop_back();
    } else if (word == "dict") {
      directive.kind = Kind::kDict;
    } else if (word == ":same") {
      directive.kind = Kind::kSame;
    } else if (word == ":fn") {
      directive.kind = Kind::kFunction;
    } else if (word == ":results") {
      directive.kind = Kind::kResults;
    } else if (word == ":operands") {
      directive.kind = Kind::kOperands;
    } else if (word == ":operands1") {
      directive.kind = Kind::kFirstOperand;
    } else if (word == ":chlo") {
      directive.kind = Kind::kArrow;
    } else {
      BadRow();
    }
    op->format.push_back(directive);
  }
  // Operands of operations with regions, and those in custom syntaxes, may stand anywhere.
  if (!op->regions.empty()) return;
  size_t tail = 0;
  for (size_t i = 0; i < op->format.size(); ++i) {
    if (op->format[i].kind == Kind::kOperand) tail = i + 1;
  }
  const bool plain =
      std::all_of(op->format.begin(), op->format.begin() + static_cast<ptrdiff_t>(tail), [](const Directive& d) {
        return d.kind == Kind::kOperand || d.kind == Kind::kLiteral || d.kind == Kind::kAttribute;
      });
  if (plain) op->tail = tail;
}

std::vector<OpDefinition> ReadTable() {
  std::vector<OpDefinition> table;
  table.reserve(std::size(kRows));
  for (const Row& row : kRows) {
    OpDefinition op;
    op.kind = row.kind;
    op.name = row.name;
    op.dialect = row.name.substr(0, row.name.find('.'));
    op.operands = ReadValues(row.operands);
    op.attributes = ReadAttributes(row.attributes);
    op.results = ReadValues(row.results);
    std::string_view regions = row.regions;
    for (std::string_view word = TakeWord(&regions); !word.empty(); word = TakeWord(&regions)) {
      op.variadic_regions = word.ends_with('*');
      op.regions.push_back(word);
    }
    op.operand_counts = CountsOf(op.operands);
    op.result_counts = CountsOf(op.results);
    op.region_counts =
        op.variadic_regions ? CountRange{0, ~size_t{0}} : CountRange{op.regions.size(), op.regions.size()};
    ReadFormat(row.format, &op);
    table.push_back(std::move(op));
  }
  return table;
}

}  // namespace

const AttributeDefinition* OpDefinition::FindAttribute(std::string_view attribute) const {
  for (const AttributeDefinition& a : attributes) {
    if (a.name == attribute) return &a;
  }
  return nullptr;
}

const std::vector<OpDefinition>& AllDefinitions() {
  static const auto* const kTable = new std::vector<OpDefinition>(ReadTable());
  return *kTable;
}

const OpDefinition* FindDefinition(std::string_view name) {
  static const auto* const kIndex = [] {
    auto* index = new InternIndex();
    for (const OpDefinition& op : AllDefinitions()) {
      index->FindOrInsert(
          HashBytes(op.name), [&](uint32_t) { return false; }, [&] { return static_cast<uint32_t>(op.kind); });
    }
    return index;
  }();
  const std::vector<OpDefinition>& table = AllDefinitions();
  const uint32_t row = kIndex->Find(HashBytes(name), [&](uint32_t i) { return table[i].name == name; });
  return row < table.size() ? &table[row] : nullptr;
}

const OpDefinition& DefinitionOf(OpKind kind) { return AllDefinitions()[static_cast<size_t>(kind)]; }

bool IsCommutativeReducer(OpKind kind) {
  static constexpr OpKind kReducers[] = {
      OpKind::kStablehloAdd, OpKind::kStablehloMultiply, OpKind::kStablehloMaximum, OpKind::kStablehloMinimum,
      OpKind::kStablehloAnd, OpKind::kStablehloOr,       OpKind::kStablehloXor};
  return std::find(std::begin(kReducers), std::end(kReducers), kind) != std::end(kReducers);
}

bool IsKnownDialect(std::string_view dialect) { return dialect == "stablehlo" || dialect == "chlo"; }

std::string_view Describe(TypeConstraint constraint) {
  return kTypeConstraints[static_cast<size_t>(constraint)].description;
}
AttributeSyntax SyntaxOf(AttributeKind kind) { return kAttributeSyntaxes[static_cast<size_t>(kind)]; }
std::string_view Describe(AttributeKind kind) { return kAttributeKinds[static_cast<size_t>(kind)].description; }

}  // namespace hlokit::mlir

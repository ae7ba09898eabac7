// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/attribute_parser.h"

#include <bit>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "parser/hlo/frontend_attributes_parser.h"
#include "parser/hlo/list_parser.h"
#include "parser/hlo/original_value_parser.h"
#include "parser/hlo/replica_groups_parser.h"
#include "parser/hlo/result_accuracy_parser.h"
#include "parser/hlo/sharding_parser.h"
#include "parser/hlo/statistics_viz_parser.h"
#include "parser/hlo/window_parser.h"

namespace hlokit {

bool AttributeParser::Parse(Attr attr, uint32_t* payload) {
  using ParseFunction = bool (AttributeParser::*)(Attr, uint32_t*);
  static constexpr ParseFunction kParsers[] = {
#define ATTRIBUTE_TYPE(name, payload, elements, syntax, json, description) &AttributeParser::Parse##syntax,
#include "ir/ops/attribute_type_columns.inc"
  };
  return (this->*kParsers[static_cast<size_t>(InfoOf(attr).type)])(attr, payload);
}

bool AttributeParser::ParseEnum(EnumType type, std::string_view attr_name, uint32_t* payload) {
  const SourceRange range = in_.Next();
  const std::string_view word = in_.BareName();
  std::optional<uint32_t> value = EnumFromText(type, word);
  if (!value && (type == EnumType::kPrecision || type == EnumType::kDotAlgorithm)) {
    // XLA ignores the case of these.
    value = EnumFromText(type, absl::AsciiStrToLower(std::string(word)));
  }
  if (value) {
    *payload = *value;
    return true;
  }
  const absl::Span<const std::string_view> texts = EnumTexts(type);
  const std::string_view near = FindNearest(word, {texts.begin(), texts.end()});
  std::string hint;
  if (!near.empty()) {
    hint = StrCat("did you mean `", near, "`?");
  } else {
    hint = "one of";
    for (std::string_view t : texts) StrAppend(&hint, ' ', t);
  }
  return in_.Error(DiagnosticKind::kBadAttribute, range,
                   StrCat("invalid value `", word, "` for attribute `", attr_name, "`"), hint);
}

bool AttributeParser::ParseString(StringId* id) {
  std::string_view value;
  bool stable;
  if (!in_.String(&value, &scratch_, &stable)) return false;
  *id = stable ? context_->strings.InternStable(value) : context_->strings.Intern(value);
  return true;
}

// ---- values other than lists ----

bool AttributeParser::ParseSeparately(Attr attr, uint32_t*) {
  return in_.ErrorHere(DiagnosticKind::kBadAttribute, StrCat("unsupported attribute `", ToString(attr), "`"));
}

bool AttributeParser::ParseComputationName(Attr attr, uint32_t* payload) { return ParseSeparately(attr, payload); }

bool AttributeParser::ParseBool(Attr, uint32_t* payload) {
  bool value;
  if (!in_.Bool(&value)) return false;
  *payload = value;
  return true;
}

bool AttributeParser::ParseInteger(Attr, uint32_t* payload) {
  int64_t value;
  if (!in_.Int(&value)) return false;
  *payload = context_->EncodeInt64(value);
  return true;
}

bool AttributeParser::ParseKeyword(Attr attr, uint32_t* payload) {
  return ParseEnum(InfoOf(attr).enum_type, ToString(attr), payload);
}

bool AttributeParser::ParseNumber(Attr, uint32_t* payload) {
  double value;
  if (!in_.Double(&value)) return false;
  *payload = std::bit_cast<uint32_t>(static_cast<float>(value));
  return true;
}

bool AttributeParser::ParseQuoted(Attr, uint32_t* payload) {
  StringId id;
  if (!ParseString(&id)) return false;
  *payload = id.value;
  return true;
}

bool AttributeParser::ParseQuotedOrBraced(Attr attr, uint32_t* payload) {
  if (in_.Peek() != '{') return ParseQuoted(attr, payload);
  std::string_view text;
  if (!in_.Braced(&text)) return false;
  *payload = context_->strings.InternStable(text).value;
  return true;
}

bool AttributeParser::ParseIdentifier(Attr attr, uint32_t* payload) {
  std::string_view name;
  if (!in_.ExpectName(&name, StrCat("a value for ", ToString(attr)))) return false;
  *payload = context_->strings.InternStable(name).value;
  return true;
}

bool AttributeParser::ParseSparsityConfig(Attr, uint32_t* payload) {
  std::string text;
  if (!hlokit::ParseSparsityConfig(in_, &text)) return false;
  *payload = context_->strings.Intern(text).value;
  return true;
}

bool AttributeParser::ParseShape(Attr, uint32_t* payload) {
  Shape shape;
  if (!shapes_.Parse(&shape)) return false;
  *payload = shape.id().value;
  return true;
}

bool AttributeParser::ParseLiteral(Attr, uint32_t* payload) {
  // `shape value`, or `( shape value, shape value )` for a tuple of arrays.
  LiteralLimits limits;
  limits.budget = literal_budget_;
  const auto one = [&](LiteralId* id, Shape* shape) {
    return shapes_.Parse(shape) && hlokit::ParseLiteral(in_, context_, *shape, limits, id);
  };
  LiteralId id;
  Shape shape;
  if (in_.Peek() == '(') {
    in_.TryConsume('(');
    std::vector<LiteralId> elements;
    std::vector<Shape> shapes;
    if (in_.Peek() != ')') {
      do {
        if (!one(&id, &shape)) return false;
        elements.push_back(id);
        shapes.push_back(shape);
      } while (in_.TryConsume(','));
    }
    if (!in_.Expect(')', "after the elements of a literal")) return false;
    id = context_->literals.AddTuple(context_->shapes.Tuple(shapes), elements);
  } else if (!one(&id, &shape)) {
    return false;
  }
  *payload = id.value;
  return true;
}

// ---- lists ----

bool AttributeParser::Intern(uint32_t* payload) {
  *payload = context_->lists.Intern(list_).value;
  return true;
}

bool AttributeParser::ParseList(Attr attr, uint32_t* payload) {
  list_.clear();
  bool ok = false;
  switch (InfoOf(InfoOf(attr).type).elements) {
    case ElementKind::kInteger:
      ok = ParseIntegers(in_, '{', '}', &list_);
      break;
    case ElementKind::kIntegerList:
      ok = ParseIntegerLists(in_, &list_);
      break;
    case ElementKind::kBool:
      ok = ParseBools(in_, &list_, /*allow_single=*/false);
      break;
    case ElementKind::kPrecision:
      ok = ParsePrecisions();
      break;
    case ElementKind::kShape:
      ok = ParseShapes();
      break;
    case ElementKind::kComputation:
    case ElementKind::kInstruction:
    case ElementKind::kString:
    case ElementKind::kMixed:
    case ElementKind::kNone:
      return ParseSeparately(attr, payload);
  }
  return ok && Intern(payload);
}

bool AttributeParser::ParsePrecisions() {
  if (!in_.Expect('{', "before a list of precisions")) return false;
  if (in_.TryConsume('}')) return true;
  do {
    uint32_t value;
    if (!ParseEnum(EnumType::kPrecision, "operand_precision", &value)) return false;
    list_.push_back(value);
  } while (in_.TryConsume(','));
  return in_.Expect('}', "after a list of precisions");
}

bool AttributeParser::ParseShapes() {
  if (!in_.Expect('{', "before a list of shapes")) return false;
  if (in_.TryConsume('}')) return true;
  do {
    Shape shape;
    if (!shapes_.Parse(&shape)) return false;
    list_.push_back(shape.id().value);
  } while (in_.TryConsume(','));
  return in_.Expect('}', "after a list of shapes");
}

bool AttributeParser::ParseSliceRanges(Attr, uint32_t* payload) {
  list_.clear();
  return hlokit::ParseSliceRanges(in_, &list_) && Intern(payload);
}

bool AttributeParser::ParsePadding(Attr, uint32_t* payload) {
  list_.clear();
  return hlokit::ParsePadding(in_, &list_, /*allow_interior=*/true) && Intern(payload);
}

bool AttributeParser::ParseWindow(Attr, uint32_t* payload) {
  list_.clear();
  return hlokit::ParseWindow(in_, &list_) && Intern(payload);
}

bool AttributeParser::ParseConvolutionDims(Attr, uint32_t* payload) {
  list_.clear();
  return hlokit::ParseConvolutionDims(in_, &list_) && Intern(payload);
}

bool AttributeParser::ParseOperandAliasing(Attr, uint32_t* payload) {
  list_.clear();
  if (!in_.Expect('{', "before aliasing")) return false;
  while (in_.Peek() != '}') {
    const auto index = [this] {
      const size_t count_at = list_.size();
      list_.push_back(0);
      if (!ParseIntegers(in_, '{', '}', &list_)) return false;
      list_[count_at] = static_cast<int64_t>(list_.size() - count_at - 1);
      return true;
    };
    int64_t operand;
    if (!index() || !in_.Expect(':', "after an output index") || !in_.Expect('(', "before an operand number") ||
        !in_.Int(&operand)) {
      return false;
    }
    list_.push_back(operand);
    if (!in_.Expect(',', "after an operand number") || !index() || !in_.Expect(')', "after an operand index")) {
      return false;
    }
    if (!in_.TryConsume(',')) break;
  }
  return in_.Expect('}', "after aliasing") && Intern(payload);
}

bool AttributeParser::ParseDomain(Attr, uint32_t* payload) {
  StringId kind;
  ListId entry, exit;
  if (!in_.Expect('{', "before a domain")) return false;
  while (!in_.TryConsume('}')) {
    const SourceRange range = in_.Next();
    std::string_view name;
    if (!in_.ExpectName(&name, "a part of a domain") || !in_.Expect('=', "in a domain")) return false;
    if (name == "kind") {
      if (!ParseString(&kind)) return false;
      if (context_->str(kind) != "sharding") {
        return in_.Error(DiagnosticKind::kBadAttribute, range,
                         StrCat("unsupported domain kind `", context_->str(kind), "`; expected `sharding`"));
      }
    } else if (name == "entry" || name == "exit") {
      if (!hlokit::ParseSharding(in_, context_, name == "entry" ? &entry : &exit)) return false;
    } else {
      return in_.Error(DiagnosticKind::kUnknownAttribute, range, StrCat("unknown domain field `", name, "`"));
    }
    in_.TryConsume(',');
  }
  if (!kind.valid() || !entry.valid() || !exit.valid()) {
    return in_.ErrorHere(DiagnosticKind::kMissingAttribute, "missing domain field: expected kind, entry and exit");
  }
  list_.assign({int64_t{kind.value}, int64_t{entry.value}, int64_t{exit.value}});
  return Intern(payload);
}

bool AttributeParser::ParseFrontendAttributes(Attr, uint32_t* payload) {
  ListId id;
  if (!hlokit::ParseFrontendAttributes(in_, context_, &id)) return false;
  *payload = id.value;
  return true;
}

bool AttributeParser::ParseReplicaGroups(Attr, uint32_t* payload) {
  ListId id;
  if (!hlokit::ParseReplicaGroups(in_, context_, &id)) return false;
  *payload = id.value;
  return true;
}

bool AttributeParser::ParseSharding(Attr, uint32_t* payload) {
  ListId id;
  if (!hlokit::ParseSharding(in_, context_, &id)) return false;
  *payload = id.value;
  return true;
}

bool AttributeParser::ParseResultAccuracy(Attr, uint32_t* payload) {
  ListId id;
  if (!hlokit::ParseResultAccuracy(in_, context_, &id)) return false;
  *payload = id.value;
  return true;
}

bool AttributeParser::ParseStatisticsViz(Attr, uint32_t* payload) {
  ListId id;
  if (!hlokit::ParseStatistics(in_, context_, &id)) return false;
  *payload = id.value;
  return true;
}

bool AttributeParser::ParseOriginalValue(Attr, uint32_t* payload) {
  ListId id;
  if (!hlokit::ParseOriginalValue(in_, context_, &id)) return false;
  *payload = id.value;
  return true;
}

}  // namespace hlokit

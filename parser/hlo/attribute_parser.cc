// SPDX-License-Identifier: Apache-2.0
// Values of attributes, by type, into payloads (attribute.h has the encodings).
#include <bit>

#include "absl/strings/ascii.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "parser/hlo/frontend_attributes_parser.h"
#include "parser/hlo/literal_parser.h"
#include "parser/hlo/module_parser.h"
#include "parser/hlo/original_value_parser.h"
#include "parser/hlo/replica_groups_parser.h"
#include "parser/hlo/result_accuracy_parser.h"
#include "parser/hlo/sharding_parser.h"
#include "parser/hlo/statistics_viz_parser.h"

namespace hlokit {

bool ModuleParser::ParseAttrValue(Frame& f, Attr attr, uint32_t* payload) {
  const AttrInfo& info = InfoOf(attr);
  const auto as_list = [&](bool ok) {
    if (ok) *payload = context_->lists.Intern(list_).value;
    return ok;
  };
  list_.clear();
  switch (info.type) {
    case AttrType::kBool: {
      bool value;
      if (!in_.Bool(&value)) return false;
      *payload = value;
      return true;
    }
    case AttrType::kInt64: {
      int64_t value;
      if (!in_.Int(&value)) return false;
      *payload = module_->EncodeInt64(value);
      return true;
    }
    case AttrType::kEnum:
      return ParseEnum(info.enum_type, info.text, payload);
    case AttrType::kFloat: {
      double value;
      if (!in_.Double(&value)) return false;
      *payload = std::bit_cast<uint32_t>(static_cast<float>(value));
      return true;
    }
    case AttrType::kString:
      return ParseStringPayload(payload);
    case AttrType::kStringOrJson: {
      if (in_.Peek() != '{') return ParseStringPayload(payload);
      std::string_view text;
      if (!in_.Braced(&text)) return false;
      *payload = InternView(text).value;
      return true;
    }
    case AttrType::kIdentifier: {
      std::string_view name;
      if (!in_.ExpectName(&name, StrCat("a value for ", info.text))) return false;
      *payload = InternView(name).value;
      return true;
    }
    case AttrType::kSparsity:
      return ParseSparsity(payload);
    case AttrType::kShape: {
      Shape shape;
      if (!shapes_.Parse(&shape)) return false;
      *payload = shape.id().value;
      return true;
    }
    case AttrType::kLiteral:
      return ParseLiteralWithShape(payload);
    case AttrType::kInt64List:
      return as_list(ParseIntList('{', '}', &list_));
    case AttrType::kInt64ListList:
      return as_list(ParseIntListList(&list_));
    case AttrType::kBoolList:
      return as_list(ParseBoolList(&list_, /*allow_single=*/false));
    case AttrType::kPrecisionList:
      return as_list(ParsePrecisionList(&list_));
    case AttrType::kInstructionList:
      return as_list(ParseInstructionList(f.computation, &list_));
    case AttrType::kShapeList:
      return as_list(ParseShapeList(&list_));
    case AttrType::kSliceRanges:
      return as_list(ParseSliceRanges(&list_));
    case AttrType::kPadding:
      return as_list(ParsePadding(&list_, /*allow_interior=*/true));
    case AttrType::kWindow:
      return as_list(ParseWindow(&list_));
    case AttrType::kConvolutionDims:
      return as_list(ParseConvolutionDims(&list_));
    case AttrType::kOperandAliasing:
      return as_list(ParseOperandAliasing(&list_));
    case AttrType::kDomain:
      return as_list(ParseDomain(&list_));
    case AttrType::kFrontendAttributes:
    case AttrType::kReplicaGroups:
    case AttrType::kSharding:
    case AttrType::kResultAccuracy:
    case AttrType::kStatistics:
    case AttrType::kOrigin: {
      ListId list;
      bool ok = false;
      if (info.type == AttrType::kFrontendAttributes) ok = ParseFrontendAttributes(in_, context_.get(), &list);
      if (info.type == AttrType::kReplicaGroups) ok = ParseReplicaGroups(in_, context_.get(), &list);
      if (info.type == AttrType::kSharding) ok = ParseSharding(in_, context_.get(), &list);
      if (info.type == AttrType::kResultAccuracy) ok = ParseResultAccuracy(in_, context_.get(), &list);
      if (info.type == AttrType::kStatistics) ok = ParseStatistics(in_, context_.get(), &list);
      if (info.type == AttrType::kOrigin) ok = ParseOriginalValue(in_, context_.get(), &list);
      *payload = list.value;
      return ok;
    }
    case AttrType::kComputation:
    case AttrType::kComputationList:
    case AttrType::kMetadata:
    case AttrType::kUnknown:
      break;  // read by ParseAttribute
  }
  return in_.ErrorHere(DiagnosticKind::kBadAttribute, StrCat("unsupported attribute `", info.text, "`"));
}

bool ModuleParser::ParseEnum(EnumType type, std::string_view attr_name, uint32_t* payload) {
  const SourceRange range = in_.Next();
  const std::string_view word = in_.BareName();
  std::optional<uint32_t> value = EnumFromText(type, word);
  if (!value && (type == EnumType::kPrecision || type == EnumType::kDotAlgorithm)) {
    // XLA reads these in any case.
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
  return Error(DiagnosticKind::kBadAttribute, range,
               StrCat("invalid value `", word, "` for attribute `", attr_name, "`"), hint);
}

bool ModuleParser::ParseStringPayload(uint32_t* payload) {
  std::string_view value;
  bool stable;
  if (!in_.String(&value, &scratch_, &stable)) return false;
  *payload = InternString(value, stable).value;
  return true;
}

bool ModuleParser::ParseIntList(char open, char close, std::vector<int64_t>* list) {
  if (!in_.Expect(open, "before a list of integers")) return false;
  if (in_.TryConsume(close)) return true;
  do {
    int64_t value;
    if (!in_.Int(&value)) return false;
    list->push_back(value);
  } while (in_.TryConsume(','));
  return in_.Expect(close, "after a list of integers");
}

bool ModuleParser::ParseIntListList(std::vector<int64_t>* list) {
  if (!in_.Expect('{', "before a list of lists")) return false;
  if (in_.TryConsume('}')) return true;
  do {
    const size_t count_at = list->size();
    list->push_back(0);
    if (!ParseIntList('{', '}', list)) return false;
    (*list)[count_at] = static_cast<int64_t>(list->size() - count_at - 1);
  } while (in_.TryConsume(','));
  return in_.Expect('}', "after a list of lists");
}

bool ModuleParser::ParseBoolList(std::vector<int64_t>* list, bool allow_single) {
  bool value;
  if (allow_single && in_.Peek() != '{') {
    if (!in_.Bool(&value)) return false;
    list->push_back(value);
    return true;
  }
  if (!in_.Expect('{', "before a list of booleans")) return false;
  if (in_.TryConsume('}')) return true;
  do {
    if (!in_.Bool(&value)) return false;
    list->push_back(value);
  } while (in_.TryConsume(','));
  return in_.Expect('}', "after a list of booleans");
}

bool ModuleParser::ParsePrecisionList(std::vector<int64_t>* list) {
  if (!in_.Expect('{', "before a list of precisions")) return false;
  if (in_.TryConsume('}')) return true;
  do {
    uint32_t value;
    if (!ParseEnum(EnumType::kPrecision, "operand_precision", &value)) return false;
    list->push_back(value);
  } while (in_.TryConsume(','));
  return in_.Expect('}', "after a list of precisions");
}

bool ModuleParser::ParseInstructionList(ComputationId computation, std::vector<int64_t>* list) {
  if (!in_.Expect('{', "before a list of instructions")) return false;
  if (in_.TryConsume('}')) return true;
  do {
    const SourceRange range = in_.Next();
    std::string_view name;
    if (!in_.ExpectName(&name, "an instruction name")) return false;
    const StringId id = context_->strings.Find(name);
    const InstructionId found = id.valid() ? Lookup(id, computation) : InstructionId();
    if (!found.valid()) {
      return Error(DiagnosticKind::kUndefinedOperand, range, StrCat("use of undefined instruction `", name, "`"));
    }
    list->push_back(found.value);
  } while (in_.TryConsume(','));
  return in_.Expect('}', "after a list of instructions");
}

bool ModuleParser::ParseShapeList(std::vector<int64_t>* list) {
  if (!in_.Expect('{', "before a list of shapes")) return false;
  if (in_.TryConsume('}')) return true;
  do {
    Shape shape;
    if (!shapes_.Parse(&shape)) return false;
    list->push_back(shape.id().value);
  } while (in_.TryConsume(','));
  return in_.Expect('}', "after a list of shapes");
}

bool ModuleParser::ParseSliceRanges(std::vector<int64_t>* list) {
  if (!in_.Expect('{', "before the ranges of a slice")) return false;
  if (in_.TryConsume('}')) return true;
  do {
    int64_t start, limit, stride = 1;
    if (!in_.Expect('[', "before a range") || !in_.Int(&start) || !in_.Expect(':', "in a range") || !in_.Int(&limit)) {
      return false;
    }
    if (in_.TryConsume(':') && !in_.Int(&stride)) return false;
    if (!in_.Expect(']', "after a range")) return false;
    list->insert(list->end(), {start, limit, stride});
  } while (in_.TryConsume(','));
  return in_.Expect('}', "after the ranges of a slice");
}

bool ModuleParser::ParsePadding(std::vector<int64_t>* list, bool allow_interior) {
  // low_high[_interior], an `x` between dimensions. No blanks inside.
  const auto bad = [&] {
    return in_.ErrorHere(DiagnosticKind::kBadAttribute,
                         allow_interior ? "expected low_high or low_high_interior for each dimension"
                                        : "expected low_high for each dimension",
                         allow_interior ? "for example padding=0_1x2_2_1" : "for example pad=0_1x2_2");
  };
  if (!in_.AtInt()) return true;  // rank 0: `padding=`
  do {
    int64_t low, high, interior = 0;
    if (!in_.Int(&low)) return false;
    if (*in_.cursor() != '_') return bad();
    in_.set_cursor(in_.cursor() + 1);
    if (!in_.AtInt()) return bad();
    if (!in_.Int(&high)) return false;
    if (*in_.cursor() == '_') {
      if (!allow_interior) return bad();
      in_.set_cursor(in_.cursor() + 1);
      if (!in_.AtInt()) return bad();
      if (!in_.Int(&interior)) return false;
    }
    list->insert(list->end(), {low, high, interior});
    if (*in_.cursor() != 'x') break;
    in_.set_cursor(in_.cursor() + 1);
  } while (true);
  return !char_class::Is(*in_.cursor(), char_class::kName) || bad();
}

// {lhs={sparsity=AxB dimension=D stride=S idx=I} rhs={...}}, kept as the text XLA prints: sides in this order, every
// field of a side.
bool ModuleParser::ParseSparsity(uint32_t* payload) {
  static constexpr std::string_view kSides[] = {"lhs", "rhs"};
  static constexpr std::string_view kFields[] = {"sparsity", "dimension", "stride", "idx"};
  std::string sides[2];
  if (!in_.Expect('{', "before a sparsity config")) return false;
  while (!in_.TryConsume('}')) {
    const SourceRange range = in_.Next();
    std::string_view side;
    if (!in_.ExpectName(&side, "lhs or rhs") || !in_.Expect('=', "in a sparsity config")) return false;
    const size_t which = side == kSides[0] ? 0 : 1;
    if (side != kSides[which] || !sides[which].empty()) {
      return Error(DiagnosticKind::kBadAttribute, range, "expected at most one lhs and one rhs in a sparsity config");
    }
    if (!in_.Expect('{', "in a sparsity config")) return false;
    std::vector<int64_t> values[4];
    while (!in_.TryConsume('}')) {
      const SourceRange field_range = in_.Next();
      std::string_view field;
      if (!in_.ExpectName(&field, "a field of a sparsity config") || !in_.Expect('=', "in a sparsity config")) {
        return false;
      }
      size_t k = 0;
      while (k < 4 && kFields[k] != field) ++k;
      if (k == 4 || !values[k].empty()) {
        return Error(DiagnosticKind::kUnknownAttribute, field_range,
                     StrCat("expected each of sparsity, dimension, stride and idx once in a sparsity config, found `",
                            field, "`"));
      }
      if (!ParseDimXDim(&values[k])) return false;
      in_.TryConsume(',');
    }
    std::string text = StrCat(side, "={");
    for (size_t k = 0; k < 4; ++k) {
      StrAppend(&text, k == 0 ? "" : " ", kFields[k], "=");
      if (values[k].empty()) values[k].push_back(0);
      for (size_t n = 0; n < values[k].size(); ++n) StrAppend(&text, n == 0 ? "" : "x", values[k][n]);
    }
    sides[which] = StrCat(text, "}");
    in_.TryConsume(',');
  }
  const std::string_view gap = sides[0].empty() || sides[1].empty() ? "" : " ";
  *payload = context_->strings.Intern(StrCat("{", sides[0], gap, sides[1], "}")).value;
  return true;
}

bool ModuleParser::ParseDimXDim(std::vector<int64_t>* list) {
  for (;;) {
    int64_t value;
    if (!in_.Int(&value)) return false;
    list->push_back(value);
    if (*in_.cursor() != 'x') return true;
    in_.set_cursor(in_.cursor() + 1);
  }
}

bool ModuleParser::ParseWindow(std::vector<int64_t>* list) {
  if (!in_.Expect('{', "before a window")) return false;
  static constexpr std::string_view kFields[] = {"size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"};
  std::vector<int64_t> values[6];  // pad: low, high, 0 for each dimension
  SourceRange places[6];
  while (!in_.TryConsume('}')) {
    const SourceRange range = in_.Next();
    std::string_view name;
    if (!in_.ExpectName(&name, "a part of a window") || !in_.Expect('=', "after the name of a part of a window")) {
      return false;
    }
    size_t field = 0;
    while (field < 6 && kFields[field] != name) ++field;
    if (field == 6) {
      return Error(DiagnosticKind::kUnknownAttribute, range, StrCat("unknown window field `", name, "`"),
                   DidYouMean(name, {std::begin(kFields), std::end(kFields)}));
    }
    if (!values[field].empty()) {
      return Error(DiagnosticKind::kDuplicateAttribute, range, StrCat("duplicate attribute `", name, "`"));
    }
    places[field] = range;
    if (!(field == 2 ? ParsePadding(&values[field], /*allow_interior=*/false) : ParseDimXDim(&values[field])))
      return false;
    in_.TryConsume(',');
  }
  const size_t rank = values[0].size();
  for (size_t field = 1; field < 6; ++field) {
    const size_t given = values[field].size() / (field == 2 ? 3 : 1);
    if (given != 0 && given != rank) {
      return Error(DiagnosticKind::kBadAttribute, places[field],
                   StrCat("`", kFields[field], "` has ", given, " dimensions, but `size` has ", rank));
    }
  }
  for (size_t i = 0; i < rank; ++i) {
    const auto at = [&](size_t field, int64_t absent) { return values[field].empty() ? absent : values[field][i]; };
    list->insert(list->end(), {values[0][i], at(1, 1), values[2].empty() ? 0 : values[2][3 * i],
                               values[2].empty() ? 0 : values[2][3 * i + 1], at(3, 1), at(4, 1), at(5, 0)});
  }
  return true;
}

bool ModuleParser::ParseConvolutionDims(std::vector<int64_t>* list) {
  // lhs_rhs->out, each a permutation of two letters and the digits of the spatial dimensions; `?` is a dimension
  // without meaning.
  const SourceRange start = in_.Next();
  const char* p = in_.cursor();
  std::string_view parts[3];
  const auto part = [&p] {
    const char* begin = p;
    while ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || *p == '?') ++p;
    return std::string_view(begin, static_cast<size_t>(p - begin));
  };
  const auto bad = [&](std::string message) {
    const auto size = static_cast<uint32_t>(p - in_.cursor());
    return Error(DiagnosticKind::kBadAttribute, {start.offset, size == 0 ? 1 : size}, std::move(message),
                 "for example dim_labels=b01f_01io->b01f");
  };
  parts[0] = part();
  if (*p != '_') return bad("expected `_` after the labels of the input");
  ++p;
  parts[1] = part();
  if (p[0] != '-' || p[1] != '>') return bad("expected `->` after the labels of the kernel");
  p += 2;
  parts[2] = part();
  size_t spatial = 0;
  for (char c : parts[0]) spatial += c >= '0' && c <= '9';
  list->assign(1, static_cast<int64_t>(spatial));
  static constexpr std::string_view kLetters[] = {"bf", "io", "bf"};
  static constexpr std::string_view kWhat[] = {"input", "kernel", "output"};
  for (size_t i = 0; i < 3; ++i) {
    const size_t base = list->size();
    list->resize(base + 2 + spatial, -1);
    size_t digits = 0;
    for (size_t d = 0; d < parts[i].size(); ++d) {
      const char c = parts[i][d];
      if (c == '?') continue;
      size_t slot;
      if (c == kLetters[i][0]) {
        slot = 0;
      } else if (c == kLetters[i][1]) {
        slot = 1;
      } else if (c >= '0' && c <= '9' && static_cast<size_t>(c - '0') < spatial) {
        slot = 2 + static_cast<size_t>(c - '0');
        ++digits;
      } else {
        return bad(StrCat("invalid label `", c, "` in the ", kWhat[i], " dimensions"));
      }
      if ((*list)[base + slot] >= 0) return bad(StrCat("duplicate label `", c, "` in the ", kWhat[i], " dimensions"));
      (*list)[base + slot] = static_cast<int64_t>(d);
    }
    if (digits != spatial) {
      return bad(StrCat("input, kernel and output must have the same number of spatial dimensions: the input has ",
                        spatial, ", the ", kWhat[i], " ", digits));
    }
    for (size_t slot = 0; slot < 2; ++slot) {
      if ((*list)[base + slot] < 0) return bad(StrCat("missing label `", kLetters[i][slot], "` in the ", kWhat[i]));
    }
  }
  in_.set_cursor(p);
  return true;
}

bool ModuleParser::ParseOperandAliasing(std::vector<int64_t>* list) {
  if (!in_.Expect('{', "before aliasing")) return false;
  while (in_.Peek() != '}') {
    const auto index = [this, list] {
      const size_t count_at = list->size();
      list->push_back(0);
      if (!ParseIntList('{', '}', list)) return false;
      (*list)[count_at] = static_cast<int64_t>(list->size() - count_at - 1);
      return true;
    };
    int64_t operand;
    if (!index() || !in_.Expect(':', "after an output index") || !in_.Expect('(', "before an operand number") ||
        !in_.Int(&operand)) {
      return false;
    }
    list->push_back(operand);
    if (!in_.Expect(',', "after an operand number") || !index() || !in_.Expect(')', "after an operand index")) {
      return false;
    }
    if (!in_.TryConsume(',')) break;
  }
  return in_.Expect('}', "after aliasing");
}

bool ModuleParser::ParseDomain(std::vector<int64_t>* list) {
  StringId kind;
  ListId entry, exit;
  if (!in_.Expect('{', "before a domain")) return false;
  while (!in_.TryConsume('}')) {
    const SourceRange range = in_.Next();
    std::string_view name;
    if (!in_.ExpectName(&name, "a part of a domain") || !in_.Expect('=', "in a domain")) return false;
    if (name == "kind") {
      uint32_t payload;
      if (!ParseStringPayload(&payload)) return false;
      kind = StringId(payload);
      if (context_->str(kind) != "sharding") {
        return Error(DiagnosticKind::kBadAttribute, range,
                     StrCat("unsupported domain kind `", context_->str(kind), "`; expected `sharding`"));
      }
    } else if (name == "entry" || name == "exit") {
      if (!ParseSharding(in_, context_.get(), name == "entry" ? &entry : &exit)) return false;
    } else {
      return Error(DiagnosticKind::kUnknownAttribute, range, StrCat("unknown domain field `", name, "`"));
    }
    in_.TryConsume(',');
  }
  if (!kind.valid() || !entry.valid() || !exit.valid()) {
    return in_.ErrorHere(DiagnosticKind::kMissingAttribute, "missing domain field: expected kind, entry and exit");
  }
  list->assign({int64_t{kind.value}, int64_t{entry.value}, int64_t{exit.value}});
  return true;
}

bool ModuleParser::ParseLiteralWithShape(uint32_t* payload) {
  // `shape value`, or `( shape value, shape value )` for a tuple of arrays.
  LiteralLimits limits;
  limits.budget = &literal_budget_;
  const auto one = [&](LiteralId* id, Shape* shape) {
    return shapes_.Parse(shape) && ParseLiteral(in_, context_.get(), *shape, limits, id);
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

}  // namespace hlokit

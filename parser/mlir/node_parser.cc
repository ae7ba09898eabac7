// SPDX-License-Identifier: Apache-2.0
#include "parser/mlir/node_parser.h"

#include <bit>
#include <charconv>

#include "parser/mlir/dense_parser.h"

namespace hlokit::mlir {

NodeId NodeParser::Parse(Goal goal) {
  NodeId value;
  const size_t base = frames_.size();
  const size_t values = values_.size();
  const size_t ints = ints_.size();
  const Step step = Start(&goal, &value);
  return Run(base, values, ints, step, goal, value);
}

NodeId NodeParser::ParseFields(std::string_view name) {
  NodeId value;
  const size_t base = frames_.size();
  const size_t values = values_.size();
  const size_t ints = ints_.size();
  Goal goal = Goal::kAttribute;
  Push(FrameKind::kFields).text = std::string(name);
  const Step step = NextEntry(&goal, &value);
  return Run(base, values, ints, step, goal, value);
}

NodeId NodeParser::Run(size_t base, size_t values, size_t ints, Step step, Goal goal, NodeId value) {
  for (;;) {
    while (step == Step::kValue && frames_.size() > base) step = Accept(&goal, &value);
    if (step == Step::kValue) return value;
    if (step == Step::kMore && static_cast<int64_t>(frames_.size() - base) <= limits_.max_nesting) {
      step = Start(&goal, &value);
      continue;
    }
    if (step == Step::kMore) {
      in_.Error(DiagnosticKind::kTooDeep, in_.Next(), StrCat("nested deeper than ", limits_.max_nesting));
    }
    frames_.resize(base);
    values_.resize(values);
    ints_.resize(ints);
    return {};
  }
}

NodeParser::Frame& NodeParser::Push(FrameKind kind) {
  frames_.push_back({});
  Frame& frame = frames_.back();
  frame.kind = kind;
  frame.first_value = values_.size();
  frame.first_int = ints_.size();
  return frame;
}

NodeParser::Step NodeParser::Close(NodeKind kind, std::string_view text, NodeId* value) {
  const Frame& frame = frames_.back();
  const absl::Span<const NodeId> children(values_.data() + frame.first_value, values_.size() - frame.first_value);
  const absl::Span<const int64_t> ints(ints_.data() + frame.first_int, ints_.size() - frame.first_int);
  *value = nodes_.Make(kind, text, ints, children);
  values_.resize(frame.first_value);
  ints_.resize(frame.first_int);
  frames_.pop_back();
  return Step::kValue;
}

NodeParser::Step NodeParser::Start(Goal* goal, NodeId* value) {
  switch (*goal) {
    case Goal::kType:
      return StartType(goal, value);
    case Goal::kAttribute:
      return StartAttribute(goal, value);
    case Goal::kLocation:
      return StartLocation(goal, value);
  }
  return Step::kError;
}

// ---- types ----

namespace {

constexpr std::string_view kFloatTypes[] = {
    "f16",      "bf16",   "f32",           "f64",        "tf32",       "f80",       "f128",     "f8E5M2",   "f8E4M3",
    "f8E4M3FN", "f8E3M4", "f8E4M3B11FNUZ", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E8M0FNU", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN"};

// Returns the width of `i32`, `si32` or `ui32`; 0 if `word` is none of them.
int64_t IntegerWidth(std::string_view word, Signedness* sign) {
  *sign = Signedness::kSignless;
  if (word.starts_with("si") || word.starts_with("ui")) {
    *sign = word[0] == 's' ? Signedness::kSigned : Signedness::kUnsigned;
    word.remove_prefix(1);
  }
  if (!word.starts_with('i') || word.size() < 2 || word.size() > 9) return 0;
  int64_t width = 0;
  const auto [stop, error] = std::from_chars(word.data() + 1, word.data() + word.size(), width);
  return error == std::errc() && stop == word.data() + word.size() ? width : 0;
}

}  // namespace

NodeParser::Step NodeParser::StartType(Goal* goal, NodeId* value) {
  const char c = in_.Peek();
  if (c == '(') {
    in_.TryConsume('(');
    Frame& frame = Push(FrameKind::kFunctionInputs);
    if (!in_.TryConsume(')')) return Step::kMore;  // the goal is a type
    frame.kind = FrameKind::kFunctionResults;
    ints_.push_back(0);
    if (!in_.Expect("->", "in function type")) return Step::kError;
    frame.parenthesized = in_.TryConsume('(');
    if (frame.parenthesized && in_.TryConsume(')')) return Close(NodeKind::kFunctionType, "", value);
    return Step::kMore;
  }
  if (c == '!') return StartDialectType(goal, value);
  const std::string_view word = in_.PeekWord();
  if (word.empty()) return Fail(StrCat("expected non-function type, found ", in_.DescribeNext()));
  Signedness sign;
  if (const int64_t width = IntegerWidth(word, &sign); width > 0) {
    in_.Word();
    *value = nodes_.IntegerType(width, sign);
    return Step::kValue;
  }
  for (std::string_view name : kFloatTypes) {
    if (word != name) continue;
    in_.Word();
    *value = nodes_.Make(NodeKind::kFloatType, name, {}, {});
    return Step::kValue;
  }
  if (word == "index" || word == "none") {
    *value = nodes_.Make(word == "index" ? NodeKind::kIndexType : NodeKind::kNoneType);
    in_.Word();
    return Step::kValue;
  }
  if (word == "tensor" || word == "memref" || word == "vector") {
    in_.Word();
    return StartShaped(word == "tensor"   ? NodeKind::kTensorType
                       : word == "memref" ? NodeKind::kMemRefType
                                          : NodeKind::kVectorType,
                       goal, value);
  }
  if (word == "tuple" || word == "complex") {
    in_.Word();
    if (!in_.Expect('<', "in type")) return Step::kError;
    const bool tuple = word == "tuple";
    Push(tuple ? FrameKind::kTuple : FrameKind::kComplex);
    if (tuple && in_.TryConsume('>')) return Close(NodeKind::kTupleType, "", value);
    *goal = Goal::kType;
    return Step::kMore;
  }
  in_.Error(DiagnosticKind::kUnknownType, in_.Next(), StrCat("expected non-function type, found ", in_.DescribeNext()));
  return Step::kError;
}

NodeParser::Step NodeParser::StartShaped(NodeKind kind, Goal* goal, NodeId* /*value*/) {
  if (!in_.Expect('<', "in type")) return Step::kError;
  Frame& frame = Push(FrameKind::kShaped);
  frame.node = kind;
  *goal = Goal::kType;
  if (in_.TryConsume('*')) {
    if (!in_.TryConsume('x')) return Fail("expected 'x' in type");
    frame.node = NodeKind::kUnrankedTensorType;
    return Step::kMore;
  }
  for (;;) {
    const char c = in_.Peek();
    const char* p = in_.at();
    if (c == '?') {
      ints_.push_back(kDynamicSize);
      in_.set_at(p + 1);
    } else if (c >= '0' && c <= '9') {
      int64_t size = 0;
      const auto [stop, error] = std::from_chars(p, in_.end(), size);
      if (error != std::errc()) return Fail("invalid dimension");
      ints_.push_back(size);
      in_.set_at(stop);
    } else {
      return Step::kMore;
    }
    if (!in_.TryConsume('x')) return Fail(StrCat("expected 'x' in dimension list, found ", in_.DescribeNext()));
  }
}

NodeParser::Step NodeParser::AcceptShaped(Goal* goal, NodeId* value) {
  Frame& frame = frames_.back();
  values_.push_back(*value);
  if (frame.number++ == 0) {
    const NodeKind element = nodes_.kind(*value);
    if (frame.node == NodeKind::kTensorType &&
        (element == NodeKind::kTensorType || element == NodeKind::kTupleType || element == NodeKind::kFunctionType)) {
      return Fail("invalid tensor element type");
    }
  }
  if (in_.TryConsume(',')) {
    *goal = Goal::kAttribute;
    return Step::kMore;
  }
  if (!in_.Expect('>', "at the end of a type")) return Step::kError;
  return Close(frame.node, "", value);
}

NodeParser::Step NodeParser::AcceptFunction(Goal* goal, NodeId* value) {
  Frame& frame = frames_.back();
  values_.push_back(*value);
  *goal = Goal::kType;
  if (frame.kind == FrameKind::kFunctionInputs) {
    if (in_.TryConsume(',')) return Step::kMore;
    if (!in_.Expect(')', "in function type") || !in_.Expect("->", "in function type")) return Step::kError;
    frame.kind = FrameKind::kFunctionResults;
    ints_.push_back(static_cast<int64_t>(values_.size() - frame.first_value));
    frame.parenthesized = in_.TryConsume('(');
    if (frame.parenthesized && in_.TryConsume(')')) return Close(NodeKind::kFunctionType, "", value);
    return Step::kMore;
  }
  if (frame.parenthesized) {
    if (in_.TryConsume(',')) return Step::kMore;
    if (!in_.Expect(')', "in function type")) return Step::kError;
  }
  return Close(NodeKind::kFunctionType, "", value);
}

namespace {

// Returns the parameters of a quantized type with its numbers as they are printed, so that equal types have equal
// texts.
std::string WithPrintedFloats(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool starts = (text[i] >= '0' && text[i] <= '9') && (out.empty() || (out.back() != 'i' && out.back() != 'f'));
    size_t end = i;
    while (starts && end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    double number = 0;
    if (starts && end < text.size() && text[end] == '.') {
      const auto [stop, error] = std::from_chars(text.data() + i, text.data() + text.size(), number);
      if (error == std::errc()) {
        AppendFloat(number, "f64", &out);
        i = static_cast<size_t>(stop - text.data());
        continue;
      }
    }
    if (end == i) ++end;
    const std::string_view piece = text.substr(i, end - i);
    if (piece != "\n") out.append(piece);
    i = end;
  }
  return out;
}

}  // namespace

NodeParser::Step NodeParser::StartDialectType(Goal* goal, NodeId* value) {
  const uint32_t start = in_.Here();
  in_.TryConsume('!');
  const std::string name(in_.SuffixName());
  if (name.empty()) return Fail("expected type name after '!'");
  const bool has_body = *in_.at() == '<';
  if (name.find('.') == std::string::npos && !has_body) {
    const auto found = type_aliases_.find(name);
    if (found == type_aliases_.end()) {
      in_.Error(DiagnosticKind::kUnknownType, {start, in_.Here() - start},
                StrCat("undefined symbol alias id '", name, "'"));
      return Step::kError;
    }
    *value = found->second;
    return Step::kValue;
  }
  if (has_body && (name == "stablehlo.future" || name == "mhlo.async_bundle")) {
    in_.TryConsume('<');
    Push(FrameKind::kFuture);
    if (in_.TryConsume('>')) return Close(NodeKind::kFutureType, "", value);
    *goal = Goal::kType;
    return Step::kMore;
  }
  std::string text = name;
  if (has_body) {
    in_.TryConsume('<');
    std::string_view body;
    if (!in_.Balanced('>', &body)) return Step::kError;
    StrAppend(&text, "<", name.starts_with("quant.") ? WithPrintedFloats(body) : std::string(body), ">");
  }
  *value = nodes_.Make(NodeKind::kDialectType, text, {}, {});
  return Step::kValue;
}

// ---- attributes ----

NodeParser::Step NodeParser::StartAttribute(Goal* goal, NodeId* value) {
  switch (in_.Peek()) {
    case '"': {
      std::string text;
      if (!in_.String(&text)) return Step::kError;
      if (in_.TryConsume(':')) {
        Push(FrameKind::kString).text = std::move(text);
        *goal = Goal::kType;
        return Step::kMore;
      }
      *value = nodes_.String(text);
      return Step::kValue;
    }
    case '[':
      in_.TryConsume('[');
      Push(FrameKind::kArray);
      if (in_.TryConsume(']')) return Close(NodeKind::kArray, "", value);
      *goal = Goal::kAttribute;
      return Step::kMore;
    case '{':
      in_.TryConsume('{');
      Push(FrameKind::kDictionary);
      return NextEntry(goal, value);
    case '@':
      return StartSymbol(value);
    case '#':
      return StartDialectAttribute(goal, value);
    case '(':
    case '!':
      return StartType(goal, value);
    default:
      break;
  }
  if (in_.AtNumber()) return StartNumber(goal, value);
  const std::string_view word = in_.PeekWord();
  if (word.empty()) return Fail(StrCat("expected attribute value, found ", in_.DescribeNext()));
  return StartWord(word, goal, value);
}

NodeParser::Step NodeParser::StartWord(std::string_view word, Goal* goal, NodeId* value) {
  if (word == "true" || word == "false") {
    *value = nodes_.Bool(word == "true");
    in_.Word();
    return Step::kValue;
  }
  if (word == "unit") {
    *value = nodes_.Make(NodeKind::kUnit);
    in_.Word();
    return Step::kValue;
  }
  if (word == "dense") return StartDense(goal);
  if (word == "array") return StartDenseArray(value);
  if (word == "dense_resource") {
    in_.Word();
    std::string_view key;
    if (!in_.Expect('<') || !in_.Balanced('>', &key) || !in_.Expect(':', "after a resource")) return Step::kError;
    Push(FrameKind::kDenseResource).text = std::string(key);
    *goal = Goal::kType;
    return Step::kMore;
  }
  if (word == "loc") {
    in_.Word();
    if (!in_.Expect('(')) return Step::kError;
    Frame& frame = Push(FrameKind::kNameLocation);
    frame.is_hex = true;  // the parentheses of `loc` itself
    *goal = Goal::kLocation;
    return Step::kMore;
  }
  if (word == "affine_map" || word == "affine_set" || word == "strided" || word == "sparse" || word == "distinct") {
    const char* const begin = in_.at();
    in_.Word();
    std::string_view body;
    if (word == "distinct") {
      if (!in_.Expect('[') || !in_.Balanced(']', &body)) return Step::kError;
    }
    if (!in_.Expect('<') || !in_.Balanced('>', &body)) return Step::kError;
    *value = nodes_.Make(NodeKind::kVerbatim, {begin, static_cast<size_t>(in_.at() - begin)}, {}, {});
    return Step::kValue;
  }
  return StartType(goal, value);
}

NodeParser::Step NodeParser::StartSymbol(NodeId* value) {
  const auto name = [&](std::string* text) {
    if (*in_.at() == '"') return in_.String(text);
    text->assign(in_.SuffixName());
    return !text->empty() || in_.ErrorHere("expected symbol name after '@'");
  };
  in_.TryConsume('@');
  std::string root;
  if (!name(&root)) return Step::kError;
  std::vector<int64_t> nested;
  while (in_.TryConsume("::")) {
    std::string text;
    if (!in_.Expect('@') || !name(&text)) return Step::kError;
    nested.push_back(nodes_.strings().Intern(text).value);
  }
  *value = nodes_.Make(NodeKind::kSymbol, root, nested, {});
  return Step::kValue;
}

NodeParser::Step NodeParser::StartNumber(Goal* goal, NodeId* value) {
  const char* const begin = in_.at();
  const char* p = begin + (*begin == '-');
  const bool hex = p[0] == '0' && p[1] == 'x';
  while (!hex && *p >= '0' && *p <= '9') ++p;
  const bool is_float = !hex && *p == '.';
  int64_t number = 0;
  if (is_float) {
    double parsed = 0;
    const auto [stop, error] = std::from_chars(begin, in_.end(), parsed);
    if (error == std::errc::invalid_argument) return Fail("expected a number");
    if (error == std::errc::result_out_of_range) return Fail("floating point value too large for attribute");
    in_.set_at(stop);
    number = std::bit_cast<int64_t>(parsed);
  } else if (!in_.Integer(&number)) {
    return Step::kError;
  }
  if (!in_.TryConsume(':')) {
    const NodeId type = is_float ? nodes_.Make(NodeKind::kFloatType, "f64", {}, {}) : nodes_.IntegerType(64);
    *value = nodes_.Make(is_float ? NodeKind::kFloat : NodeKind::kInteger, "", {&number, 1}, {&type, 1});
    return Step::kValue;
  }
  Frame& frame = Push(FrameKind::kTyped);
  frame.number = number;
  frame.is_float = is_float;
  frame.is_hex = hex;
  *goal = Goal::kType;
  return Step::kMore;
}

NodeParser::Step NodeParser::AcceptTyped(NodeId* value) {
  Frame& frame = frames_.back();
  const NodeId type = *value;
  int64_t number = frame.number;
  const NodeKind kind = nodes_.kind(type);
  if (kind == NodeKind::kFloatType) {
    if (frame.is_hex) {
      double parsed = 0;
      if (!FloatFromBits(nodes_.text(type), static_cast<uint64_t>(number), &parsed)) {
        return Fail("hexadecimal float constant out of range for type");
      }
      number = std::bit_cast<int64_t>(parsed);
    } else if (!frame.is_float) {
      return Fail("unexpected decimal integer literal for a floating point value",
                  "add a trailing dot to make the literal a float");
    }
    frames_.pop_back();
    *value = nodes_.Make(NodeKind::kFloat, "", {&number, 1}, {&type, 1});
    return Step::kValue;
  }
  if (frame.is_float) return Fail("floating point value not valid for specified type");
  if (kind != NodeKind::kIntegerType && kind != NodeKind::kIndexType)
    return Fail("integer literal not valid for specified type");
  if (kind == NodeKind::kIntegerType && nodes_.ints(type)[0] < 64) {
    const int64_t limit = int64_t{1} << nodes_.ints(type)[0];
    const bool is_unsigned = nodes_.ints(type)[1] == static_cast<int64_t>(Signedness::kUnsigned);
    if (number >= limit || number < -(limit / 2) || (is_unsigned && number < 0)) {
      in_.Error(DiagnosticKind::kNumberOutOfRange, in_.Next(), "integer constant out of range for attribute");
      return Step::kError;
    }
    // Signless values are stored with their sign: `255 : i8` is -1.
    if (!is_unsigned && nodes_.ints(type)[0] > 1 && number >= limit / 2) number -= limit;
    if (nodes_.ints(type)[0] == 1) number = number != 0;
  }
  frames_.pop_back();
  *value = nodes_.Integer(number, type);
  return Step::kValue;
}

NodeId NodeParser::ParseNumber(NodeId type) {
  int64_t number = 0;
  if (!in_.Integer(&number)) return {};
  return nodes_.Integer(number, type);
}

NodeParser::Step NodeParser::StartDense(Goal* goal) {
  in_.Word();
  if (!in_.Expect('<', "after dense")) return Step::kError;
  Frame& frame = Push(FrameKind::kDense);
  // The elements are read when the type is known. They have no bracket of this kind, and strings no bracket at all.
  frame.begin = in_.Here();
  for (const char* p = in_.at();; ++p) {
    if (p >= in_.end()) return Fail("expected '>' after the elements");
    if (*p == '"') {
      do ++p;
      while (p < in_.end() && *p != '"');
    } else if (*p == '>') {
      in_.set_at(p);
      break;
    } else if (*p == '{' || *p == '}') {
      in_.set_at(p);
      return Fail("expected '>' after the elements");
    }
  }
  frame.end = in_.Here();
  if (!in_.Expect('>') || !in_.Expect(':', "after the elements")) return Step::kError;
  *goal = Goal::kType;
  return Step::kMore;
}

NodeParser::Step NodeParser::StartDenseArray(NodeId* value) {
  in_.Word();
  if (!in_.Expect('<')) return Step::kError;
  const NodeId type = ParseType();
  if (!type.valid()) return Step::kError;
  const bool is_float = nodes_.kind(type) == NodeKind::kFloatType;
  if (!is_float && nodes_.kind(type) != NodeKind::kIntegerType) return Fail("expected integer or float type");
  std::vector<int64_t> values;
  if (in_.TryConsume(':')) {
    do {
      int64_t number = 0;
      const std::string_view word = in_.PeekWord();
      if (word == "true" || word == "false") {
        number = word == "true";
        in_.Word();
      } else if (is_float) {
        in_.Skip();
        double parsed = 0;
        const auto [stop, error] = std::from_chars(in_.at(), in_.end(), parsed);
        if (error != std::errc()) return Fail("expected a number");
        in_.set_at(stop);
        number = std::bit_cast<int64_t>(parsed);
      } else if (!in_.Integer(&number)) {
        return Step::kError;
      }
      values.push_back(number);
    } while (in_.TryConsume(','));
  }
  if (!in_.Expect('>', "at the end of an array")) return Step::kError;
  *value = nodes_.Make(NodeKind::kDenseArray, "", values, {&type, 1});
  return Step::kValue;
}

NodeParser::Step NodeParser::StartDialectAttribute(Goal* goal, NodeId* value) {
  in_.Skip();
  const char* const begin = in_.at();
  const uint32_t start = in_.Here();
  in_.TryConsume('#');
  const std::string name(in_.SuffixName());
  if (name.empty()) return Fail("expected attribute name after '#'");
  const size_t dot = name.find('.');
  const bool has_body = *in_.at() == '<';
  if (dot == std::string::npos && !has_body) {
    const NodeId found = FindAttributeAlias(name);
    if (!found.valid()) {
      in_.Error(DiagnosticKind::kUnexpectedToken, {start, in_.Here() - start},
                StrCat("undefined symbol alias id '", name, "'"));
      return Step::kError;
    }
    *value = found;
    return Step::kValue;
  }
  const std::string_view dialect = std::string_view(name).substr(0, dot);
  if (has_body && (name == "stablehlo.bounds" || name == "stablehlo.type_extensions")) {
    // Both forms are the short one: #stablehlo.bounds<3, ?>.
    in_.TryConsume('<');
    std::string_view body;
    if (!in_.Balanced('>', &body)) return Step::kError;
    if (name == "stablehlo.type_extensions") {
      const size_t open = body.find('['), close = body.find(']');
      if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
        return Fail("expected bounds = [...] in type_extensions");
      }
      body = body.substr(open + 1, close - open - 1);
    }
    std::string text = "#stablehlo.bounds<";
    for (char c : body) {
      if (c != ' ' && c != '\n' && c != '\t') text.push_back(c);
      if (c == ',') text.push_back(' ');
    }
    *value = nodes_.Make(NodeKind::kVerbatim, text + ">", {}, {});
    return Step::kValue;
  }
  if (has_body && (dialect == "stablehlo" || dialect == "chlo" || dialect == "mhlo")) {
    in_.TryConsume('<');
    const char* const body = in_.at();
    const std::string word(in_.Word());
    if (dot == std::string::npos) {
      // #stablehlo<precision HIGH>, or #stablehlo<fields ...>
      const std::string second(in_.Word());
      if (!word.empty() && !second.empty() && in_.TryConsume('>')) {
        *value = nodes_.Enum(StrCat(dialect, ".", word), second);
        return Step::kValue;
      }
      if (!word.empty() && second.empty() && in_.TryConsume('<')) {
        Push(FrameKind::kFields).text = StrCat(dialect, ".", word);
        frames_.back().parenthesized = true;  // two closing brackets
        return NextEntry(goal, value);
      }
    } else if (word == "raw" && name.ends_with(".conv")) {
      Push(FrameKind::kFields).text = name;
      return NextEntry(goal, value);
    } else if (!word.empty()) {
      if (in_.TryConsume('>')) {
        *value = nodes_.Enum(name, word);
        return Step::kValue;
      }
      if (in_.TryConsume('=')) {
        in_.set_at(body);
        Push(FrameKind::kFields).text = name;
        return NextEntry(goal, value);
      }
    } else if (in_.TryConsume('>')) {
      *value = nodes_.Make(NodeKind::kFields, name, {}, {});
      return Step::kValue;
    }
    in_.set_at(body);
    std::string_view text;
    if (!in_.Balanced('>', &text)) return Step::kError;
    *value = nodes_.Make(NodeKind::kVerbatim, {begin, static_cast<size_t>(in_.at() - begin)}, {}, {});
    return Step::kValue;
  }
  if (has_body) {
    in_.TryConsume('<');
    std::string_view text;
    if (!in_.Balanced('>', &text)) return Step::kError;
  }
  *value = nodes_.Make(NodeKind::kVerbatim, {begin, static_cast<size_t>(in_.at() - begin)}, {}, {});
  return Step::kValue;
}

NodeParser::Step NodeParser::NextEntry(Goal* goal, NodeId* value) {
  const bool fields = frames_.back().kind == FrameKind::kFields;
  const char close = fields ? '>' : '}';
  for (;;) {
    const bool first = values_.size() == frames_.back().first_value;
    if (in_.TryConsume(close)) {
      if (fields && frames_.back().parenthesized && !in_.Expect('>')) return Step::kError;
      const std::string text = std::move(frames_.back().text);
      return Close(fields ? NodeKind::kFields : NodeKind::kDictionary, text, value);
    }
    if (!first && !in_.Expect(',', fields ? "between parameters" : "between attributes")) return Step::kError;
    if (!first && fields && in_.Peek() == '>') continue;  // a comma at the end
    if (fields && in_.Peek() == '(') {
      // (1)2: the sub-axis of size 2 after a major part of size 1.
      return Fail("unexpected '('");
    }
    std::string name;
    if (!in_.AttributeName(&name)) return Step::kError;
    const int64_t id = nodes_.strings().Intern(name).value;
    for (size_t i = frames_.back().first_int; i < ints_.size(); ++i) {
      if (ints_[i] == id) {
        in_.Error(DiagnosticKind::kDuplicateAttribute, in_.Next(),
                  StrCat("duplicate key '", name, "' in dictionary attribute"));
        return Step::kError;
      }
    }
    ints_.push_back(id);
    if (in_.TryConsume('=')) {
      if (fields && in_.Peek() == '[') {
        // A list with `?`, which is no attribute.
        const char* const begin = in_.at();
        std::string_view body;
        in_.TryConsume('[');
        if (!in_.Balanced(']', &body)) return Step::kError;
        if (body.find('?') != std::string_view::npos) {
          values_.push_back(nodes_.Make(NodeKind::kVerbatim, {begin, static_cast<size_t>(in_.at() - begin)}, {}, {}));
          continue;
        }
        in_.set_at(begin);
      }
      if (fields && (in_.Peek() == '(' || in_.Peek() == '<')) {
        // Values in a form of their own: up to the next comma or the end.
        const char* const begin = in_.at();
        if (in_.TryConsume('<')) {
          std::string_view body;
          if (!in_.Balanced('>', &body)) return Step::kError;
        } else {
          while (in_.at() < in_.end() && *in_.at() != ',' && *in_.at() != '>') in_.set_at(in_.at() + 1);
        }
        values_.push_back(nodes_.Make(NodeKind::kVerbatim, {begin, static_cast<size_t>(in_.at() - begin)}, {}, {}));
        continue;
      }
      *goal = Goal::kAttribute;
      return Step::kMore;
    }
    if (fields) return Fail("expected '=' after a parameter");
    values_.push_back(nodes_.Make(NodeKind::kUnit));
  }
}

bool NodeParser::ParseDictionary(std::vector<NamedNode>* entries) {
  const NodeId dictionary = Parse(Goal::kAttribute);
  if (!dictionary.valid()) return false;
  if (nodes_.kind(dictionary) != NodeKind::kDictionary) return in_.ErrorHere("expected a dictionary of attributes");
  const absl::Span<const int64_t> names = nodes_.ints(dictionary);
  for (size_t i = 0; i < names.size(); ++i) {
    entries->push_back({StringId(static_cast<uint32_t>(names[i])), nodes_.child(dictionary, i)});
  }
  return true;
}

// ---- locations ----

NodeParser::Step NodeParser::StartLocation(Goal* goal, NodeId* value) {
  in_.Skip();
  if (*in_.at() == '#') {
    in_.TryConsume('#');
    const std::string name(in_.SuffixName());
    const NodeId found = FindAttributeAlias(name);
    *value = found.valid() ? found : nodes_.Make(NodeKind::kAlias, name, {}, {});
    return Step::kValue;
  }
  if (*in_.at() == '"') {
    std::string text;
    if (!in_.String(&text)) return Step::kError;
    if (in_.TryConsume(':')) {
      int64_t at[4] = {};
      if (!in_.Integer(&at[0]) || !in_.Expect(':', "in location") || !in_.Integer(&at[1])) return Step::kError;
      at[2] = at[0];
      at[3] = at[1];
      if (in_.TryConsumeWord("to")) {
        if (in_.Peek() != ':' && !in_.Integer(&at[2])) return Step::kError;
        if (!in_.Expect(':', "in location") || !in_.Integer(&at[3])) return Step::kError;
      }
      *value = nodes_.Make(NodeKind::kFileLocation, text, at, {});
      return Step::kValue;
    }
    Frame& frame = Push(FrameKind::kNameLocation);
    frame.text = std::move(text);
    if (in_.TryConsume('(')) return Step::kMore;
    const std::string name = std::move(frame.text);
    return Close(NodeKind::kNameLocation, name, value);
  }
  const std::string_view word = in_.Word();
  if (word == "unknown") {
    *value = nodes_.Make(NodeKind::kUnknownLocation);
    return Step::kValue;
  }
  if (word == "callsite") {
    if (!in_.Expect('(', "in callsite location")) return Step::kError;
    Push(FrameKind::kCallSite);
    return Step::kMore;
  }
  if (word == "fused") {
    Frame& frame = Push(FrameKind::kFused);
    frame.is_float = in_.TryConsume('<');
    ints_.push_back(frame.is_float);
    if (frame.is_float) {
      *goal = Goal::kAttribute;
      return Step::kMore;
    }
    if (!in_.Expect('[', "in fused location")) return Step::kError;
    if (in_.TryConsume(']')) return Close(NodeKind::kFusedLocation, "", value);
    return Step::kMore;
  }
  return Fail(StrCat("expected location instance, found ", in_.DescribeNext()));
}

NodeParser::Step NodeParser::Accept(Goal* goal, NodeId* value) {
  Frame& frame = frames_.back();
  switch (frame.kind) {
    case FrameKind::kArray:
      values_.push_back(*value);
      *goal = Goal::kAttribute;
      if (in_.TryConsume(',')) return Step::kMore;
      if (!in_.Expect(']', "at the end of a list")) return Step::kError;
      return Close(NodeKind::kArray, "", value);
    case FrameKind::kDictionary:
    case FrameKind::kFields:
      values_.push_back(*value);
      return NextEntry(goal, value);
    case FrameKind::kTyped:
      return AcceptTyped(value);
    case FrameKind::kString: {
      values_.push_back(*value);
      const std::string text = std::move(frame.text);
      return Close(NodeKind::kString, text, value);
    }
    case FrameKind::kDense: {
      const uint32_t begin = frame.begin, end = frame.end;
      const uint32_t after = in_.Here();
      in_.Seek(begin);
      const Cursor body({in_.at(), end - begin}, in_.sink(), begin);
      in_.Seek(after);
      frames_.pop_back();
      *value = ParseDenseElements(body, *value, &literal_budget_, &nodes_);
      return value->valid() ? Step::kValue : Step::kError;
    }
    case FrameKind::kDenseResource: {
      values_.push_back(*value);
      const std::string text = std::move(frame.text);
      return Close(NodeKind::kDenseResource, text, value);
    }
    case FrameKind::kTuple:
    case FrameKind::kFuture: {
      values_.push_back(*value);
      *goal = Goal::kType;
      const bool tuple = frame.kind == FrameKind::kTuple;
      if (!tuple && nodes_.kind(*value) != NodeKind::kTensorType) {
        return Fail(StrCat("future element type must be a ranked tensor, but got '", ToText(nodes_, *value), "'"));
      }
      if (in_.TryConsume(',')) return Step::kMore;
      if (!in_.Expect('>', "at the end of a type")) return Step::kError;
      return Close(tuple ? NodeKind::kTupleType : NodeKind::kFutureType, "", value);
    }
    case FrameKind::kComplex:
      values_.push_back(*value);
      if (!in_.Expect('>', "in complex type")) return Step::kError;
      return Close(NodeKind::kComplexType, "", value);
    case FrameKind::kShaped:
      return AcceptShaped(goal, value);
    case FrameKind::kFunctionInputs:
    case FrameKind::kFunctionResults:
      return AcceptFunction(goal, value);
    case FrameKind::kNameLocation: {
      if (!in_.Expect(')', "at the end of a location")) return Step::kError;
      if (frame.is_hex) {  // loc(...)
        frames_.pop_back();
        return Step::kValue;
      }
      values_.push_back(*value);
      const std::string text = std::move(frame.text);
      return Close(NodeKind::kNameLocation, text, value);
    }
    case FrameKind::kCallSite:
      values_.push_back(*value);
      if (values_.size() - frame.first_value == 1) {
        if (!in_.TryConsumeWord("at")) return Fail("expected 'at' in callsite location");
        *goal = Goal::kLocation;
        return Step::kMore;
      }
      if (!in_.Expect(')', "in callsite location")) return Step::kError;
      return Close(NodeKind::kCallSiteLocation, "", value);
    case FrameKind::kFused:
      values_.push_back(*value);
      *goal = Goal::kLocation;
      if (frame.is_float) {
        frame.is_float = false;
        if (!in_.Expect('>', "in fused location") || !in_.Expect('[', "in fused location")) return Step::kError;
        return Step::kMore;
      }
      if (in_.TryConsume(',')) return Step::kMore;
      if (!in_.Expect(']', "in fused location")) return Step::kError;
      return Close(NodeKind::kFusedLocation, "", value);
  }
  return Step::kError;
}

// ---- aliases ----

bool NodeParser::DefineAttributeAlias(std::string_view name, NodeId value) {
  return attribute_aliases_.emplace(std::string(name), value).second;
}
bool NodeParser::DefineTypeAlias(std::string_view name, NodeId value) {
  return type_aliases_.emplace(std::string(name), value).second;
}
NodeId NodeParser::FindAttributeAlias(std::string_view name) const {
  const auto found = attribute_aliases_.find(std::string(name));
  return found == attribute_aliases_.end() ? NodeId() : found->second;
}

}  // namespace hlokit::mlir

// SPDX-License-Identifier: Apache-2.0
// Values of attributes: text -> nodes.
#include <bit>
#include <charconv>

#include "parser/mlir/dense_parser.h"
#include "parser/mlir/node_parser.h"

namespace hlokit::mlir {

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
    Push(FrameKind::kDenseResource).text = OnOneLine(key);
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
    *value = nodes_.Make(NodeKind::kVerbatim, OnOneLine(in_.TextSince(begin)), {}, {});
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

}  // namespace hlokit::mlir

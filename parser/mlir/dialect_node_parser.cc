// SPDX-License-Identifier: Apache-2.0
// Types and attributes of dialects: `!stablehlo.token`, `#stablehlo.dot<...>`, aliases; and locations.
#include <charconv>

#include "parser/mlir/convolution_numbers.h"
#include "parser/mlir/node_parser.h"
#include "parser/mlir/quantized.h"

namespace hlokit::mlir {

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
    out.append(text.substr(i, end - i));
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
  const size_t dot = name.find('.');
  if ((name.starts_with("stablehlo.") && name != "stablehlo.token" && name != "stablehlo.future") ||
      name.starts_with("chlo.")) {
    in_.Error(DiagnosticKind::kUnknownType, {start, in_.Here() - start},
              StrCat("unknown type `", name.substr(dot + 1), "` in dialect `", name.substr(0, dot), "`"));
    return Step::kError;
  }
  std::string text = name;
  if (has_body) {
    in_.TryConsume('<');
    std::string_view body;
    if (!in_.Balanced('>', &body)) return Step::kError;
    StrAppend(&text, "<", name.starts_with("quant.") ? WithPrintedFloats(OnOneLine(body)) : OnOneLine(body), ">");
  }
  if (const std::optional<QuantizedType> type = ParseQuantized(text)) {
    if (std::string message = CheckQuantized(*type); !message.empty()) {
      in_.Error(DiagnosticKind::kUnknownType, {start, in_.Here() - start}, std::move(message));
      return Step::kError;
    }
  }
  *value = nodes_.Make(NodeKind::kDialectType, text, {}, {});
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
    *value = FindAttributeAlias(name);
    if (value->valid()) return Step::kValue;
    in_.Error(DiagnosticKind::kUnexpectedToken, {start, in_.Here() - start},
              StrCat("undefined symbol alias id '", name, "'"));
    return Step::kError;
  }
  if (!has_body) {
    *value = nodes_.Make(NodeKind::kVerbatim, OnOneLine(in_.TextSince(begin)), {}, {});
    return Step::kValue;
  }
  const char* const bracket = in_.at();
  in_.TryConsume('<');
  if (name == "stablehlo.bounds" || name == "stablehlo.type_extensions") return StartBounds(name, value);
  const std::string_view dialect = std::string_view(name).substr(0, dot);
  if (dialect == "sdy" && dot == std::string::npos) {
    // #sdy<propagation_direction FORWARD>
    if (StartEnumeration(dialect, in_.Word(), value)) return Step::kValue;
    in_.set_at(bracket);
    in_.TryConsume('<');
  }
  const bool has_fields = dialect == "stablehlo" || dialect == "chlo" || dialect == "mhlo";
  const char* const body = in_.at();
  if (has_fields) {
    if (const std::optional<Step> step = StartParameters(name, goal, value)) return *step;
    in_.set_at(body);
  }
  std::string_view text;
  if (!in_.Balanced('>', &text)) return Step::kError;
  if (ConvolutionNumbers numbers; has_fields && name.ends_with(".conv")) {
    if (std::string message = ReadConvolutionNumbers(text, &numbers); !message.empty()) {
      in_.Error(DiagnosticKind::kUnexpectedToken, {start, in_.Here() - start}, std::move(message));
      return Step::kError;
    }
  }
  *value = nodes_.Make(NodeKind::kVerbatim, OnOneLine(in_.TextSince(begin)), {}, {});
  return Step::kValue;
}

// Both forms become the short one: #stablehlo.bounds<3, ?>.
NodeParser::Step NodeParser::StartBounds(std::string_view name, NodeId* value) {
  std::string_view source;
  if (!in_.Balanced('>', &source)) return Step::kError;
  std::string body = OnOneLine(source);
  if (name == "stablehlo.type_extensions") {
    const size_t open = body.find('['), close = body.find(']');
    if (open == std::string::npos || close == std::string::npos || close < open) {
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

bool NodeParser::StartEnumeration(std::string_view dialect, std::string_view enumeration, NodeId* value) {
  const std::string_view word = in_.Word();
  if (enumeration.empty() || word.empty() || !in_.TryConsume('>')) return false;
  *value = nodes_.Enum(StrCat(dialect, ".", enumeration), word);
  return true;
}

std::optional<NodeParser::Step> NodeParser::StartParameters(const std::string& name, Goal* goal, NodeId* value) {
  const char* const body = in_.at();
  const std::string word(in_.Word());
  if (name.find('.') == std::string::npos) {
    // #stablehlo<precision HIGH>, or #stablehlo<fields ...>
    if (StartEnumeration(name, word, value)) return Step::kValue;
    in_.set_at(body);
    in_.Word();
    if (word.empty() || !in_.TryConsume('<')) return std::nullopt;
    Push(FrameKind::kFields).text = StrCat(name, ".", word);
    frames_.back().parenthesized = true;  // two closing brackets
    return NextEntry(goal, value);
  }
  if (word == "raw" && name.ends_with(".conv")) {
    Push(FrameKind::kFields).text = name;
    return NextEntry(goal, value);
  }
  if (in_.TryConsume('>')) {
    *value = word.empty() ? nodes_.Make(NodeKind::kFields, name, {}, {}) : nodes_.Enum(name, word);
    return Step::kValue;
  }
  if (word.empty() || !in_.TryConsume('=')) return std::nullopt;
  in_.set_at(body);
  Push(FrameKind::kFields).text = name;
  return NextEntry(goal, value);
}

// ---- locations ----

NodeParser::Step NodeParser::StartLocation(Goal* goal, NodeId* value) {
  in_.Skip();
  if (*in_.at() == '#') {
    in_.TryConsume('#');
    const std::string name(in_.SuffixName());
    const NodeId found = FindAttributeAlias(name);
    has_undefined_aliases_ = has_undefined_aliases_ || !found.valid();
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

}  // namespace hlokit::mlir

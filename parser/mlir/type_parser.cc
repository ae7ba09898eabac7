// SPDX-License-Identifier: Apache-2.0
// Types: text -> nodes.
#include <charconv>

#include "parser/mlir/bounds.h"
#include "parser/mlir/node_parser.h"

namespace hlokit::mlir {

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
  if (frame.node == NodeKind::kTensorType && frame.number > 1) {
    const absl::Span<const int64_t> sizes(ints_.data() + frame.first_int, ints_.size() - frame.first_int);
    std::vector<int64_t> bounds;
    if (ReadBounds(nodes_, values_[frame.first_value + 1], &bounds)) {
      if (std::string message = CheckBounds(sizes, bounds); !message.empty()) return Fail(std::move(message));
    }
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

}  // namespace hlokit::mlir

// SPDX-License-Identifier: Apache-2.0
#include "parser/mlir/node_parser.h"

#include <algorithm>

#include "parser/mlir/dense_parser.h"
#include "parser/mlir/parser.h"

namespace hlokit::mlir {

NodeId NodeParser::Parse(Goal goal) {
  NodeId value;
  const size_t base = frames_.size();
  const size_t values = values_.size();
  const size_t ints = ints_.size();
  const Step step = Start(&goal, &value);
  return Run(base, values, ints, step, goal, value);
}

// Programs repeat few types very often: texts up to the end of their lines are looked up first.
NodeId NodeParser::ParseType() {
  in_.Skip();
  const char* const begin = in_.at();
  constexpr size_t kMaxText = 512;
  std::string_view text(begin, std::min(static_cast<size_t>(in_.end() - begin), kMaxText));
  if (text.starts_with("tensor<")) {
    text = text.substr(0, text.find('>') + 1);
    // The type of elements may have brackets of its own.
    if (text.find('<', std::string_view("tensor<").size()) != std::string_view::npos) text = {};
  } else if (text.starts_with('(')) {
    const size_t end = text.find('\n');
    text = text.substr(0, end == std::string_view::npos ? 0 : end);
    if (text.ends_with(')')) text = text.substr(0, text.find("loc("));
  } else {
    text = {};
  }
  if (!text.empty()) {
    if (const KnownType* const known = known_types_.Find(text, 0)) {
      in_.set_at(begin + known->size);
      return known->type;
    }
  }
  const NodeId type = Parse(Goal::kType);
  const auto size = static_cast<size_t>(in_.at() - begin);
  if (type.valid() && !text.empty() && size <= text.size()) {
    known_types_.Set(text, 0, {type, static_cast<uint32_t>(size)});
  }
  return type;
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
      in_.Error(DiagnosticKind::kTooDeep, in_.Next(),
                StrCat("types and attributes are ", NestingMessage(limits_.max_nesting, limits_.have_flags)));
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
  return nodes_.IsPrintable(*value) ? Step::kValue : Fail("an attribute or type of too many parts");
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

bool NodeParser::CheckFieldName(std::string_view name) {
  struct Known {
    std::string_view attribute, names;  // with spaces around each
  };
  static constexpr Known kKnown[] = {
      {"stablehlo.dot",
       " lhs_batching_dimensions rhs_batching_dimensions lhs_contracting_dimensions rhs_contracting_dimensions "},
      {"stablehlo.gather",
       " offset_dims collapsed_slice_dims operand_batching_dims start_indices_batching_dims start_index_map "
       "index_vector_dim "},
      {"stablehlo.scatter",
       " update_window_dims inserted_window_dims input_batching_dims scatter_indices_batching_dims "
       "scatter_dims_to_operand_dims index_vector_dim "}};
  for (const Known& known : kKnown) {
    if (known.attribute != frames_.back().text) continue;
    if (known.names.find(StrCat(" ", name, " ")) != std::string_view::npos) return true;
    std::string list;
    for (size_t at = 1; at < known.names.size();) {
      const size_t end = known.names.find(' ', at);
      StrAppend(&list, list.empty() ? "`" : ", `", known.names.substr(at, end - at), "`");
      at = end + 1;
    }
    return in_.ErrorHere(StrCat("expected one of: ", list, ", found '", name, "'"));
  }
  return true;
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
    if (!first && !in_.TryConsume(',')) {
      return Fail(StrCat(fields ? "expected '>' or ',' after a parameter" : "expected ',' between attributes",
                         ", found ", in_.DescribeNext()));
    }
    if (!first && fields && in_.Peek() == '>') continue;  // a comma at the end
    if (fields && in_.Peek() == '(') {
      // (1)2: the sub-axis of size 2 after a major part of size 1.
      return Fail("unexpected '('");
    }
    std::string name;
    if (!in_.AttributeName(&name)) return Step::kError;
    if (fields && !CheckFieldName(name)) return Step::kError;
    const int64_t id = nodes_.strings().Intern(name).value;
    for (size_t i = frames_.back().first_int; i < ints_.size(); ++i) {
      if (ints_[i] == id) {
        in_.Error(DiagnosticKind::kDuplicateAttribute, in_.Next(),
                  fields ? StrCat("duplicated `", name, "` entry")
                         : StrCat("duplicate key '", name, "' in dictionary attribute"));
        return Step::kError;
      }
    }
    ints_.push_back(id);
    if (in_.TryConsume('=')) {
      if (fields && in_.Peek() == '[' && in_.at() >= no_unknown_size_before_) {
        // A list with `?`, which is no attribute.
        const char* const begin = in_.at();
        std::string_view body;
        in_.TryConsume('[');
        if (!in_.Balanced(']', &body)) return Step::kError;
        if (body.find('?') != std::string_view::npos) {
          values_.push_back(nodes_.Make(NodeKind::kVerbatim, OnOneLine(in_.TextSince(begin)), {}, {}));
          continue;
        }
        no_unknown_size_before_ = in_.at();
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
        values_.push_back(nodes_.Make(NodeKind::kVerbatim, OnOneLine(in_.TextSince(begin)), {}, {}));
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
      *value = ParseDenseElements(body, *value, &literal_bytes_, &nodes_);
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
      const bool token = nodes_.kind(*value) == NodeKind::kDialectType && nodes_.text(*value).ends_with(".token");
      if (!tuple && !token && nodes_.kind(*value) != NodeKind::kTensorType) {
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

// SPDX-License-Identifier: Apache-2.0
// Helpers of the verifier: reporting, and decoding small attributes.
#include "ir/verify/context.h"

#include <utility>

#include "ir/core/str_cat.h"
#include "ir/graph/name_range.h"
#include "ir/inference/shape_inference.h"
#include "ir/text/frontend_attributes.h"

namespace hlokit::verify_internal {

VerifierContext::VerifierContext(const Module& m, const VerifierOptions& o, DiagnosticSink* sink)
    : module(m),
      options(o),
      search_budget(int64_t{1} << 16),
      sink_(sink),
      callers_(m.computation_id_bound()),
      positions_(m.instruction_id_bound()),
      invalid_(m.instruction_id_bound()) {
  search_budget += static_cast<int64_t>(8 * m.instruction_id_bound());
  // Components of a shape are interned before it, so one traversal in id order suffices.
  const ShapeTable& shapes = m.context().shapes;
  for (uint32_t id = 0; id < shapes.size(); ++id) {
    const Shape shape = shapes[ShapeId(id)];
    bool invalid = shape.IsArray() && shape.has_layout() && !LayoutFault(*shape.layout()).empty();
    if (shape.IsTuple() && any_invalid_layouts_) {
      for (Shape e : shape.elements()) invalid = invalid || HasInvalidLayout(e);
    }
    if (invalid) {
      if (!any_invalid_layouts_) has_invalid_layout_.resize(shapes.size());
      any_invalid_layouts_ = true;
      has_invalid_layout_[id] = 1;
    }
    bool holds = shape.IsBuffer();
    if (shape.IsTuple() && any_buffers_) {
      for (Shape e : shape.elements()) holds = holds || HoldsBuffer(e);
    }
    if (!holds) continue;
    if (!any_buffers_) holds_buffer_.resize(shapes.size());
    any_buffers_ = true;
    holds_buffer_[id] = 1;
  }
}

void VerifierContext::Report(Instruction at, DiagnosticKind kind, std::string_view message, std::string hint) {
  sink_->Error(kind, NameRange(at), StrCat("`", at.name(), "`: ", message), std::move(hint));
}

void VerifierContext::Report(Computation at, DiagnosticKind kind, std::string_view message) {
  const std::string_view name = at.name();
  SourceRange range;
  if (at.record().source_offset != InstructionRecord::kNoSourceOffset) {
    range = {at.record().source_offset, static_cast<uint32_t>(name.size())};
  }
  sink_->Error(kind, range, StrCat("computation `", name, "`: ", message));
}

void VerifierContext::ReportHeader(DiagnosticKind kind, std::string message) {
  sink_->Error(kind, SourceRange(), std::move(message));
}

bool SameShapes(const VerifierContext& v, Shape a, Shape b) {
  return v.options.layout_sensitive ? a == b : CompatibleIgnoringDynamism(a, b);
}

std::optional<std::string_view> FrontendAttribute(Instruction i, std::string_view key) {
  const StringId text = FindFrontendAttribute(i, key);
  return text.valid() ? std::optional(i.module().context().str(text)) : std::nullopt;
}

std::string ShapeText(Shape shape, bool with_layout) {
  constexpr size_t kMaxShapeTextBytes = 240;
  if (!shape.IsTuple()) return ToString(shape, with_layout);
  std::vector<std::pair<Shape, int64_t>> open = {{shape, 0}};  // tuples, with the next element of each
  std::string out = "(";
  while (!open.empty()) {
    auto& [tuple, next] = open.back();
    if (next == tuple.tuple_size()) {
      out.push_back(')');
      open.pop_back();
      continue;
    }
    if (next != 0) StrAppend(&out, ", ");
    if (out.size() > kMaxShapeTextBytes) return StrCat(out, "...");
    const Shape element = tuple.element(next++);
    if (element.IsTuple()) {
      out.push_back('(');
      open.push_back({element, 0});
    } else {
      StrAppend(&out, ToString(element, with_layout));
    }
  }
  return out;
}

std::string IndexText(absl::Span<const int64_t> index) {
  std::string out = "{";
  for (size_t i = 0; i < index.size(); ++i) {
    if (i != 0) out.push_back(',');
    StrAppend(&out, index[i]);
  }
  out.push_back('}');
  return out;
}

}  // namespace hlokit::verify_internal

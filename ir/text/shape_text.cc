// SPDX-License-Identifier: Apache-2.0
#include "ir/text/shape_text.h"

namespace hlokit {
namespace {

void PrintArray(TextWriter& out, Shape s, bool with_layout) {
  out << ToString(s.element_type()) << '[';
  for (int64_t i = 0; i < s.rank(); ++i) {
    if (i != 0) out << ',';
    if (s.is_unbounded(i)) {
      out << '?';
    } else {
      if (s.is_dynamic(i)) out << "<=";
      out << s.dim(i);
    }
  }
  out << ']';
  // A scalar with a default layout has no braces.
  if (with_layout && s.has_layout() && (s.rank() > 0 || s.layout()->extras != nullptr)) PrintLayout(out, *s.layout());
}

void PrintDims(TextWriter& out, absl::Span<const int64_t> dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i != 0) out << ',';
    if (dims[i] == kCombineDimension) {
      out << '*';
    } else {
      out << dims[i];
    }
  }
}

}  // namespace

void PrintLayout(TextWriter& out, const LayoutRecord& layout) {
  out << '{';
  PrintDims(out, layout.minor_to_major);
  if (layout.extras != nullptr) {
    const LayoutExtras& x = *layout.extras;
    std::string text;
    {
      TextWriter parts(&text);
      if (!x.dim_level_types.empty()) {
        parts << "D(";
        for (size_t i = 0; i < x.dim_level_types.size(); ++i) {
          if (i != 0) parts << ',';
          parts << x.dim_level_types[i];
          if (i < x.dim_flags.size()) parts << ((x.dim_flags[i] & 1) ? "+" : "") << ((x.dim_flags[i] & 2) ? "~" : "");
        }
        parts << ')';
      }
      if (!x.tiles.empty()) {
        parts << 'T';
        for (const auto& tile : x.tiles) {
          parts << '(';
          PrintDims(parts, tile);
          parts << ')';
        }
      }
      if (x.tail_padding_alignment != 1) parts << "L(" << x.tail_padding_alignment << ')';
      if (x.index_primitive_type) parts << "#(" << ToString(*x.index_primitive_type) << ')';
      if (x.pointer_primitive_type) parts << "*(" << ToString(*x.pointer_primitive_type) << ')';
      if (x.element_size_in_bits != 0) parts << "E(" << x.element_size_in_bits << ')';
      if (x.memory_space != 0) parts << "S(" << x.memory_space << ')';
      if (!x.split_configs.empty()) {
        parts << "SC";
        for (const SplitConfig& split : x.split_configs) {
          parts << '(' << split.dimension << ':';
          PrintDims(parts, split.split_indices);
          parts << ')';
        }
      }
      if (x.physical_shape.valid()) {
        parts << "P(";
        PrintArray(parts, Shape(x.physical_record), true);
        parts << ')';
      }
      if (x.dynamic_shape_metadata_prefix_bytes != 0) parts << "M(" << x.dynamic_shape_metadata_prefix_bytes << ')';
    }
    if (!text.empty()) out << ':' << text;
  }
  out << '}';
}

void PrintShape(TextWriter& out, Shape shape, bool with_layout) {
  // An explicit stack of the open tuples (and buffers), with the next element of each.
  struct Open {
    Shape shape;
    int64_t next;
  };
  std::vector<Open> stack;
  Shape s = shape;
  for (;;) {
    if (s.IsTuple() || s.IsBuffer()) {
      out << (s.IsTuple() ? "(" : "b(");
      stack.push_back({s, 0});
    } else if (s.IsArray()) {
      PrintArray(out, s, with_layout);
    } else {
      out << ToString(s.element_type()) << "[]";
    }
    for (;;) {
      if (stack.empty()) return;
      Open& top = stack.back();
      if (top.next < top.shape.tuple_size()) break;
      out << ')';
      stack.pop_back();
    }
    Open& top = stack.back();
    if (top.next != 0) {
      out << ", ";
      if (top.next % 5 == 0) out << "/*index=" << top.next << "*/";
    }
    s = top.shape.element(top.next++);
  }
}

std::string_view ShapeTextCache::Make(Shape shape, bool with_layout) {
  std::string text;
  {
    TextWriter out(&text);
    PrintShape(out, shape, with_layout);
  }
  const uint32_t id = shape.id().value;
  if (id >= texts_.size()) texts_.resize(id + id / 2 + 64);
  return texts_[id] = arena_.CopyString(text);
}

std::string ToString(Shape shape, bool with_layout) {
  std::string text;
  {
    TextWriter out(&text);
    PrintShape(out, shape, with_layout);
  }
  return text;
}

}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/shape_proto.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

constexpr std::string_view kLevelTypes = "DCSH";  // by DimLevelType
enum LevelFlag : uint8_t { kNotUnique = 1, kNotOrdered = 2 };

struct TypeNumbers {
  std::array<xla::PrimitiveType, kElementTypeCount> number{};
  std::array<std::optional<ElementType>, xla::PrimitiveType_ARRAYSIZE> type{};

  TypeNumbers() {
    for (size_t i = 0; i < kElementTypeCount; ++i) {
      xla::PrimitiveType_Parse(std::string(kElementTypeInfo[i].xla_name), &number[i]);
      type[number[i]] = static_cast<ElementType>(i);
    }
  }
};

const TypeNumbers& Numbers() {
  static const TypeNumbers numbers;
  return numbers;
}

absl::Status BadLayout(std::string_view what) { return absl::InvalidArgumentError(StrCat("layout: ", what)); }

// `depth`: of sparse layouts, whose physical shape has a layout in turn.
absl::StatusOr<Shape> ReadNestedShape(const xla::ShapeProto& proto, Context* context, int depth);

absl::Status ReadLayoutExtras(const xla::LayoutProto& proto, Context* context, int depth, LayoutExtras* extras) {
  for (const xla::TileProto& tile : proto.tiles()) {
    std::vector<int64_t>& to = extras->tiles.emplace_back(tile.dimensions().begin(), tile.dimensions().end());
    for (int64_t& d : to) {
      if (d < 0) d = kCombineDimension;
    }
  }
  if (proto.tail_padding_alignment_in_elements() != 0) {
    extras->tail_padding_alignment = proto.tail_padding_alignment_in_elements();
  }
  extras->element_size_in_bits = proto.element_size_in_bits();
  extras->memory_space = proto.memory_space();
  extras->dynamic_shape_metadata_prefix_bytes = proto.dynamic_shape_metadata_prefix_bytes();
  for (const xla::SplitConfigProto& split : proto.split_configs()) {
    extras->split_configs.push_back({split.dimension(), {split.split_indices().begin(), split.split_indices().end()}});
  }
  for (const auto& [number, to] : {std::pair(proto.index_primitive_type(), &extras->index_primitive_type),
                                   std::pair(proto.pointer_primitive_type(), &extras->pointer_primitive_type)}) {
    if (number == xla::PRIMITIVE_TYPE_INVALID) continue;
    *to = ElementTypeOf(number);
    if (!to->has_value()) return BadLayout(StrCat("unknown element type ", static_cast<int>(number)));
  }
  for (int k = 0; k < proto.dim_level_types_size(); ++k) {
    const auto level = static_cast<size_t>(proto.dim_level_types(k));
    if (level >= kLevelTypes.size()) return BadLayout(StrCat("unknown level type ", level));
    extras->dim_level_types.push_back(kLevelTypes[level]);
    const bool unique = k >= proto.dim_unique_size() || proto.dim_unique(k);
    const bool ordered = k >= proto.dim_ordered_size() || proto.dim_ordered(k);
    extras->dim_flags.push_back(static_cast<uint8_t>((unique ? 0 : kNotUnique) | (ordered ? 0 : kNotOrdered)));
  }
  if (proto.has_physical_shape()) {
    absl::StatusOr<Shape> physical = ReadNestedShape(proto.physical_shape(), context, depth + 1);
    if (!physical.ok()) return physical.status();
    extras->physical_shape = physical->id();
    extras->physical_record = physical->record();
  }
  return absl::OkStatus();
}

absl::StatusOr<const LayoutRecord*> ReadLayout(const xla::LayoutProto& proto, int64_t rank, Context* context,
                                               int depth) {
  const absl::Span<const int64_t> order(proto.minor_to_major().data(),
                                        static_cast<size_t>(proto.minor_to_major_size()));
  if (proto.minor_to_major_size() != rank) {
    return BadLayout(StrCat("expected ", rank, " dimensions in minor_to_major, found ", proto.minor_to_major_size()));
  }
  std::vector<uint8_t> seen(order.size(), 0);
  for (int64_t d : order) {
    if (d < 0 || d >= rank || seen[static_cast<size_t>(d)]++ != 0) {
      return BadLayout("expected each dimension once in minor_to_major");
    }
  }
  const bool plain = proto.tiles_size() == 0 && proto.element_size_in_bits() == 0 && proto.memory_space() == 0 &&
                     proto.tail_padding_alignment_in_elements() <= 1 && proto.split_configs_size() == 0 &&
                     proto.dynamic_shape_metadata_prefix_bytes() == 0 && proto.dim_level_types_size() == 0 &&
                     proto.index_primitive_type() == 0 && proto.pointer_primitive_type() == 0 &&
                     !proto.has_physical_shape();
  if (plain && proto.tail_padding_alignment_in_elements() >= 0) return context->shapes.Layout(order);
  LayoutExtras extras;
  if (absl::Status status = ReadLayoutExtras(proto, context, depth, &extras); !status.ok()) return status;
  return context->shapes.Layout(order, extras);
}

absl::StatusOr<Shape> ReadArray(const xla::ShapeProto& proto, ElementType type, Context* context, int depth) {
  const absl::Span<const int64_t> dims(proto.dimensions().data(), static_cast<size_t>(proto.dimensions_size()));
  const int marks = proto.is_dynamic_dimension_size();
  if (marks != 0 && marks != proto.dimensions_size()) {
    return absl::InvalidArgumentError(
        StrCat("shape: expected ", dims.size(), " marks in is_dynamic_dimension, found ", marks));
  }
  if (proto.tuple_shapes_size() != 0) return absl::InvalidArgumentError("shape: an array has no tuple_shapes");
  std::vector<uint8_t> dynamic;
  for (int k = 0; k < proto.dimensions_size(); ++k) {
    const bool is_dynamic = k < marks && proto.is_dynamic_dimension(k);
    if (is_dynamic && dynamic.empty()) dynamic.assign(dims.size(), 0);
    if (is_dynamic) dynamic[static_cast<size_t>(k)] = 1;
    if (proto.dimensions(k) < 0 && !(is_dynamic && proto.dimensions(k) == kUnboundedSize)) {
      return absl::InvalidArgumentError(StrCat("shape: dimension ", k, " has the negative size ", proto.dimensions(k)));
    }
  }
  const LayoutRecord* layout = nullptr;
  if (proto.has_layout()) {
    absl::StatusOr<const LayoutRecord*> read =
        ReadLayout(proto.layout(), static_cast<int64_t>(dims.size()), context, depth);
    if (!read.ok()) return read.status();
    layout = *read;
  }
  return context->shapes.Array(type, dims, dynamic, layout);
}

absl::StatusOr<Shape> ReadLeaf(const xla::ShapeProto& proto, Context* context, int depth) {
  const std::optional<ElementType> type = ElementTypeOf(proto.element_type());
  if (!type) {
    return absl::InvalidArgumentError(StrCat("shape: unknown element type ", static_cast<int>(proto.element_type()),
                                             proto.element_type() == xla::PRIMITIVE_TYPE_INVALID ? " (no shape)" : ""));
  }
  if (IsArrayType(*type)) return ReadArray(proto, *type, context, depth);
  return *type == ElementType::kToken ? context->shapes.Token() : context->shapes.Opaque();
}

// Uses an explicit stack, since tuples may nest as deeply as the reader of messages allows.
absl::StatusOr<Shape> ReadNestedShape(const xla::ShapeProto& proto, Context* context, int depth) {
  constexpr int kMaxDepth = 8;
  if (depth > kMaxDepth) return BadLayout("physical shapes are nested too deeply");
  struct Open {
    const xla::ShapeProto* proto;
    std::vector<Shape> done;
  };
  const auto is_open = [](const xla::ShapeProto& p) {
    return p.element_type() == xla::TUPLE || p.element_type() == xla::BUFFER;
  };
  if (!is_open(proto)) return ReadLeaf(proto, context, depth);
  std::vector<Open> stack;
  stack.push_back({&proto, {}});
  for (;;) {
    Open& top = stack.back();
    if (static_cast<int>(top.done.size()) < top.proto->tuple_shapes_size()) {
      const xla::ShapeProto& next = top.proto->tuple_shapes(static_cast<int>(top.done.size()));
      if (is_open(next)) {
        stack.push_back({&next, {}});
        continue;
      }
      absl::StatusOr<Shape> leaf = ReadLeaf(next, context, depth);
      if (!leaf.ok()) return leaf.status();
      top.done.push_back(*leaf);
      continue;
    }
    Shape shape;
    if (top.proto->element_type() == xla::TUPLE) {
      shape = context->shapes.Tuple(top.done);
      if (shape.leaf_count() > kMaxLeaves) return absl::ResourceExhaustedError("shape: the tuple is too large");
    } else {
      if (top.done.size() != 1 || !top.done[0].IsArray()) {
        return absl::InvalidArgumentError("shape: expected one array in a buffer");
      }
      shape = context->shapes.Buffer(top.done[0]);
    }
    stack.pop_back();
    if (stack.empty()) return shape;
    stack.back().done.push_back(shape);
  }
}

}  // namespace

xla::PrimitiveType PrimitiveTypeOf(ElementType type) { return Numbers().number[static_cast<size_t>(type)]; }

std::optional<ElementType> ElementTypeOf(xla::PrimitiveType type) {
  const auto& types = Numbers().type;
  const int number = type;
  return number >= 0 && static_cast<size_t>(number) < types.size() ? types[static_cast<size_t>(number)] : std::nullopt;
}

absl::Status ShapeWriter::WriteLayout(const LayoutRecord& layout, xla::LayoutProto* out) {
  out->mutable_minor_to_major()->Add(layout.minor_to_major.begin(), layout.minor_to_major.end());
  out->set_tail_padding_alignment_in_elements(1);
  if (layout.extras == nullptr) return absl::OkStatus();
  const LayoutExtras& extras = *layout.extras;
  for (const std::vector<int64_t>& tile : extras.tiles) {
    out->add_tiles()->mutable_dimensions()->Add(tile.begin(), tile.end());
  }
  out->set_tail_padding_alignment_in_elements(extras.tail_padding_alignment);
  out->set_element_size_in_bits(extras.element_size_in_bits);
  out->set_memory_space(extras.memory_space);
  out->set_dynamic_shape_metadata_prefix_bytes(extras.dynamic_shape_metadata_prefix_bytes);
  for (const SplitConfig& split : extras.split_configs) {
    xla::SplitConfigProto* to = out->add_split_configs();
    to->set_dimension(split.dimension);
    to->mutable_split_indices()->Add(split.split_indices.begin(), split.split_indices.end());
  }
  if (extras.index_primitive_type) out->set_index_primitive_type(PrimitiveTypeOf(*extras.index_primitive_type));
  if (extras.pointer_primitive_type) out->set_pointer_primitive_type(PrimitiveTypeOf(*extras.pointer_primitive_type));
  for (size_t k = 0; k < extras.dim_level_types.size(); ++k) {
    const size_t level = kLevelTypes.find(extras.dim_level_types[k]);
    out->add_dim_level_types(static_cast<xla::DimLevelType>(level));
    const uint8_t flags = k < extras.dim_flags.size() ? extras.dim_flags[k] : 0;
    out->add_dim_unique((flags & kNotUnique) == 0);
    out->add_dim_ordered((flags & kNotOrdered) == 0);
  }
  if (extras.physical_record != nullptr) return Write(Shape(extras.physical_record), out->mutable_physical_shape());
  return absl::OkStatus();
}

absl::Status ShapeWriter::Write(Shape shape, xla::ShapeProto* out) {
  struct Open {
    Shape shape;
    xla::ShapeProto* to;
    int depth;
  };
  std::vector<Open> open = {{shape, out, 0}};
  while (!open.empty()) {
    const Open at = open.back();
    open.pop_back();
    if (at.depth > kMaxProtoShapeNesting) {
      return absl::ResourceExhaustedError(StrCat("a tuple is nested more than ", kMaxProtoShapeNesting,
                                                 " deep, and readers of protocol buffers refuse messages that deep"));
    }
    elements_ += at.shape.tuple_size();
    if (elements_ > kMaxElements)
      return absl::ResourceExhaustedError("the tuples have too many elements for a message");
    at.to->set_element_type(PrimitiveTypeOf(at.shape.element_type()));
    if (at.shape.IsArray()) {
      const absl::Span<const int64_t> dims = at.shape.dims();
      at.to->mutable_dimensions()->Add(dims.begin(), dims.end());
      for (int64_t d = 0; d < at.shape.rank(); ++d) at.to->add_is_dynamic_dimension(at.shape.is_dynamic(d));
      if (at.shape.has_layout()) {
        absl::Status status = WriteLayout(*at.shape.layout(), at.to->mutable_layout());
        if (!status.ok()) return status;
      }
      continue;
    }
    // Pointers to elements stay valid while more are added.
    for (Shape element : at.shape.elements()) open.push_back({element, at.to->add_tuple_shapes(), at.depth + 1});
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> ReadShape(const xla::ShapeProto& proto, Context* context) {
  return ReadNestedShape(proto, context, 0);
}

}  // namespace hlokit

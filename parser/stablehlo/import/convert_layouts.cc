// SPDX-License-Identifier: Apache-2.0
// Layouts: of the entry, of arguments, and of the results of operations.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/sharding.h"
#include "ir/sharding/tiling.h"
#include "parser/hlo/shape_parser.h"
#include "parser/stablehlo/import/converter.h"
#include "parser/stablehlo/kept_attributes.h"
#include "parser/text/text_cursor.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

namespace {

constexpr int64_t kMaxNesting = 64;

// Returns true for shapes that differ in layouts at most.
bool SameButLayout(Shape a, Shape b) { return a.WithoutLayout() == b.WithoutLayout(); }

bool IsPermutation(std::vector<int64_t> order, int64_t rank) {
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return static_cast<int64_t>(order.size()) == rank;
}

}  // namespace

Shape Converter::ReadShape(std::string_view text) {
  // A NUL follows the text of a cursor, and the text stays with the context.
  const std::string_view stored = context().str(context().strings.Intern(StrCat(text, '\0')));
  DiagnosticSink sink;
  TextCursor in(stored.substr(0, stored.size() - 1), &sink);
  ShapeParser parser(&in, &context(), kMaxNesting);
  Shape shape;
  return parser.Parse(&shape) && in.AtEnd() ? shape : Shape();
}

// memref<2x4xf32, strided<[1, 2]>, 5 : i64>: strides of a dense array say the order of its dimensions.
Shape Converter::BufferLayout(NodeId memref, Shape array) {
  Ints order;
  for (int64_t d = array.rank(); d-- > 0;) order.push_back(d);
  LayoutExtras extras;
  for (size_t i = 1; i < nodes().child_count(memref); ++i) {
    const NodeId child = nodes().child(memref, i);
    if (const std::optional<int64_t> space = nodes().IntegerValue(child); space && *space >= 0) {
      extras.memory_space = *space;
      continue;
    }
    const std::string text = mlir::ToText(nodes(), child);
    constexpr std::string_view kBegin = "strided<[";
    if (!text.starts_with(kBegin) || !text.ends_with("]>") || array.has_dynamic_dims()) return {};
    Ints strides;
    for (absl::string_view part : absl::StrSplit(
             absl::string_view(text).substr(kBegin.size(), text.size() - kBegin.size() - 2), ',', absl::SkipEmpty())) {
      int64_t stride = 0;
      if (!absl::SimpleAtoi(part, &stride)) return {};
      strides.push_back(stride);
    }
    if (static_cast<int64_t>(strides.size()) != array.rank()) return {};
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return strides[static_cast<size_t>(a)] < strides[static_cast<size_t>(b)];
    });
    int64_t expected = 1;
    for (int64_t d : order) {
      if (array.dim(d) != 1 && strides[static_cast<size_t>(d)] != expected) return {};
      if (__builtin_mul_overflow(expected, std::max<int64_t>(array.dim(d), 1), &expected)) return {};
    }
  }
  return shapes().WithLayout(array, shapes().Layout(order, extras));
}

Shape Converter::LaidOut(const Op& op, Shape shape) {
  for (const mlir::Attribute& attribute : program_.attributes_of(op)) {
    if (attribute.inherent) continue;
    const std::string_view name = nodes().str(attribute.name);
    if (name == "xla_shape" && nodes().kind(attribute.value) == NodeKind::kString) {
      const Shape read = ReadShape(nodes().text(attribute.value));
      return read.valid() && SameButLayout(read, shape) ? read : shape;
    }
    if (name == "result_layout" && shape.IsArray() && !Attribute(op, "xla_shape").valid()) {
      return LayoutOf(shape, attribute.value, NodeId());
    }
  }
  return shape;
}

Shape Converter::ShapeOfArgument(const Op& function, size_t argument, Shape shape) {
  const NodeId list = Attribute(function, "arg_attrs");
  if (!list.valid() || nodes().kind(list) != NodeKind::kArray || argument >= nodes().child_count(list)) return shape;
  const NodeId attributes = nodes().child(list, argument);
  if (nodes().kind(attributes) != NodeKind::kDictionary) return shape;
  const NodeId text = nodes().Entry(attributes, kShape);
  if (!text.valid() || nodes().kind(text) != NodeKind::kString) return shape;
  const Shape read = ReadShape(nodes().text(text));
  return read.valid() && SameButLayout(read, shape) ? read : shape;
}

// The orders and tiles of the arrays of a tuple are nested as it is.
Shape Converter::LayoutOf(Shape root, NodeId orders, NodeId tiles) {
  struct Part {
    Shape shape;
    NodeId orders, tiles;
    bool leaving = false;
  };
  std::vector<Part> pending = {{root, orders, tiles}};
  std::vector<Shape> made;
  const auto child = [&](NodeId list, size_t i) {
    const bool has = list.valid() && nodes().kind(list) == NodeKind::kArray && i < nodes().child_count(list);
    return has ? nodes().child(list, i) : NodeId();
  };
  while (!pending.empty()) {
    const Part part = pending.back();
    pending.pop_back();
    if (part.shape.IsTuple()) {
      const auto count = static_cast<size_t>(part.shape.tuple_size());
      if (!part.leaving) {
        pending.push_back({part.shape, {}, {}, true});
        for (size_t i = count; i-- > 0;) {
          pending.push_back({part.shape.element(static_cast<int64_t>(i)), child(part.orders, i), child(part.tiles, i)});
        }
        continue;
      }
      const Shape tuple = shapes().Tuple(absl::Span<const Shape>(made).subspan(made.size() - count));
      made.resize(made.size() - count);
      made.push_back(tuple);
      continue;
    }
    made.push_back(part.shape);
    if (!part.shape.IsArray() || part.shape.layout() == nullptr) continue;
    const absl::Span<const int64_t> known = part.shape.layout()->minor_to_major;
    Ints order(known.begin(), known.end());
    if (part.orders.valid()) {
      const std::optional<Ints> read = nodes().Integers(part.orders);
      if (read && IsPermutation(*read, part.shape.rank())) order = *read;
    }
    LayoutExtras extras;
    if (part.shape.layout()->extras != nullptr) extras = *part.shape.layout()->extras;
    for (size_t i = 0; child(part.tiles, i).valid(); ++i) {
      const std::optional<Ints> tile = nodes().Integers(child(part.tiles, i));
      const bool good =
          tile && !tile->empty() && std::all_of(tile->begin(), tile->end(), [](int64_t d) { return d > 0; });
      if (good) extras.tiles.push_back(*tile);
    }
    made.back() = shapes().WithLayout(part.shape, shapes().Layout(order, extras));
  }
  return made.back();
}

// mhlo.layout_mode = "{0,1}" of an argument or result; "default" and "auto" leave the layout to the compiler.
Shape Converter::LayoutOfMode(Shape shape, NodeId attributes) {
  if (!attributes.valid() || nodes().kind(attributes) != NodeKind::kDictionary || !shape.IsArray()) return shape;
  const NodeId mode = nodes().Entry(attributes, "mhlo.layout_mode");
  if (!mode.valid() || nodes().kind(mode) != NodeKind::kString || !nodes().text(mode).starts_with('{')) return shape;
  // The layout behind the shape without one.
  std::string text = StrCat(ToString(shape.element_type()), "[");
  for (int64_t i = 0; i < shape.rank(); ++i) {
    StrAppend(&text, i == 0 ? "" : ",", shape.is_dynamic(i) && !shape.is_unbounded(i) ? "<=" : "");
    if (shape.is_unbounded(i)) {
      text += "?";
    } else {
      StrAppend(&text, shape.dim(i));
    }
  }
  const Shape read = ReadShape(StrCat(text, "]", nodes().text(mode)));
  return read.valid() && SameButLayout(read, shape) ? read : shape;
}

void Converter::SetEntryLayout(const Op& main) {
  const Computation entry = module_->entry();
  EntryLayout layout;
  for (int64_t i = 0; i < entry.parameter_count(); ++i) layout.parameters.push_back(entry.parameter(i).shape());
  layout.result = shapes().WithDefaultLayouts(entry.root().shape());
  const auto child = [&](NodeId list, size_t i) {
    const bool has = list.valid() && nodes().kind(list) == NodeKind::kArray && i < nodes().child_count(list);
    return has ? nodes().child(list, i) : NodeId();
  };
  const auto header = [&](std::string_view name) {
    return root_.valid() ? Attribute(program_.op(root_), StrCat("mhlo.xla_entry_computation_", name)) : NodeId();
  };
  const NodeId orders = header("parameter_layouts"), tiles = header("parameter_tiles");
  for (size_t i = 0; i < layout.parameters.size(); ++i) {
    Shape& shape = layout.parameters[i];
    shape = shapes().WithDefaultLayouts(shape);
    if (!options_.use_tuple_args) shape = LayoutOfMode(shape, child(Attribute(main, "arg_attrs"), i));
    shape = LayoutOf(shape, child(orders, i), child(tiles, i));
  }
  // A list of one result has its layout; of several the list is that of the tuple.
  const size_t results = ResultCount(main);
  const NodeId result_orders = header("result_layout"), result_tiles = header("result_tiles");
  if (results == 1 && !options_.return_tuple) {
    layout.result = LayoutOfMode(layout.result, child(Attribute(main, "res_attrs"), 0));
    layout.result = LayoutOf(layout.result, child(result_orders, 0), child(result_tiles, 0));
  } else if (layout.result.IsTuple()) {
    std::vector<Shape> elements;
    for (Shape element : layout.result.elements()) {
      elements.push_back(LayoutOfMode(element, child(Attribute(main, "res_attrs"), elements.size())));
    }
    layout.result = LayoutOf(shapes().Tuple(elements), result_orders, result_tiles);
  }
  // What these attributes have no place for.
  const NodeId texts = root_.valid() ? Attribute(program_.op(root_), kEntryLayout) : NodeId();
  for (size_t i = 0; i <= layout.parameters.size(); ++i) {
    const NodeId text = child(texts, i);
    if (!text.valid() || nodes().kind(text) != NodeKind::kString) break;
    Shape& shape = i < layout.parameters.size() ? layout.parameters[i] : layout.result;
    const Shape read = ReadShape(nodes().text(text));
    if (read.valid() && SameButLayout(read, shape)) shape = read;
  }
  module_->header().entry_layout = std::move(layout);
}

std::vector<ListId> Converter::SdyResultShardings(const Op& op, std::vector<InstructionId>* results) {
  std::vector<ListId> shardings;
  bool any = false;
  for (size_t i = 0; i < op.operand_count; ++i) {
    shardings.emplace_back();
    const mlir::OperationId id = program_.values[program_.operands_of(op)[i].value].definition;
    if (!id.valid() || StringOf(program_.op(id), "call_target_name") != "xla.sdy.FuncResultSharding") continue;
    const NodeId frontend = Attribute(program_.op(id), "mhlo.frontend_attributes");
    if (!frontend.valid() || nodes().kind(frontend) != NodeKind::kDictionary) continue;
    const NodeId text = nodes().Entry(frontend, kSdySharding);
    if (!text.valid() || nodes().kind(text) != NodeKind::kString) continue;
    const absl::StatusOr<ListId> sharding = ReadShardingText(nodes().text(text));
    if (!sharding.ok()) continue;
    shardings.back() = *sharding;
    any = true;
    if (results->size() == 1) break;
    if (!options_.as_xla) continue;
    const Shape shape = shape_of((*results)[i]);
    const Result made = b().Add(Opcode::kReshape, {(*results)[i]}, {}, shape);
    if (!made.ok()) continue;
    module_->SetAttr(*made, Attr::kSharding, sharding->value);
    (*results)[i] = *made;
  }
  return any ? shardings : std::vector<ListId>();
}

InstructionId Converter::ShardedResult(InstructionId value, ListId sharding) {
  if (!sharding.valid()) return value;
  const Shape element[] = {shape_of(value)};
  const Result tuple = b().Add(Opcode::kTuple, {value}, {}, shapes().Tuple(element));
  if (!tuple.ok()) return value;
  const Result result = b().Add(Opcode::kGetTupleElement, {*tuple}, {Int(Attr::kIndex, 0)}, element[0]);
  if (!result.ok()) return value;
  module_->SetAttr(*tuple, Attr::kSharding, NormalizeForShape(&context(), sharding, shape_of(*tuple)).value);
  module_->SetAttr(*result, Attr::kSharding, sharding.value);
  return *result;
}

InstructionId Converter::ResultWithSharding(InstructionId value, ListId sharding, bool open) {
  if (options_.as_xla || !sharding.valid()) return ShardedResult(value, sharding);
  const Instruction instruction = module_->instruction(value);
  const ListId wanted = NormalizeForShape(&context(), sharding, instruction.shape());
  const ListId own = ShardingOf(value);
  if (own.valid() ? open || SameSharding(context(), own, wanted) : open && instruction.opcode() == Opcode::kParameter) {
    return value;
  }
  const Sharding decoded = DecodeSharding(context(), wanted);
  const bool whole = !decoded.is_tuple && decoded.leaf().kind == ShardingKind::kReplicated;
  if (!own.valid() && whole && instruction.opcode() == Opcode::kParameter) return value;
  if (!own.valid() && instruction.opcode() != Opcode::kParameter) {
    module_->SetAttr(value, Attr::kSharding, wanted.value);
    return value;
  }
  const Result copy = b().Add(Opcode::kCopy, {value}, {}, instruction.shape());
  if (!copy.ok()) return value;
  module_->SetAttr(*copy, Attr::kSharding, wanted.value);
  return *copy;
}

}  // namespace hlokit::stablehlo

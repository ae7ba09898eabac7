// SPDX-License-Identifier: Apache-2.0
#include "ir/types/shape.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hlokit {
namespace {

bool IsDescending(absl::Span<const int64_t> minor_to_major) {
  for (size_t i = 0; i < minor_to_major.size(); ++i) {
    if (minor_to_major[i] != static_cast<int64_t>(minor_to_major.size() - 1 - i)) return false;
  }
  return true;
}

int64_t Product(absl::Span<const int64_t> dims) {
  int64_t product = 1;
  bool overflow = false;
  for (int64_t d : dims) {
    if (d == 0) return 0;
    if (d < 0) overflow = true;
    if (!overflow && __builtin_mul_overflow(product, d, &product)) overflow = true;
  }
  return overflow ? -1 : product;
}

uint64_t HashRecord(const ShapeRecord& r, absl::Span<const Shape> elements) {
  uint64_t h = MixHash(static_cast<uint64_t>(r.element_type), r.size);
  if (IsArrayType(r.element_type)) {
    h = MixHash(h, HashBytes(r.dims, r.size * sizeof(int64_t)));
    if (r.dynamic != nullptr) h = MixHash(h, HashBytes(r.dynamic, r.size));
    h = MixHash(h, r.layout == nullptr ? 0 : 1 + uint64_t{r.layout->id.value});
  } else {
    for (Shape e : elements) h = MixHash(h, e.id().value);
  }
  return h;
}

// Encodes the layout as a list of int64, for interning.
std::vector<int64_t> Encode(absl::Span<const int64_t> minor_to_major, const LayoutExtras& x) {
  std::vector<int64_t> out;
  const auto list = [&out](const auto& values) {
    out.push_back(static_cast<int64_t>(values.size()));
    for (const auto& v : values) out.push_back(static_cast<int64_t>(v));
  };
  list(minor_to_major);
  if (x == LayoutExtras{}) return out;
  out.push_back(static_cast<int64_t>(x.tiles.size()));
  for (const auto& tile : x.tiles) list(tile);
  out.push_back(x.tail_padding_alignment);
  out.push_back(x.index_primitive_type ? static_cast<int64_t>(*x.index_primitive_type) : -1);
  out.push_back(x.pointer_primitive_type ? static_cast<int64_t>(*x.pointer_primitive_type) : -1);
  out.push_back(x.element_size_in_bits);
  out.push_back(x.memory_space);
  out.push_back(static_cast<int64_t>(x.split_configs.size()));
  for (const SplitConfig& split : x.split_configs) {
    out.push_back(split.dimension);
    list(split.split_indices);
  }
  list(x.dim_level_types);
  list(x.dim_flags);
  out.push_back(x.physical_shape.value);
  out.push_back(x.dynamic_shape_metadata_prefix_bytes);
  return out;
}

}  // namespace

ShapeTable::ShapeTable(Arena* arena, ListPool* lists) : arena_(arena), lists_(lists) {}

const LayoutRecord* ShapeTable::Layout(absl::Span<const int64_t> minor_to_major, const LayoutExtras& extras) {
  const std::vector<int64_t> encoded = Encode(minor_to_major, extras);
  const ListId key = lists_->Intern(encoded);
  const uint32_t id = layout_index_.FindOrInsert(
      MixHash(key.value, 1),
      [&](uint32_t candidate) {
        const LayoutRecord& r = *layouts_[candidate];
        const LayoutExtras none;
        return r.minor_to_major == minor_to_major && (r.extras == nullptr ? none : *r.extras) == extras;
      },
      [&] {
        auto* r = new (arena_->AllocateArray<LayoutRecord>(1)) LayoutRecord;
        r->id = LayoutId(static_cast<uint32_t>(layouts_.size()));
        r->minor_to_major = {arena_->CopyArray(minor_to_major.data(), minor_to_major.size()), minor_to_major.size()};
        r->extras = extras == LayoutExtras{} ? nullptr : &extras_.emplace_back(extras);
        r->is_default = r->extras == nullptr && IsDescending(minor_to_major);
        layouts_.push_back(r);
        return r->id.value;
      });
  return layouts_[id];
}

const LayoutRecord* ShapeTable::DefaultLayout(int64_t rank) {
  // Ranks beyond the cache are rare and use the index.
  constexpr int64_t kCached = 64;
  if (rank < kCached) {
    if (default_layouts_.empty()) default_layouts_.resize(kCached, nullptr);
    if (default_layouts_[rank] != nullptr) return default_layouts_[rank];
  }
  std::vector<int64_t> order(rank);
  for (int64_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  const LayoutRecord* layout = Layout(order);
  if (rank < kCached) default_layouts_[rank] = layout;
  return layout;
}

ShapeRecord* ShapeTable::NewRecord(const ShapeRecord& proto) {
  auto* r = new (arena_->AllocateArray<ShapeRecord>(1)) ShapeRecord(proto);
  r->id = ShapeId(static_cast<uint32_t>(records_.size()));
  records_.push_back(r);
  return r;
}

Shape ShapeTable::Intern(const ShapeRecord& proto, absl::Span<const Shape> elements) {
  bool made = false;
  const uint32_t id = index_.FindOrInsert(
      HashRecord(proto, elements),
      [&](uint32_t candidate) {
        const ShapeRecord& r = *records_[candidate];
        if (r.element_type != proto.element_type || r.size != proto.size || r.layout != proto.layout) return false;
        if (IsArrayType(proto.element_type)) {
          return (r.size == 0 || std::memcmp(r.dims, proto.dims, r.size * sizeof(int64_t)) == 0) &&
                 (r.dynamic == nullptr) == (proto.dynamic == nullptr) &&
                 (r.dynamic == nullptr || std::memcmp(r.dynamic, proto.dynamic, r.size) == 0);
        }
        for (uint32_t i = 0; i < r.size; ++i) {
          if (r.elements[i] != elements[i]) return false;
        }
        return true;
      },
      [&] {
        made = true;
        return NewRecord(proto)->id.value;
      });
  ShapeRecord* r = records_[id];
  if (!made) return Shape(r);
  if (IsArrayType(proto.element_type)) {
    r->dims = arena_->CopyArray(proto.dims, proto.size);
    if (proto.dynamic != nullptr) r->dynamic = arena_->CopyArray(proto.dynamic, proto.size);
    r->element_count = Product({r->dims, r->size});
    r->leaf_count = 1;
    for (uint32_t i = 0; i < r->size; ++i) {
      if (r->dynamic != nullptr && r->dynamic[i]) r->dynamic_leaf = true;
      if (r->dims[i] == kUnboundedSize) r->dynamic_leaf = r->unbounded_leaf = true;
    }
    // Interning the shape without layout may grow `records_`, but never moves a record.
    r->without_layout = r->layout == nullptr ? r
                                             : Array(r->element_type, {r->dims, r->size},
                                                     {r->dynamic, r->dynamic == nullptr ? 0 : r->size}, nullptr)
                                                   .record();
  } else {
    r->elements = arena_->CopyArray(elements.data(), elements.size());
    bool same = true;
    if (r->element_type != ElementType::kTuple) r->leaf_count = 1;
    for (Shape e : elements) {
      if (r->element_type == ElementType::kTuple &&
          __builtin_add_overflow(r->leaf_count, std::max<int64_t>(1, e.leaf_count()), &r->leaf_count)) {
        r->leaf_count = std::numeric_limits<int64_t>::max();
      }
      r->dynamic_leaf |= e.has_dynamic_dims();
      r->unbounded_leaf |= e.has_unbounded_dims();
      same &= e.WithoutLayout() == e;
    }
    if (same) {
      r->without_layout = r;
    } else {
      std::vector<Shape> bare;
      bare.reserve(elements.size());
      for (Shape e : elements) bare.push_back(e.WithoutLayout());
      ShapeRecord bare_proto{};
      bare_proto.element_type = proto.element_type;
      bare_proto.size = proto.size;
      r->without_layout = Intern(bare_proto, bare).record();  // one level: the elements have no layouts
    }
  }
  return Shape(r);
}

Shape ShapeTable::Leaf(ElementType type) {
  ShapeRecord proto{};
  proto.element_type = type;
  return Intern(proto, {});
}

Shape ShapeTable::Array(ElementType type, absl::Span<const int64_t> dims, absl::Span<const uint8_t> dynamic) {
  return Array(type, dims, dynamic, DefaultLayout(static_cast<int64_t>(dims.size())));
}

Shape ShapeTable::Array(ElementType type, absl::Span<const int64_t> dims, absl::Span<const uint8_t> dynamic,
                        const LayoutRecord* layout) {
  ShapeRecord proto{};
  proto.element_type = type;
  proto.size = static_cast<uint32_t>(dims.size());
  proto.dims = dims.data();
  bool any_dynamic = false;
  for (uint8_t d : dynamic) any_dynamic |= d != 0;
  proto.dynamic = any_dynamic ? dynamic.data() : nullptr;
  proto.layout = layout;
  return Intern(proto, {});
}

Shape ShapeTable::Tuple(absl::Span<const Shape> elements) {
  ShapeRecord proto{};
  proto.element_type = ElementType::kTuple;
  proto.size = static_cast<uint32_t>(elements.size());
  return Intern(proto, elements);
}

Shape ShapeTable::Buffer(Shape element) {
  ShapeRecord proto{};
  proto.element_type = ElementType::kBuffer;
  proto.size = 1;
  return Intern(proto, absl::MakeConstSpan(&element, 1));
}

Shape ShapeTable::WithLayout(Shape array, const LayoutRecord* layout) {
  const ShapeRecord& r = *array.record();
  return Array(r.element_type, {r.dims, r.size}, {r.dynamic, r.dynamic == nullptr ? 0 : r.size}, layout);
}

Shape ShapeTable::WithElementType(Shape array, ElementType type) {
  const ShapeRecord& r = *array.record();
  return Array(type, {r.dims, r.size}, {r.dynamic, r.dynamic == nullptr ? 0 : r.size}, r.layout);
}

Shape ShapeTable::WithDefaultLayouts(Shape shape) {
  // Rebuilds bottom up with an explicit stack: a frame for each open tuple.
  struct Frame {
    Shape shape;
    std::vector<Shape> done;
  };
  const auto leaf = [this](Shape s) { return s.IsArray() ? WithLayout(s, DefaultLayout(s.rank())) : s; };
  const auto is_inner = [](Shape s) { return s.IsTuple() || s.IsBuffer(); };
  if (!is_inner(shape)) return leaf(shape);
  std::vector<Frame> stack;
  stack.push_back({shape, {}});
  for (;;) {
    Frame& top = stack.back();
    if (static_cast<int64_t>(top.done.size()) < top.shape.tuple_size()) {
      const Shape next = top.shape.element(static_cast<int64_t>(top.done.size()));
      if (is_inner(next)) {
        stack.push_back({next, {}});
      } else {
        top.done.push_back(leaf(next));
      }
      continue;
    }
    const Shape built = top.shape.IsTuple() ? Tuple(top.done) : Buffer(top.done[0]);
    stack.pop_back();
    if (stack.empty()) return built;
    stack.back().done.push_back(built);
  }
}

std::vector<Shape> Leaves(Shape shape) {
  std::vector<Shape> leaves;
  std::vector<Shape> stack = {shape};
  while (!stack.empty()) {
    const Shape s = stack.back();
    stack.pop_back();
    if (s.IsTuple()) {
      for (int64_t i = s.tuple_size(); i-- > 0;) stack.push_back(s.element(i));
    } else {
      leaves.push_back(s);
    }
  }
  return leaves;
}

std::optional<Shape> SubshapeAt(Shape shape, absl::Span<const int64_t> index) {
  for (int64_t i : index) {
    if (!shape.IsTuple() || i < 0 || i >= shape.tuple_size()) return std::nullopt;
    shape = shape.element(i);
  }
  return shape;
}

int64_t ByteSize(Shape shape) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t total = 0;
  for (Shape leaf : Leaves(shape)) {
    if (leaf.IsBuffer()) leaf = leaf.element(0);
    if (!leaf.IsArray()) continue;
    const int64_t count = leaf.element_count();
    int64_t bits, bytes;
    if (count < 0 || __builtin_mul_overflow(count, int64_t{BitsOf(leaf.element_type())}, &bits)) return kMax;
    bytes = bits / 8 + (bits % 8 != 0);
    if (__builtin_add_overflow(total, bytes, &total)) return kMax;
  }
  return total;
}

bool SameShape(Shape a, Shape b, bool ignore_layout) {
  std::vector<std::pair<Shape, Shape>> stack = {{a, b}};
  while (!stack.empty()) {
    const auto [x, y] = stack.back();
    stack.pop_back();
    if (x == y) continue;
    const ShapeRecord& p = *x.record();
    const ShapeRecord& q = *y.record();
    if (p.element_type != q.element_type || p.size != q.size) return false;
    if (!x.IsArray()) {
      for (uint32_t i = 0; i < p.size; ++i) stack.push_back({p.elements[i], q.elements[i]});
      continue;
    }
    for (uint32_t i = 0; i < p.size; ++i) {
      if (p.dims[i] != q.dims[i] || x.is_dynamic(i) != y.is_dynamic(i)) return false;
    }
    if (ignore_layout || p.layout == q.layout) continue;
    if (p.layout == nullptr || q.layout == nullptr) return false;
    if (p.layout->minor_to_major != q.layout->minor_to_major) return false;
    const LayoutExtras none;
    if (!((p.layout->extras == nullptr ? none : *p.layout->extras) ==
          (q.layout->extras == nullptr ? none : *q.layout->extras))) {
      return false;
    }
  }
  return true;
}

}  // namespace hlokit

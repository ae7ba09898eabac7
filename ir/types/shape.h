// SPDX-License-Identifier: Apache-2.0
// Shapes and layouts. Both are interned in a ShapeTable: equal shapes of one table are the same record, so comparison
// is pointer comparison. A Shape is such a pointer and is passed by value.
//
// A shape is an array (element type, dimensions, layout), a tuple, a buffer of an array, a token or opaque. Dimensions
// may be bounded dynamic (`<=4`: size is the bound) or unbounded dynamic (`?`: size is kUnboundedSize).
#ifndef HLOKIT_IR_TYPES_SHAPE_H_
#define HLOKIT_IR_TYPES_SHAPE_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/arena.h"
#include "ir/core/ids.h"
#include "ir/core/intern_index.h"
#include "ir/core/list_pool.h"
#include "ir/types/element_type.h"

namespace hlokit {

inline constexpr int64_t kUnboundedSize = std::numeric_limits<int64_t>::min();
// An extent of a tile that combines with the next more major dimension, printed `*`.
inline constexpr int64_t kCombineDimension = std::numeric_limits<int64_t>::min();

struct ShapeRecord;

struct SplitConfig {
  int64_t dimension = 0;
  std::vector<int64_t> split_indices;
  friend bool operator==(const SplitConfig&, const SplitConfig&) = default;
};

// Properties of a layout beyond the dimension order, with the values of a layout without them.
struct LayoutExtras {
  std::vector<std::vector<int64_t>> tiles;
  int64_t tail_padding_alignment = 1;                 // L(..), elements
  std::optional<ElementType> index_primitive_type;    // #(..)
  std::optional<ElementType> pointer_primitive_type;  // *(..)
  int64_t element_size_in_bits = 0;                   // E(..); 0: that of the element type
  int64_t memory_space = 0;                           // S(..)
  std::vector<SplitConfig> split_configs;             // SC(..)
  std::vector<char> dim_level_types;                  // D(..): 'D' dense, 'C' compressed, 'S' singleton, 'H' loose
  std::vector<uint8_t> dim_flags;                     // with dim_level_types: 1 not unique ('+'), 2 not ordered ('~')
  ShapeId physical_shape;                             // P(..)
  const ShapeRecord* physical_record = nullptr;       // the record of physical_shape
  int64_t dynamic_shape_metadata_prefix_bytes = 0;    // M(..)
  friend bool operator==(const LayoutExtras&, const LayoutExtras&) = default;
};

struct LayoutRecord {
  LayoutId id;
  absl::Span<const int64_t> minor_to_major;
  const LayoutExtras* extras;  // null: none
  bool is_default;             // minor_to_major descends and there are no extras

  int64_t memory_space() const { return extras == nullptr ? 0 : extras->memory_space; }
};

class Shape;

struct ShapeRecord {
  ElementType element_type;
  bool dynamic_leaf;    // an array with a dynamic dimension, or a tuple with one
  bool unbounded_leaf;  // as dynamic_leaf, for unbounded dimensions
  uint32_t size;        // rank, or number of tuple elements
  ShapeId id;
  const int64_t* dims;                // [rank]
  const uint8_t* dynamic;             // [rank], 1 if dynamic; null if none is
  const Shape* elements;              // [tuple size]; one for a buffer
  const LayoutRecord* layout;         // arrays only; null if the shape has none
  const ShapeRecord* without_layout;  // the same shape without any layout
  int64_t element_count;              // arrays: product of dims (bounds where dynamic); -1 on overflow or if unbounded
  int64_t leaf_count;                 // arrays, tokens, ... in depth-first order; saturates (tuples may share elements)
};

class Shape {
 public:
  Shape() = default;
  explicit Shape(const ShapeRecord* record) : record_(record) {}

  bool valid() const { return record_ != nullptr; }
  ShapeId id() const { return record_->id; }
  ElementType element_type() const { return record_->element_type; }

  bool IsArray() const { return IsArrayType(record_->element_type); }
  bool IsTuple() const { return record_->element_type == ElementType::kTuple; }
  bool IsToken() const { return record_->element_type == ElementType::kToken; }
  bool IsOpaque() const { return record_->element_type == ElementType::kOpaque; }
  bool IsBuffer() const { return record_->element_type == ElementType::kBuffer; }
  bool IsScalar() const { return IsArray() && record_->size == 0; }

  // For arrays.
  int64_t rank() const { return IsArray() ? record_->size : 0; }
  absl::Span<const int64_t> dims() const { return {record_->dims, static_cast<size_t>(rank())}; }
  int64_t dim(int64_t i) const { return record_->dims[i]; }
  bool is_dynamic(int64_t i) const { return record_->dynamic != nullptr && record_->dynamic[i] != 0; }
  bool is_unbounded(int64_t i) const { return record_->dims[i] == kUnboundedSize; }
  bool has_dynamic_dims() const { return record_->dynamic_leaf; }      // also of any leaf
  bool has_unbounded_dims() const { return record_->unbounded_leaf; }  // also of any leaf
  // Returns the product of the dimensions; -1 if it overflows int64 or a dimension is unbounded.
  int64_t element_count() const { return record_->element_count; }
  bool has_layout() const { return record_->layout != nullptr; }
  const LayoutRecord* layout() const { return record_->layout; }

  int64_t leaf_count() const { return record_->leaf_count; }

  // For tuples; a buffer has one element.
  int64_t tuple_size() const { return IsArray() ? 0 : record_->size; }
  Shape element(int64_t i) const { return record_->elements[i]; }
  absl::Span<const Shape> elements() const { return {record_->elements, static_cast<size_t>(tuple_size())}; }

  // Returns the shape without layouts.
  Shape WithoutLayout() const { return Shape(record_->without_layout); }

  // Returns true if type and dimensions are equal, ignoring layouts (XLA's ShapeUtil::Compatible). Requires: both of
  // one table.
  friend bool Compatible(Shape a, Shape b) { return a.record_->without_layout == b.record_->without_layout; }
  // Returns true if the shapes are equal including layouts. Requires: both of one table.
  friend bool operator==(Shape a, Shape b) { return a.record_ == b.record_; }
  friend bool operator!=(Shape a, Shape b) { return a.record_ != b.record_; }

  const ShapeRecord* record() const { return record_; }

 private:
  const ShapeRecord* record_ = nullptr;
};

// Owns and interns shapes and layouts. Records never move. Not synchronized: one thread adds at a time.
class ShapeTable {
 public:
  ShapeTable(Arena* arena, ListPool* lists);
  ShapeTable(const ShapeTable&) = delete;
  ShapeTable& operator=(const ShapeTable&) = delete;

  Shape operator[](ShapeId id) const { return Shape(records_[id.value]); }
  size_t size() const { return records_.size(); }

  // Returns an array with the default layout (last dimension minor). `dynamic` is empty or has one entry per dimension.
  Shape Array(ElementType type, absl::Span<const int64_t> dims, absl::Span<const uint8_t> dynamic = {});
  // Returns an array with the given layout; null: without one.
  Shape Array(ElementType type, absl::Span<const int64_t> dims, absl::Span<const uint8_t> dynamic,
              const LayoutRecord* layout);
  Shape Scalar(ElementType type) { return Array(type, {}); }
  Shape Tuple(absl::Span<const Shape> elements);
  Shape Buffer(Shape element);
  Shape Token() { return Leaf(ElementType::kToken); }
  Shape Opaque() { return Leaf(ElementType::kOpaque); }

  // Return `array` with another layout (null: none), element type, or dimensions (default layout).
  Shape WithLayout(Shape array, const LayoutRecord* layout);
  Shape WithElementType(Shape array, ElementType type);
  // Returns `shape`, a tuple or array, with the default layout in every array.
  Shape WithDefaultLayouts(Shape shape);

  const LayoutRecord* Layout(absl::Span<const int64_t> minor_to_major, const LayoutExtras& extras = {});
  const LayoutRecord* DefaultLayout(int64_t rank);

 private:
  Shape Leaf(ElementType type);
  Shape Intern(const ShapeRecord& proto, absl::Span<const Shape> elements);
  ShapeRecord* NewRecord(const ShapeRecord& proto);

  Arena* arena_;
  ListPool* lists_;
  std::vector<ShapeRecord*> records_;
  InternIndex index_;
  std::vector<LayoutRecord*> layouts_;
  std::deque<LayoutExtras> extras_;
  InternIndex layout_index_;
  std::vector<const LayoutRecord*> default_layouts_;  // by rank
};

// Tuples that share elements can have more leaves than memory holds: the parser and builder reject shapes with more
// than this, so that traversals of leaves are bounded.
inline constexpr int64_t kMaxLeaves = int64_t{1} << 24;

// Returns the array, buffer, token and opaque leaves of `shape`, in depth-first order.
std::vector<Shape> Leaves(Shape shape);
// Returns the shape at `index` in `shape`, or nullopt.
std::optional<Shape> SubshapeAt(Shape shape, absl::Span<const int64_t> index);

// Returns the bytes of the values of `shape`, sub-byte types packed, tuples summed without tables. Saturates at int64
// max.
int64_t ByteSize(Shape shape);

// Compares shapes of two tables structurally.
bool SameShape(Shape a, Shape b, bool ignore_layout);

// Returns the shape as in HLO text: "f32[2,3]{1,0}", "(s32[], token[])"; without layouts if `with_layout` is false.
std::string ToString(Shape shape, bool with_layout = true);

}  // namespace hlokit

#endif  // HLOKIT_IR_TYPES_SHAPE_H_

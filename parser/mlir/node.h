// SPDX-License-Identifier: Apache-2.0
// Types, attributes and locations of MLIR, as interned trees: equal trees of one context have equal ids. A node has a
// kind, a text, a list of integers and a list of child nodes, whose meaning the kind determines. The uniform form lets
// printing, comparison and conversion walk any tree with an explicit stack.
#ifndef HLOKIT_PARSER_MLIR_NODE_H_
#define HLOKIT_PARSER_MLIR_NODE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ir/core/arena.h"
#include "ir/core/ids.h"
#include "ir/core/intern_index.h"
#include "ir/core/list_pool.h"
#include "ir/core/string_pool.h"
#include "ir/types/element_type.h"

namespace hlokit::mlir {

using NodeId = Id<struct NodeTag>;

// `?` in a shape.
inline constexpr int64_t kDynamicSize = std::numeric_limits<int64_t>::min();

//   text, ints, children of each kind
enum class NodeKind : uint8_t {
  // ---- types ----
  kIntegerType,         // ints: width, Signedness
  kFloatType,           // text: "f32", "bf16", "f8E4M3FN"
  kIndexType,           //
  kNoneType,            //
  kComplexType,         // children: part
  kTensorType,          // ints: sizes; children: element[, encoding]
  kUnrankedTensorType,  // children: element
  kMemRefType,          // ints: sizes; children: element[, layout or space...]
  kVectorType,          // ints: sizes; children: element
  kTupleType,           // children: elements
  kFunctionType,        // ints: number of inputs; children: inputs, results
  kDialectType,         // text: "stablehlo.token", "quant.uniform<i8:f32, 0.5>"
  kFutureType,          // children: types
  // ---- attributes ----
  kUnit,           //
  kInteger,        // ints: value; children: type
  kFloat,          // ints: bits of the double; children: type
  kString,         // text; children: [type]
  kArray,          // children
  kDictionary,     // ints: StringIds, sorted by Make; children: values
  kSymbol,         // text; ints: StringIds of nested symbols
  kDenseArray,     // ints: values (bits of doubles for floats); children: element type
  kDense,          // ints: number of the blob, splat (0/1); children: type
  kDenseText,      // text: between < and >, for element types that have no Literal form; children: type
  kDenseResource,  // text: key; children: type
  kEnum,           // text: "stablehlo.precision"; ints: StringId of the value
  kFields,         // text: "stablehlo.dot"; ints: StringIds; children: values. #stablehlo.dot<a = 1, b = [2]>
  kVerbatim,       // text: any other attribute as in the source, from its `#` or keyword on
  kAlias,          // text: an alias that is not defined yet (locations only)
  // ---- locations ----
  kUnknownLocation,   //
  kFileLocation,      // text; ints: line, column, end line, end column
  kNameLocation,      // text; children: [location]
  kCallSiteLocation,  // children: callee, caller
  kFusedLocation,     // ints: 1 if the first child is metadata; children
};

enum class Signedness : int64_t { kSignless, kSigned, kUnsigned };

// Trees grow exponentially where nodes refer to others twice. Readers refuse larger ones than this, which no program
// has, so that walks along a tree end.
inline constexpr uint32_t kMaxTreeSize = 1 << 24;

struct Node {
  NodeKind kind;
  StringId text;
  ListId ints;
  ListId children;
  // Nodes and integers of the tree, its texts and blobs in units of 16 bytes; parts that occur several times are
  // counted as often. At most kMaxTreeSize + 1.
  uint32_t tree_size = 0;
};

// The elements of a dense attribute, in the form of a Literal (ir/types/literal.h); a splat has one element.
struct Blob {
  const std::byte* data;
  size_t size;
};

// Owns and interns nodes.
class NodeTable {
 public:
  NodeTable() = default;
  NodeTable(const NodeTable&) = delete;
  NodeTable& operator=(const NodeTable&) = delete;

  NodeId Make(NodeKind kind, std::string_view text, absl::Span<const int64_t> ints, absl::Span<const NodeId> children);
  NodeId Make(NodeKind kind) { return Make(kind, "", {}, {}); }
  NodeId MakeBlob(NodeId type, const std::byte* data, size_t size, bool splat);
  NodeId String(std::string_view text) { return Make(NodeKind::kString, text, {}, {}); }
  NodeId Integer(int64_t value, NodeId type);
  NodeId IntegerType(int64_t width, Signedness signedness = Signedness::kSignless);
  NodeId Bool(bool value) { return Integer(value, IntegerType(1)); }
  NodeId Tensor(absl::Span<const int64_t> sizes, NodeId element);
  NodeId DenseArray(absl::Span<const int64_t> values, int64_t width);
  NodeId Enum(std::string_view name, std::string_view value);

  const Node& operator[](NodeId id) const { return nodes_[id.value]; }
  NodeKind kind(NodeId id) const { return nodes_[id.value].kind; }
  std::string_view text(NodeId id) const { return strings_[nodes_[id.value].text]; }
  absl::Span<const int64_t> ints(NodeId id) const { return lists_[nodes_[id.value].ints]; }
  // False if the trees that a node refers to exceed kMaxTreeSize. What it has itself is as large as in the source.
  bool IsPrintable(NodeId id) const;
  // True for trees whose text is short, as that of every default value.
  bool IsShort(NodeId id) const {
    constexpr uint32_t kMaxShort = 16;
    return nodes_[id.value].tree_size <= kMaxShort && kind(id) != NodeKind::kDense;
  }
  size_t child_count(NodeId id) const { return lists_[nodes_[id.value].children].size(); }
  NodeId child(NodeId id, size_t i) const {
    return NodeId(static_cast<uint32_t>(lists_[nodes_[id.value].children][i]));
  }
  std::vector<NodeId> children(NodeId id) const;
  Blob blob(NodeId id) const { return blobs_[static_cast<size_t>(ints(id)[0])]; }
  bool is_splat(NodeId id) const { return ints(id)[1] != 0; }

  StringPool& strings() { return strings_; }
  const StringPool& strings() const { return strings_; }
  std::string_view str(StringId id) const { return strings_[id]; }
  Arena& arena() { return arena_; }

  // ---- questions about nodes ----
  bool IsType(NodeId id) const { return kind(id) <= NodeKind::kFutureType; }
  bool IsLocation(NodeId id) const { return kind(id) >= NodeKind::kUnknownLocation; }
  // Returns the entry of a dictionary or of fields; invalid if there is none.
  NodeId Entry(NodeId dictionary, std::string_view name) const;
  // Returns the integers of an array of integers, dense array, or dense elements of at most 64 bits.
  std::optional<std::vector<int64_t>> Integers(NodeId id) const;
  // Returns the value of an integer or bool attribute.
  std::optional<int64_t> IntegerValue(NodeId id) const;
  // For tensors, also of complex numbers: the type of elements as HLO has it, if it does.
  std::optional<ElementType> HloElementType(NodeId element) const;

 private:
  std::string_view NameAt(absl::Span<const int64_t> names, size_t i) const {
    return strings_[StringId(static_cast<uint32_t>(names[i]))];
  }
  bool IsSortedByName(absl::Span<const int64_t> names) const;

  Arena arena_;
  StringPool strings_{&arena_};
  ListPool lists_{&arena_};
  std::vector<Node> nodes_;
  InternIndex index_;
  std::vector<Blob> blobs_;
  std::vector<int64_t> child_ids_;  // of Make
  NodeId i64_;                      // the type
};

// Returns a type, attribute or location as MLIR prints it.
std::string ToText(const NodeTable& nodes, NodeId id);
// Appends it. `elide_type`: without the type of a number, for places where it is known.
void AppendText(const NodeTable& nodes, NodeId id, std::string* out);
// The names of locations, `#loc`, `#loc1`, ..., which are defined once: a tree of locations can be exponentially larger
// than the nodes that it is made of.
class LocationNames {
 public:
  explicit LocationNames(const NodeTable& nodes) : nodes_(nodes) {}

  // Appends `loc(...)` with a name, which those of its parts precede. Locations without contents have no name.
  void AppendUse(NodeId location, std::string* out);
  // Appends a line for each name.
  void AppendDefinitions(std::string* out) const;
  // Returns the name of a location that has been used, or is a part of one.
  std::string NameOf(NodeId location) const;

 private:
  const NodeTable& nodes_;
  std::vector<NodeId> named_;
  absl::flat_hash_map<uint32_t, size_t> numbers_;  // by NodeId
};
// Appends `text` between quotes, escaped as MLIR does.
void AppendQuoted(std::string_view text, std::string* out);
// Appends @name, quoted where that is necessary.
void AppendSymbol(std::string_view name, std::string* out);
// Appends a number of the given float type as MLIR prints it.
void AppendFloat(double value, std::string_view type, std::string* out);

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_NODE_H_

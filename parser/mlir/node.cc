// SPDX-License-Identifier: Apache-2.0
#include "parser/mlir/node.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace hlokit::mlir {

NodeId NodeTable::Make(NodeKind kind, std::string_view text, absl::Span<const int64_t> ints,
                       absl::Span<const NodeId> children) {
  std::vector<int64_t>& ids = child_ids_;
  ids.clear();
  for (NodeId child : children) ids.push_back(child.value);
  std::vector<int64_t> names;
  if (kind == NodeKind::kDictionary && !IsSortedByName(ints)) {
    // MLIR's dictionaries have no order of their own: they are sorted.
    std::vector<size_t> order(ints.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return NameAt(ints, a) < NameAt(ints, b); });
    for (size_t i = 0; i < order.size(); ++i) {
      names.push_back(ints[order[i]]);
      ids[i] = children[order[i]].value;
    }
    ints = names;
  }
  // The empty string and the empty list are the first ones.
  constexpr uint64_t kUnit = 16;
  uint64_t size = 1 + text.size() / kUnit + ints.size();
  if (kind == NodeKind::kDense) size += blobs_[static_cast<size_t>(ints[0])].size / kUnit;
  for (NodeId child : children) size += nodes_[child.value].tree_size;  // the sum of 2^32 sizes of 2^24 fits
  Node node{kind, text.empty() ? StringId(0) : strings_.Intern(text), ints.empty() ? ListId(0) : lists_.Intern(ints),
            ids.empty() ? ListId(0) : lists_.Intern(ids)};
  node.tree_size = static_cast<uint32_t>(std::min<uint64_t>(size, kMaxTreeSize + 1));
  const uint64_t hash =
      MixHash(MixHash(static_cast<uint64_t>(kind), node.text.value), MixHash(node.ints.value, node.children.value));
  return NodeId(index_.FindOrInsert(
      hash,
      [&](uint32_t id) {
        const Node& other = nodes_[id];
        return other.kind == node.kind && other.text == node.text && other.ints == node.ints &&
               other.children == node.children;
      },
      [&] {
        nodes_.push_back(node);
        return static_cast<uint32_t>(nodes_.size() - 1);
      }));
}

bool NodeTable::IsPrintable(NodeId id) const {
  if (nodes_[id.value].tree_size <= kMaxTreeSize) return true;
  uint64_t size = 0;
  for (int64_t child : lists_[nodes_[id.value].children]) size += nodes_[static_cast<size_t>(child)].tree_size;
  return size <= kMaxTreeSize;
}

bool NodeTable::IsSortedByName(absl::Span<const int64_t> names) const {
  for (size_t i = 1; i < names.size(); ++i) {
    if (NameAt(names, i) < NameAt(names, i - 1)) return false;
  }
  return true;
}

NodeId NodeTable::MakeBlob(NodeId type, const std::byte* data, size_t size, bool splat) {
  const int64_t ints[] = {static_cast<int64_t>(blobs_.size()), splat};
  blobs_.push_back({data, size});
  return Make(NodeKind::kDense, "", ints, {&type, 1});
}

NodeId NodeTable::Integer(int64_t value, NodeId type) { return Make(NodeKind::kInteger, "", {&value, 1}, {&type, 1}); }

NodeId NodeTable::IntegerType(int64_t width, Signedness signedness) {
  constexpr int64_t kOften = 64;  // by far the most frequent one
  const bool often = width == kOften && signedness == Signedness::kSignless;
  if (often && i64_.valid()) return i64_;
  const int64_t ints[] = {width, static_cast<int64_t>(signedness)};
  const NodeId type = Make(NodeKind::kIntegerType, "", ints, {});
  if (often) i64_ = type;
  return type;
}

NodeId NodeTable::Tensor(absl::Span<const int64_t> sizes, NodeId element) {
  return Make(NodeKind::kTensorType, "", sizes, {&element, 1});
}

NodeId NodeTable::DenseArray(absl::Span<const int64_t> values, int64_t width) {
  const NodeId type = IntegerType(width);
  return Make(NodeKind::kDenseArray, "", values, {&type, 1});
}

NodeId NodeTable::Enum(std::string_view name, std::string_view value) {
  const int64_t ints[] = {strings_.Intern(value).value};
  return Make(NodeKind::kEnum, name, ints, {});
}

std::vector<NodeId> NodeTable::children(NodeId id) const {
  std::vector<NodeId> result;
  for (int64_t child : lists_[nodes_[id.value].children]) result.push_back(NodeId(static_cast<uint32_t>(child)));
  return result;
}

NodeId NodeTable::Entry(NodeId dictionary, std::string_view name) const {
  if (!dictionary.valid()) return {};
  if (kind(dictionary) != NodeKind::kDictionary && kind(dictionary) != NodeKind::kFields) return {};
  const absl::Span<const int64_t> names = ints(dictionary);
  for (size_t i = 0; i < names.size(); ++i) {
    if (strings_[StringId(static_cast<uint32_t>(names[i]))] == name) return child(dictionary, i);
  }
  return {};
}

std::optional<int64_t> NodeTable::IntegerValue(NodeId id) const {
  if (!id.valid() || kind(id) != NodeKind::kInteger) return std::nullopt;
  return ints(id)[0];
}

std::optional<std::vector<int64_t>> NodeTable::Integers(NodeId id) const {
  if (!id.valid()) return std::nullopt;
  std::vector<int64_t> values;
  switch (kind(id)) {
    case NodeKind::kDenseArray:
      values.assign(ints(id).begin(), ints(id).end());
      return values;
    case NodeKind::kArray:
      for (size_t i = 0; i < child_count(id); ++i) {
        const std::optional<int64_t> value = IntegerValue(child(id, i));
        if (!value) return std::nullopt;
        values.push_back(*value);
      }
      return values;
    case NodeKind::kDense: {
      const NodeId type = child(id, 0);
      if (kind(type) != NodeKind::kTensorType && kind(type) != NodeKind::kVectorType) return std::nullopt;
      const std::optional<ElementType> element = HloElementType(child(type, 0));
      if (!element || (!IsInteger(*element) && *element != ElementType::kPred)) return std::nullopt;
      const size_t bytes = static_cast<size_t>(BytesOf(*element));
      const Blob data = blob(id);
      const auto read = [&](size_t i) {
        int64_t value = 0;
        std::memcpy(&value, data.data + i * bytes, bytes);
        const int unused = 64 - static_cast<int>(bytes) * 8;
        return IsSigned(*element) ? static_cast<int64_t>(static_cast<uint64_t>(value) << unused) >> unused : value;
      };
      if (is_splat(id)) {
        int64_t count = 1;
        constexpr int64_t kMaxSplat = 1 << 16;
        for (int64_t size : ints(type)) {
          if (__builtin_mul_overflow(count, size, &count) || count > kMaxSplat) return std::nullopt;
        }
        values.assign(static_cast<size_t>(count), data.size == 0 ? 0 : read(0));
        return values;
      }
      for (size_t i = 0; i < data.size / bytes; ++i) values.push_back(read(i));
      return values;
    }
    default:
      return std::nullopt;
  }
}

std::optional<ElementType> NodeTable::HloElementType(NodeId element) const {
  switch (kind(element)) {
    case NodeKind::kIntegerType: {
      const int64_t width = ints(element)[0];
      const bool is_unsigned = ints(element)[1] == static_cast<int64_t>(Signedness::kUnsigned);
      switch (width) {
        case 1:
          if (!is_unsigned) return ElementType::kPred;
          return std::nullopt;
        case 2:
          return is_unsigned ? ElementType::kU2 : ElementType::kS2;
        case 4:
          return is_unsigned ? ElementType::kU4 : ElementType::kS4;
        case 8:
          return is_unsigned ? ElementType::kU8 : ElementType::kS8;
        case 16:
          return is_unsigned ? ElementType::kU16 : ElementType::kS16;
        case 32:
          return is_unsigned ? ElementType::kU32 : ElementType::kS32;
        case 64:
          return is_unsigned ? ElementType::kU64 : ElementType::kS64;
        default:
          return std::nullopt;
      }
    }
    case NodeKind::kIndexType:
      return ElementType::kS64;
    case NodeKind::kFloatType: {
      std::string lower(text(element));
      for (char& c : lower) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
      }
      return ElementTypeFromText(lower);
    }
    case NodeKind::kComplexType: {
      const std::optional<ElementType> part = HloElementType(child(element, 0));
      if (part == ElementType::kF32) return ElementType::kC64;
      if (part == ElementType::kF64) return ElementType::kC128;
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace hlokit::mlir

// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/ffi_attributes.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "parser/mlir/cursor.h"
#include "parser/mlir/node_parser.h"

namespace hlokit::pjrt {
namespace {

using mlir::NodeId;
using mlir::NodeKind;

struct NumberedType {
  ElementType type;
  XLA_FFI_DataType number;
};
// Of whole bytes.
constexpr NumberedType kNumberedTypes[] = {
    {ElementType::kPred, 1},
    {ElementType::kS8, 2},
    {ElementType::kS16, 3},
    {ElementType::kS32, 4},
    {ElementType::kS64, 5},
    {ElementType::kU8, 6},
    {ElementType::kU16, 7},
    {ElementType::kU32, 8},
    {ElementType::kU64, 9},
    {ElementType::kF16, 10},
    {ElementType::kF32, 11},
    {ElementType::kF64, 12},
    {ElementType::kC64, 15},
    {ElementType::kBF16, 16},
    {ElementType::kToken, 17},
    {ElementType::kC128, 18},
    {ElementType::kF8E5M2, 19},
    {ElementType::kF8E4M3FN, 20},
    {ElementType::kF8E4M3B11FNUZ, 23},
    {ElementType::kF8E5M2FNUZ, 24},
    {ElementType::kF8E4M3FNUZ, 25},
    {ElementType::kF8E4M3, 28},
    {ElementType::kF8E3M4, 29},
    {ElementType::kF8E8M0FNU, 33},
};

constexpr size_t kMaxArrayBytes = size_t{1} << 24;  // of one attribute

}  // namespace

XLA_FFI_DataType FfiTypeOf(ElementType type) {
  for (const NumberedType& numbered : kNumberedTypes) {
    if (numbered.type == type) return numbered.number;
  }
  return 0;
}

absl::StatusOr<std::unique_ptr<FfiAttributes>> FfiAttributes::Parse(std::string_view text) {
  auto result = std::make_unique<FfiAttributes>();
  const std::string terminated(text.empty() ? "{}" : text);
  DiagnosticSink sink;
  mlir::Cursor in(terminated, &sink);
  mlir::NodeLimits limits;
  limits.max_nesting = 1 << 10;
  limits.max_literal_bytes = kMaxArrayBytes;
  const NodeId root = mlir::NodeParser(&in, &result->nodes_, limits).ParseAttribute();
  if (!root.valid() || !in.AtEnd() || result->nodes_.kind(root) != NodeKind::kDictionary) {
    return absl::InvalidArgumentError("the backend_config of a typed custom call is not a dictionary of attributes");
  }
  Pending pending = {{root, &result->dictionaries_.emplace_back()}};
  while (!pending.empty()) {
    const auto [node, dictionary] = pending.back();
    pending.pop_back();
    if (absl::Status status = result->Fill(node, dictionary, &pending); !status.ok()) return status;
  }
  return result;
}

absl::Status FfiAttributes::Fill(NodeId node, Dictionary* dictionary, Pending* pending) {
  const size_t size = nodes_.child_count(node);
  dictionary->types.resize(size);
  dictionary->texts.resize(size);
  dictionary->names.resize(size);
  dictionary->values.resize(size);
  for (size_t i = 0; i < size; ++i) {
    const std::string_view name = nodes_.str(StringId(static_cast<uint32_t>(nodes_.ints(node)[i])));
    dictionary->texts[i] = {name.data(), name.size()};
    dictionary->names[i] = &dictionary->texts[i];
    absl::Status status = Add(nodes_.child(node, i), &dictionary->types[i], &dictionary->values[i], pending);
    if (!status.ok())
      return absl::Status(status.code(), StrCat("attribute ", name, ": ", std::string(status.message())));
  }
  dictionary->attrs = {sizeof(XLA_FFI_Attrs),      nullptr,
                       static_cast<int64_t>(size), dictionary->types.data(),
                       dictionary->names.data(),   dictionary->values.data()};
  return absl::OkStatus();
}

absl::Status FfiAttributes::Add(NodeId node, XLA_FFI_AttrType* type, void** value, Pending* pending) {
  const NodeKind kind = nodes_.kind(node);
  if (kind == NodeKind::kString) {
    const std::string_view text = nodes_.text(node);
    *type = XLA_FFI_AttrType_STRING;
    *value = &strings_.emplace_back(XLA_FFI_ByteSpan{text.data(), text.size()});
    return absl::OkStatus();
  }
  if (kind == NodeKind::kDictionary) {
    Dictionary* const dictionary = &dictionaries_.emplace_back();
    pending->push_back({node, dictionary});
    *type = XLA_FFI_AttrType_DICTIONARY;
    *value = &dictionary->attrs;
    return absl::OkStatus();
  }
  if (kind == NodeKind::kInteger || kind == NodeKind::kFloat) {
    const absl::StatusOr<XLA_FFI_Array> number = Numbers(nodes_.child(node, 0), nodes_.ints(node));
    if (!number.ok()) return number.status();
    *type = XLA_FFI_AttrType_SCALAR;
    *value = &scalars_.emplace_back(XLA_FFI_Scalar{number->dtype, number->data});
    return absl::OkStatus();
  }
  if (kind == NodeKind::kDenseArray || kind == NodeKind::kDense) {
    const absl::StatusOr<XLA_FFI_Array> array =
        kind == NodeKind::kDense ? Tensor(node) : Numbers(nodes_.child(node, 0), nodes_.ints(node));
    if (!array.ok()) return array.status();
    *type = XLA_FFI_AttrType_ARRAY;
    *value = &arrays_.emplace_back(*array);
    return absl::OkStatus();
  }
  return absl::UnimplementedError("handlers take numbers, arrays of numbers, texts and dictionaries");
}

absl::StatusOr<XLA_FFI_Array> FfiAttributes::Numbers(NodeId element, absl::Span<const int64_t> values) {
  const std::optional<ElementType> type =
      nodes_.kind(element) == NodeKind::kIndexType ? ElementType::kS64 : nodes_.HloElementType(element);
  const XLA_FFI_DataType number = type ? FfiTypeOf(*type) : 0;
  const bool known = number != 0 && (*type == ElementType::kPred || IsInteger(*type) || *type == ElementType::kF32 ||
                                     *type == ElementType::kF64);
  if (!known) return absl::UnimplementedError("numbers of this type");
  const auto bytes = static_cast<size_t>(BytesOf(*type));
  std::vector<std::byte>& data = data_.emplace_back(values.size() * bytes + 1);
  for (size_t i = 0; i < values.size(); ++i) {
    // Floats are the bits of doubles. Little-endian, as the elements of literals.
    const int64_t given = values[i];
    const auto narrow = static_cast<float>(std::bit_cast<double>(given));
    const void* const from = *type == ElementType::kF32 ? static_cast<const void*>(&narrow) : &given;
    std::memcpy(data.data() + i * bytes, from, bytes);
  }
  return XLA_FFI_Array{number, values.size(), data.data()};
}

absl::StatusOr<XLA_FFI_Array> FfiAttributes::Tensor(NodeId dense) {
  const NodeId tensor = nodes_.child(dense, 0);
  const std::optional<ElementType> type = nodes_.HloElementType(nodes_.child(tensor, 0));
  const XLA_FFI_DataType number = type && IsArrayType(*type) ? FfiTypeOf(*type) : 0;
  if (number == 0) return absl::UnimplementedError("tensors of this type");
  const auto bytes = static_cast<size_t>(BytesOf(*type));
  size_t count = 1;
  for (const int64_t size : nodes_.ints(tensor)) {
    if (size < 0 || (size != 0 && count > kMaxArrayBytes / bytes / static_cast<size_t>(size))) {
      return absl::ResourceExhaustedError("the tensor is too large");
    }
    count *= static_cast<size_t>(size);
  }
  const mlir::Blob blob = nodes_.blob(dense);
  std::vector<std::byte>& data = data_.emplace_back(count * bytes + 1);
  const bool splat = nodes_.is_splat(dense);
  if (blob.size < (splat ? bytes : count * bytes)) return absl::InternalError("a tensor without its elements");
  if (!splat && count != 0) std::memcpy(data.data(), blob.data, count * bytes);
  for (size_t i = 0; splat && i < count; ++i) std::memcpy(data.data() + i * bytes, blob.data, bytes);
  return XLA_FFI_Array{number, count, data.data()};
}

}  // namespace hlokit::pjrt

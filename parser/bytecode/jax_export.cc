// SPDX-License-Identifier: Apache-2.0
#include "parser/bytecode/jax_export.h"

#include <cstddef>
#include <cstdint>

#include "parser/bytecode/container.h"

namespace hlokit::bytecode {
namespace {

// A number of `size` bytes, little-endian; nullopt beyond the end.
std::optional<uint64_t> Number(std::string_view bytes, uint64_t at, size_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return std::nullopt;
  uint64_t number = 0;
  for (size_t i = size; i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(bytes[static_cast<size_t>(at) + i]);
  }
  return number;
}

}  // namespace

// The file begins with the offset of its root table. A table begins with the distance back to its vtable, which has its
// own size, that of the table, and where in the table each field is. A field that is a vector is the offset, from
// there, of a size and the elements.
std::optional<std::string_view> ArtifactOfJaxExport(std::string_view bytes) {
  constexpr uint64_t kField = 13;  // mlir_module_serialized
  constexpr uint64_t kFieldsBegin = 4;
  const std::optional<uint64_t> table = Number(bytes, 0, 4);
  if (!table) return std::nullopt;
  const std::optional<uint64_t> back = Number(bytes, *table, 4);
  if (!back) return std::nullopt;
  const int64_t vtable = static_cast<int64_t>(*table) - static_cast<int32_t>(static_cast<uint32_t>(*back));
  if (vtable < 0) return std::nullopt;
  const std::optional<uint64_t> size = Number(bytes, static_cast<uint64_t>(vtable), 2);
  const uint64_t slot = kFieldsBegin + 2 * kField;
  if (!size || *size < slot + 2) return std::nullopt;
  const std::optional<uint64_t> field_offset = Number(bytes, static_cast<uint64_t>(vtable) + slot, 2);
  if (!field_offset || *field_offset == 0) return std::nullopt;
  const std::optional<uint64_t> vector_offset = Number(bytes, *table + *field_offset, 4);
  if (!vector_offset) return std::nullopt;
  const uint64_t vector = *table + *field_offset + *vector_offset;
  const std::optional<uint64_t> count = Number(bytes, vector, 4);
  if (!count || *count > bytes.size() - vector - 4) return std::nullopt;
  const std::string_view artifact = bytes.substr(static_cast<size_t>(vector) + 4, static_cast<size_t>(*count));
  if (!IsBytecode(artifact)) return std::nullopt;
  return artifact;
}

}  // namespace hlokit::bytecode

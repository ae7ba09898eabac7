// SPDX-License-Identifier: Apache-2.0
// Arrays in a caller's memory, which may have strides, as elements of a literal and back.
#ifndef HLOKIT_PJRT_VALUES_HOST_ARRAY_H_
#define HLOKIT_PJRT_VALUES_HOST_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/types/element_type.h"
#include "pjrt/c_api/types.h"

namespace hlokit::pjrt {

// Returns the bytes of an array, one byte or more an element. Returns an error for negative sizes and overflow.
absl::StatusOr<int64_t> HostBytes(ElementType type, absl::Span<const int64_t> dims);

// Returns the distances in bytes between neighbors along each dimension of a dense array, the last dimension minor.
std::vector<int64_t> DenseStrides(ElementType type, absl::Span<const int64_t> dims);
// Returns the strides of a layout of the interface: an order of dimensions without tiles, or strides. null: the default
// one.
// Returns an error for other layouts, and for those that do not fit the rank.
absl::StatusOr<std::vector<int64_t>> StridesOf(const PJRT_Buffer_MemoryLayout* layout, ElementType type,
                                               absl::Span<const int64_t> dims);

// Copies an array. `from` and `to` point to the first elements; strides are in bytes, of any sign.
void CopyStrided(const std::byte* from, absl::Span<const int64_t> from_strides, std::byte* to,
                 absl::Span<const int64_t> to_strides, absl::Span<const int64_t> dims, int64_t element_bytes);

// Returns true if any bytes are values of the type: otherwise Normalize turns those that are not into values (pred: 0
// or 1; types narrower than a byte: the low bits, extended).
bool AllBytesAreValues(ElementType type);
void Normalize(ElementType type, absl::Span<std::byte> elements);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_VALUES_HOST_ARRAY_H_

// SPDX-License-Identifier: Apache-2.0
// Layouts of arrays without tiles: orders of dimensions, the minor one first. An empty order is the row-major one.
#ifndef HLOKIT_PJRT_VALUES_LAYOUT_H_
#define HLOKIT_PJRT_VALUES_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/types/element_type.h"
#include "pjrt/c_api/types.h"

namespace hlokit::pjrt {

// Returns the order, empty if it is the row-major one.
std::vector<int64_t> CanonicalOrder(std::vector<int64_t> minor_to_major);

// Reads HLO's text, "{0,1}". Returns an error for tiles, and for what is no order of the dimensions.
absl::StatusOr<std::vector<int64_t>> ParseOrder(std::string_view text, int64_t rank);
// Reads a layout of the interface, null: the row-major one; one of strides is row-major, for it says where elements of
// the caller are. Returns an error for tiles, and for what is no order of the dimensions.
absl::StatusOr<std::vector<int64_t>> ReadOrder(const PJRT_Buffer_MemoryLayout* layout, size_t rank);

// Returns HLO's text.
std::string LayoutText(absl::Span<const int64_t> minor_to_major, size_t rank);
// Returns the distances in bytes between neighbors along each dimension of a dense array.
std::vector<int64_t> StridesOfOrder(absl::Span<const int64_t> minor_to_major, ElementType type,
                                    absl::Span<const int64_t> dims);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_VALUES_LAYOUT_H_

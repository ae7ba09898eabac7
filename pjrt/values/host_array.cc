// SPDX-License-Identifier: Apache-2.0
#include "pjrt/values/host_array.h"

#include <cstring>
#include <limits>

#include "ir/core/str_cat.h"
#include "pjrt/values/layout.h"

namespace hlokit::pjrt {

absl::StatusOr<int64_t> HostBytes(ElementType type, absl::Span<const int64_t> dims) {
  bool empty = false;
  for (const int64_t size : dims) {
    if (size < 0) return absl::InvalidArgumentError(StrCat("a dimension has the size ", size));
    empty |= size == 0;
  }
  if (empty) return int64_t{0};
  int64_t bytes = BytesOf(type);
  for (const int64_t size : dims) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      return absl::InvalidArgumentError("the array has more than 2^63 bytes");
    }
  }
  return bytes;
}

std::vector<int64_t> DenseStrides(ElementType type, absl::Span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = BytesOf(type);
  for (size_t i = dims.size(); i-- > 0; stride *= dims[i]) strides[i] = stride;
  return strides;
}

absl::StatusOr<std::vector<int64_t>> StridesOf(const PJRT_Buffer_MemoryLayout* layout, ElementType type,
                                               absl::Span<const int64_t> dims) {
  if (layout == nullptr) return DenseStrides(type, dims);
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Strides) {
    const PJRT_Buffer_MemoryLayout_Strides& given = layout->strides;
    if (given.num_byte_strides != dims.size()) {
      return absl::InvalidArgumentError(StrCat("the layout has ", static_cast<int64_t>(given.num_byte_strides),
                                               " strides, the array ", static_cast<int64_t>(dims.size()),
                                               " dimensions"));
    }
    return std::vector<int64_t>(given.byte_strides, given.byte_strides + given.num_byte_strides);
  }
  const absl::StatusOr<std::vector<int64_t>> order = ReadOrder(layout, dims.size());
  if (!order.ok()) return order.status();
  return StridesOfOrder(*order, type, dims);
}

namespace {

// One dimension of a copy; neighbors that are dense in both arrays are one dimension.
struct Loop {
  int64_t size, from, to;
};

std::vector<Loop> LoopsOf(absl::Span<const int64_t> from_strides, absl::Span<const int64_t> to_strides,
                          absl::Span<const int64_t> dims) {
  std::vector<Loop> loops;
  for (size_t i = 0; i < dims.size(); ++i) {
    const Loop loop = {dims[i], from_strides[i], to_strides[i]};
    if (loop.size == 1) continue;
    if (!loops.empty() && loops.back().from == loop.size * loop.from && loops.back().to == loop.size * loop.to) {
      loops.back() = {loops.back().size * loop.size, loop.from, loop.to};
    } else {
      loops.push_back(loop);
    }
  }
  return loops;
}

void CopyRow(const std::byte* from, std::byte* to, const Loop& loop, int64_t element_bytes) {
  if (loop.from == element_bytes && loop.to == element_bytes) {
    std::memcpy(to, from, static_cast<size_t>(loop.size * element_bytes));
    return;
  }
  for (int64_t i = 0; i < loop.size; ++i, from += loop.from, to += loop.to) {
    std::memcpy(to, from, static_cast<size_t>(element_bytes));
  }
}

}  // namespace

void CopyStrided(const std::byte* from, absl::Span<const int64_t> from_strides, std::byte* to,
                 absl::Span<const int64_t> to_strides, absl::Span<const int64_t> dims, int64_t element_bytes) {
  for (const int64_t size : dims) {
    if (size == 0) return;
  }
  std::vector<Loop> loops = LoopsOf(from_strides, to_strides, dims);
  if (loops.empty()) loops.push_back({1, element_bytes, element_bytes});
  const Loop row = loops.back();
  loops.pop_back();
  std::vector<int64_t> index(loops.size(), 0);
  while (true) {
    CopyRow(from, to, row, element_bytes);
    size_t d = loops.size();
    for (; d-- > 0;) {
      from += loops[d].from;
      to += loops[d].to;
      if (++index[d] < loops[d].size) break;
      from -= loops[d].from * loops[d].size;
      to -= loops[d].to * loops[d].size;
      index[d] = 0;
    }
    if (d == std::numeric_limits<size_t>::max()) return;
  }
}

bool AllBytesAreValues(ElementType type) { return type != ElementType::kPred && BitsOf(type) >= 8; }

void Normalize(ElementType type, absl::Span<std::byte> elements) {
  if (AllBytesAreValues(type)) return;
  if (type == ElementType::kPred) {
    for (std::byte& e : elements) e = std::byte{e != std::byte{0}};
    return;
  }
  const int unused = 8 - BitsOf(type);
  for (std::byte& e : elements) {
    const auto high = static_cast<uint8_t>(static_cast<uint8_t>(e) << unused);
    e = IsSigned(type) ? static_cast<std::byte>(static_cast<int8_t>(high) >> unused)
                       : static_cast<std::byte>(high >> unused);
  }
}

}  // namespace hlokit::pjrt

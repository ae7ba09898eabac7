// SPDX-License-Identifier: Apache-2.0
#include "pjrt/values/layout.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "ir/core/str_cat.h"
#include "pjrt/values/host_array.h"

namespace hlokit::pjrt {
namespace {

bool IsOrder(absl::Span<const int64_t> order, size_t rank) {
  if (order.size() != rank) return false;
  std::vector<bool> seen(rank, false);
  for (const int64_t dim : order) {
    if (dim < 0 || static_cast<size_t>(dim) >= rank || seen[static_cast<size_t>(dim)]) return false;
    seen[static_cast<size_t>(dim)] = true;
  }
  return true;
}

}  // namespace

std::vector<int64_t> CanonicalOrder(std::vector<int64_t> minor_to_major) {
  for (size_t i = 0; i < minor_to_major.size(); ++i) {
    if (minor_to_major[i] != static_cast<int64_t>(minor_to_major.size() - 1 - i)) return minor_to_major;
  }
  return {};
}

absl::StatusOr<std::vector<int64_t>> ParseOrder(std::string_view text, int64_t rank) {
  const auto error = [&] {
    return absl::InvalidArgumentError(
        StrCat("the layout ", text, " is not an order of the dimensions of an array of rank ", rank));
  };
  if (!text.starts_with('{') || !text.ends_with('}')) return error();
  std::string_view inner = text.substr(1, text.size() - 2);
  if (const size_t colon = inner.find(':'); colon != inner.npos) {
    const std::string_view rest = inner.substr(colon + 1);
    if (rest.find("T(") != rest.npos) {
      return absl::UnimplementedError(StrCat("the layout ", text, " has tiles, which arrays on hlokit do not have"));
    }
    inner = inner.substr(0, colon);
  }
  std::vector<int64_t> order;
  if (!inner.empty()) {
    for (const std::string& number : std::vector<std::string>(absl::StrSplit(std::string(inner), ','))) {
      if (!absl::SimpleAtoi(number, &order.emplace_back())) return error();
    }
  }
  if (!IsOrder(order, static_cast<size_t>(rank))) return error();
  return CanonicalOrder(std::move(order));
}

absl::StatusOr<std::vector<int64_t>> ReadOrder(const PJRT_Buffer_MemoryLayout* layout, size_t rank) {
  if (layout == nullptr || layout->type != PJRT_Buffer_MemoryLayout_Type_Tiled) return std::vector<int64_t>();
  const PJRT_Buffer_MemoryLayout_Tiled& tiled = layout->tiled;
  if (tiled.num_tiles != 0) return absl::UnimplementedError("layouts with tiles");
  const absl::Span<const int64_t> order(tiled.minor_to_major, tiled.minor_to_major_size);
  if (!IsOrder(order, rank)) {
    return absl::InvalidArgumentError("the layout is not an order of the dimensions of the array");
  }
  return CanonicalOrder(std::vector<int64_t>(order.begin(), order.end()));
}

std::string LayoutText(absl::Span<const int64_t> minor_to_major, size_t rank) {
  std::string text = "{";
  for (size_t i = 0; i < rank; ++i) {
    StrAppend(&text, i == 0 ? "" : ",",
              minor_to_major.empty() ? static_cast<int64_t>(rank - 1 - i) : minor_to_major[i]);
  }
  return StrCat(text, "}");
}

std::vector<int64_t> StridesOfOrder(absl::Span<const int64_t> minor_to_major, ElementType type,
                                    absl::Span<const int64_t> dims) {
  if (minor_to_major.empty()) return DenseStrides(type, dims);
  std::vector<int64_t> strides(dims.size(), 0);
  int64_t stride = BytesOf(type);
  for (const int64_t dim : minor_to_major) {
    strides[static_cast<size_t>(dim)] = stride;
    if (dims[static_cast<size_t>(dim)] != 0) stride *= dims[static_cast<size_t>(dim)];
  }
  return strides;
}

}  // namespace hlokit::pjrt

// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/kernels/contractions/strided_source.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "interp/exact/program/element_width.h"

namespace hlokit::interp {
namespace {

// Copies n elements of `bytes` bytes, `stride` elements apart in the target.
void Scatter(const std::byte* from, int64_t n, std::byte* to, int64_t stride, int64_t bytes) {
  const auto copy = [&]<typename T>(T) {
    const T* f = reinterpret_cast<const T*>(from);
    T* t = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) t[i * stride] = f[i];
  };
  VisitWidth(bytes, copy);
}

// Returns true for offsets of contiguous elements.
bool IsRun(const std::vector<int64_t>& offsets) {
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] != offsets[i - 1] + 1) return false;
  }
  return true;
}

}  // namespace

void DimGroup::Offsets(int64_t begin, int64_t n, int64_t* offsets) const {
  if (sizes.empty()) {
    std::fill_n(offsets, n, 0);
    return;
  }
  // Runs along the last dimension.
  const int64_t size = sizes.back();
  const int64_t stride = strides.back();
  for (int64_t i = 0; i < n;) {
    const int64_t at = begin + i;
    const int64_t run = std::min(n - i, size - at % size);
    int64_t offset = Offset(at);
    for (int64_t j = 0; j < run; ++j, offset += stride) offsets[i + j] = offset;
    i += run;
  }
}

bool StridedSource::Init(const View& view, absl::Span<const int64_t> batch_dims,
                         absl::Span<const int64_t> contracting_dims, ElementType result) {
  const Dims strides = StridesOf(view);
  std::vector<bool> taken(strides.size(), false);
  const auto take = [&](absl::Span<const int64_t> dims, DimGroup* group) {
    for (int64_t d : dims) {
      if (d < 0 || d >= view.shape.rank() || taken[d]) return false;
      taken[d] = true;
      group->Add(view.shape.dim(d), strides[d]);
    }
    return true;
  };
  if (!take(batch_dims, &batch) || !take(contracting_dims, &contracting)) return false;
  for (int64_t d = 0; d < view.shape.rank(); ++d) {
    if (!taken[d]) free.Add(view.shape.dim(d), strides[d]);
  }
  return conversion.Init(view.type(), result);
}

void StridedPanels::Pack(int64_t batch, int64_t first, int64_t count, int64_t k_begin, int64_t k_count, int64_t width,
                         std::byte* to) const {
  const OperandConversion& conversion = source_.conversion;
  const int64_t bytes = conversion.to_bytes();
  const std::byte* base = data_ + source_.batch.Offset(batch) * conversion.from_bytes();
  std::vector<int64_t> lines(static_cast<size_t>(count));
  std::vector<int64_t> ks(static_cast<size_t>(k_count));
  source_.free.Offsets(first, count, lines.data());
  source_.contracting.Offsets(k_begin, k_count, ks.data());
  const int64_t panels = (count + width - 1) / width;
  if (count % width != 0) {
    std::memset(to + (panels - 1) * k_count * width * bytes, 0, static_cast<size_t>(k_count * width * bytes));
  }
  // Reads elements in the direction that is closer to contiguous.
  const int64_t line_step = source_.free.strides.empty() ? INT64_MAX : std::abs(source_.free.strides.back());
  const int64_t k_step = source_.contracting.strides.empty() ? INT64_MAX : std::abs(source_.contracting.strides.back());
  if (line_step < k_step) {
    std::vector<std::byte> row(static_cast<size_t>(count * bytes));
    const bool as_they_are = conversion.identity() && IsRun(lines);
    for (int64_t k = 0; k < k_count; ++k) {
      const std::byte* from = base + ks[k] * conversion.from_bytes();
      const std::byte* elements = as_they_are ? from + lines[0] * bytes : row.data();
      if (!as_they_are) GatherConvert(conversion, from, lines.data(), count, row.data());
      for (int64_t panel = 0; panel < panels; ++panel) {
        const int64_t n = std::min(width, count - panel * width);
        std::memcpy(to + (panel * k_count + k) * width * bytes, elements + panel * width * bytes,
                    static_cast<size_t>(n * bytes));
      }
    }
    return;
  }
  std::vector<std::byte> column(static_cast<size_t>(k_count * bytes));
  const bool as_they_are = conversion.identity() && k_count != 0 && IsRun(ks);
  for (int64_t line = 0; line < count; ++line) {
    const std::byte* from = base + lines[line] * conversion.from_bytes();
    const std::byte* elements = as_they_are ? from + ks[0] * bytes : column.data();
    if (!as_they_are) GatherConvert(conversion, from, ks.data(), k_count, column.data());
    Scatter(elements, k_count, to + (line / width * k_count * width + line % width) * bytes, width, bytes);
  }
}

}  // namespace hlokit::interp

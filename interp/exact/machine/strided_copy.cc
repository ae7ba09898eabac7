// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/machine/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "interp/exact/machine/run_context.h"
#include "interp/processor/tile_transpose.h"

namespace hlokit::interp {
namespace {

struct Wide {
  uint64_t low, high;
};

struct CopyParams : ThunkParams {
  StridedCopy copy;
};

}  // namespace

StridedCopy::StridedCopy(absl::Span<const int64_t> dims, absl::Span<const int64_t> to_strides,
                         absl::Span<const int64_t> from_strides, int64_t element_bytes)
    : element_bytes_(element_bytes) {
  const int64_t count = ElementCount(dims);
  bytes_ = count * element_bytes;
  if (count == 0) return;
  const auto make_nest = [](absl::Span<const int64_t> d, absl::Span<const int64_t> t, absl::Span<const int64_t> f) {
    const Dims strides[2] = {Dims(t.begin(), t.end()), Dims(f.begin(), f.end())};
    return LoopNest(d, strides);
  };
  nest_ = make_nest(dims, to_strides, from_strides);
  const int64_t to_inner = nest_.inner_strides()[0];
  const int64_t from_inner = nest_.inner_strides()[1];
  if (nest_.inner_size() == 1 || (to_inner == 1 && from_inner == 1)) {
    kind_ = Kind::kRuns;
  } else if (to_inner == 1 && from_inner == 0) {
    kind_ = Kind::kFill;
  } else {
    kind_ = Kind::kStrided;
    // If another dimension is contiguous in the source, traverse both in tiles.
    if (to_inner == 1) {
      for (int d = 0; d + 1 < nest_.rank(); ++d) {
        if (nest_.stride(d, 1) != 1 || nest_.size(d) < 4 || nest_.inner_size() < 4) continue;
        Dims sizes, to, from;
        for (int i = 0; i < nest_.rank(); ++i) {
          if (i == d || i + 1 == nest_.rank()) continue;
          sizes.push_back(nest_.size(i));
          to.push_back(nest_.stride(i, 0));
          from.push_back(nest_.stride(i, 1));
        }
        for (int i : {d, nest_.rank() - 1}) {
          sizes.push_back(nest_.size(i));
          to.push_back(nest_.stride(i, 0));
          from.push_back(nest_.stride(i, 1));
        }
        // The two dimensions cannot be collapsed: one is contiguous on one side only.
        nest_ = make_nest(sizes, to, from);
        kind_ = Kind::kTranspose;
        break;
      }
    }
  }
  rows_ = nest_.outer_count();
}

template <typename T>
void StridedCopy::RunTyped(T* to, const T* from, int64_t begin, int64_t end) const {
  const int64_t n = nest_.inner_size();
  const int64_t ts = nest_.inner_strides()[0];
  const int64_t fs = nest_.inner_strides()[1];
  switch (kind_) {
    case Kind::kNothing:
      break;
    case Kind::kRuns:
      nest_.ForEachRun(begin, end, [&](const int64_t* at) {
        std::memcpy(to + at[0], from + at[1], static_cast<size_t>(n) * sizeof(T));
      });
      break;
    case Kind::kFill:
      nest_.ForEachRun(begin, end, [&](const int64_t* at) { std::fill_n(to + at[0], n, from[at[1]]); });
      break;
    case Kind::kStrided:
      nest_.ForEachRun(begin, end, [&](const int64_t* at) {
        T* t = to + at[0];
        const T* f = from + at[1];
        for (int64_t i = 0; i < n; ++i) t[i * ts] = f[i * fs];
      });
      break;
    case Kind::kTranspose: {
      // A run of ForEachRun is one index of dimension a; the indices of a tile are copied together.
      constexpr int64_t kTile = kTransposeTile;
      const int a = nest_.rank() - 2;
      const int64_t size_a = nest_.size(a);
      const int64_t to_a = nest_.stride(a, 0);
      for (int64_t row = begin; row < end;) {
        const int64_t in_a = row % size_a;
        const int64_t rows = std::min({kTile, size_a - in_a, end - row});
        nest_.ForEachRun(row, row + 1, [&](const int64_t* at) {
          T* t = to + at[0];
          const T* f = from + at[1];
          for (int64_t b = 0; b < n; b += kTile) {
            const int64_t columns = std::min(kTile, n - b);
            if (rows == kTile && columns == kTile) {
              TransposeTile(t + b, to_a, f + b * fs, fs);
              continue;
            }
            for (int64_t i = 0; i < rows; ++i) {
              T* tt = t + i * to_a + b;
              const T* ff = f + i + b * fs;
              for (int64_t j = 0; j < columns; ++j) tt[j] = ff[j * fs];
            }
          }
        });
        row += rows;
      }
      break;
    }
  }
}

void StridedCopy::RunRange(std::byte* to, const std::byte* from, int64_t begin, int64_t end) const {
  switch (element_bytes_) {
    case 1:
      return RunTyped(reinterpret_cast<uint8_t*>(to), reinterpret_cast<const uint8_t*>(from), begin, end);
    case 2:
      return RunTyped(reinterpret_cast<uint16_t*>(to), reinterpret_cast<const uint16_t*>(from), begin, end);
    case 4:
      return RunTyped(reinterpret_cast<uint32_t*>(to), reinterpret_cast<const uint32_t*>(from), begin, end);
    case 8:
      return RunTyped(reinterpret_cast<uint64_t*>(to), reinterpret_cast<const uint64_t*>(from), begin, end);
    case 16:
      return RunTyped(reinterpret_cast<Wide*>(to), reinterpret_cast<const Wide*>(from), begin, end);
  }
}

void StridedCopy::Run(std::byte* to, const std::byte* from, RunContext& context) const {
  if (kind_ == Kind::kNothing) return;
  if (rows_ == 1 && kind_ == Kind::kRuns && bytes_ > (int64_t{1} << 20)) {
    // Splits one long run.
    constexpr int64_t kChunk = int64_t{1} << 18;
    context.ParallelFor((bytes_ + kChunk - 1) / kChunk, 4e4, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kChunk;
      std::memcpy(to + first, from + first, static_cast<size_t>(std::min(end * kChunk, bytes_) - first));
    });
    return;
  }
  const double cost = (kind_ == Kind::kRuns || kind_ == Kind::kFill ? 0.2 : 1.0) * static_cast<double>(bytes_) /
                      static_cast<double>(rows_);
  context.ParallelFor(rows_, 3 + cost, [&](int64_t begin, int64_t end) { RunRange(to, from, begin, end); });
}

std::unique_ptr<ThunkParams> StridedCopyParams(const View& view) {
  auto params = std::make_unique<CopyParams>();
  params->copy = StridedCopy(view.dims(), DenseStrides(view.dims()), StridesOf(view), BytesOf(view.type()));
  return params;
}

void RunStridedCopy(const ThunkParams* params, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  static_cast<const CopyParams*>(params)->copy.Run(out[0], in[0], context);
}

}  // namespace hlokit::interp

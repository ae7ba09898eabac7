// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/onednn/weights_packing.h"

#include <algorithm>
#include <cstring>

#include "interp/processor/vector_transpose.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hlokit::interp::compiled {
namespace {

#if defined(__x86_64__)
// Copies up to 16 columns of up to 16 lanes: lanes are `stride` apart in the strided array, columns next to each other.
__attribute__((target("avx512f"))) void PackTile(const float* plain, int64_t stride, float* packed,
                                                 const int64_t* columns, int64_t count, int64_t lanes) {
  const __mmask16 mask = static_cast<__mmask16>((1u << count) - 1);
  WordVector r[16];
  for (int i = 0; i < 16; ++i) {
    r[i] = i < lanes ? _mm512_maskz_loadu_ps(mask, plain + i * stride) : _mm512_setzero_ps();
  }
  TransposeVectors(r);
  if (count == 16) {
    for (int i = 0; i < 16; ++i) _mm512_storeu_ps(packed + columns[i], r[i]);
  } else {
    for (int i = 0; i < 16; ++i) {
      if (i < count) _mm512_storeu_ps(packed + columns[i], r[i]);
    }
  }
}

__attribute__((target("avx512f"))) void UnpackTile(float* plain, int64_t stride, const float* packed,
                                                   const int64_t* columns, int64_t count, int64_t lanes) {
  const __mmask16 mask = static_cast<__mmask16>((1u << count) - 1);
  WordVector r[16];
  for (int i = 0; i < 16; ++i) r[i] = i < count ? _mm512_loadu_ps(packed + columns[i]) : _mm512_setzero_ps();
  TransposeVectors(r);
  for (int i = 0; i < 16; ++i) {
    if (i < lanes) _mm512_mask_storeu_ps(plain + i * stride, mask, r[i]);
  }
}
#endif

}  // namespace

bool WeightsPacking::Init(const dnnl::memory::desc& plain, const dnnl::memory::desc& packed, const bool* reversed) {
#if defined(__x86_64__)
  const auto bits = [](dnnl::cpu_isa isa) { return static_cast<unsigned>(isa); };
  constexpr dnnl::cpu_isa kNeeded = dnnl::cpu_isa::avx512_core;
  if ((bits(dnnl::get_effective_cpu_isa()) & bits(kNeeded)) != bits(kNeeded)) return false;
  const dnnl_memory_desc_t& md = packed.data;
  const dnnl_blocking_desc_t& blocking = md.format_desc.blocking;
  const dnnl_dim_t* const strides = plain.data.format_desc.blocking.strides;
  if (md.format_kind != dnnl_blocked || md.data_type != dnnl_f32 || plain.data.data_type != dnnl_f32 ||
      md.extra.flags != dnnl_memory_extra_flag_none || md.offset0 != 0 || blocking.inner_nblks < 1 ||
      blocking.inner_nblks > 2) {
    return false;
  }
  const int lane = static_cast<int>(blocking.inner_idxs[blocking.inner_nblks - 1]);
  block_ = blocking.inner_blks[blocking.inner_nblks - 1];
  // The other dimension in blocks, if there is one.
  const int other = blocking.inner_nblks == 2 ? static_cast<int>(blocking.inner_idxs[0]) : -1;
  const int64_t other_block = other >= 0 ? blocking.inner_blks[0] : 1;
  for (int d = 0; d < md.ndims; ++d) {
    if (md.padded_dims[d] != md.dims[d] && d != lane && d != other) return false;
  }
  if (block_ % kLanes != 0 || other == lane || (reversed != nullptr && reversed[lane])) return false;
  blocks_ = md.padded_dims[lane] / block_;
  last_block_ = md.dims[lane] - (blocks_ - 1) * block_;
  plain_lane_ = strides[lane];
  plain_block_ = strides[lane] * block_;
  packed_block_ = blocking.strides[lane];
  const auto place = [&](int d, int64_t index) {
    if (reversed != nullptr && reversed[d]) index = md.dims[d] - 1 - index;
    if (d != other) return index * blocking.strides[d];
    return index / other_block * blocking.strides[d] + index % other_block * block_;
  };
  // Dimensions next to each other in the strided array become columns, the others starts.
  std::vector<bool> left(static_cast<size_t>(md.ndims), true);
  left[static_cast<size_t>(lane)] = false;
  columns_ = {0};
  for (bool found = plain_lane_ != 1; found;) {
    found = false;
    for (int d = 0; d < md.ndims && !found; ++d) {
      if (!left[static_cast<size_t>(d)] || strides[d] != static_cast<int64_t>(columns_.size()) || md.dims[d] == 1) {
        continue;
      }
      const std::vector<int64_t> inner = std::move(columns_);
      columns_.clear();
      for (int64_t i = 0; i < md.dims[d]; ++i) {
        for (int64_t at : inner) columns_.push_back(place(d, i) + at);
      }
      left[static_cast<size_t>(d)] = false;
      found = true;
    }
  }
  starts_ = {{0, 0}};
  for (int d = 0; d < md.ndims; ++d) {
    if (!left[static_cast<size_t>(d)]) continue;
    const std::vector<Start> inner = std::move(starts_);
    starts_.clear();
    for (const Start& start : inner) {
      for (int64_t i = 0; i < md.dims[d]; ++i) {
        starts_.push_back({start.plain + i * strides[d], start.packed + place(d, i)});
      }
    }
  }
  if (other >= 0 && md.padded_dims[other] != md.dims[other]) {
    for (int64_t i = md.dims[other]; i < md.padded_dims[other]; ++i) padding_.push_back(place(other, i));
    for (int d = 0; d < md.ndims; ++d) {
      if (d == lane || d == other) continue;
      const std::vector<int64_t> inner = std::move(padding_);
      padding_.clear();
      for (int64_t at : inner) {
        for (int64_t i = 0; i < md.dims[d]; ++i) padding_.push_back(at + i * blocking.strides[d]);
      }
    }
  }
  return true;
#else
  (void)plain;
  (void)packed;
  (void)reversed;
  return false;
#endif
}

void WeightsPacking::Run(float* plain, float* packed, int64_t piece, bool pack) const {
#if defined(__x86_64__)
  plain += piece * plain_block_;
  packed += piece * packed_block_;
  const int64_t count = static_cast<int64_t>(columns_.size());
  const int64_t lanes = piece + 1 == blocks_ ? last_block_ : block_;
  const size_t block_bytes = static_cast<size_t>(block_) * sizeof(float);
  if (pack) {
    for (int64_t at : padding_) std::memset(packed + at, 0, block_bytes);
  }
  if (plain_lane_ == 1) {
    const size_t bytes = static_cast<size_t>(lanes) * sizeof(float);
    for (const Start& start : starts_) {
      if (pack && bytes != block_bytes) std::memset(packed + start.packed, 0, block_bytes);
      pack ? std::memcpy(packed + start.packed, plain + start.plain, bytes)
           : std::memcpy(plain + start.plain, packed + start.packed, bytes);
    }
    return;
  }
  for (const Start& start : starts_) {
    for (int64_t c = 0; c < count; c += kLanes) {
      const int64_t tile = std::min(count - c, kLanes);
      for (int64_t lane = 0; lane < block_; lane += kLanes) {
        float* const from = plain + start.plain + lane * plain_lane_ + c;
        float* const to = packed + start.packed + lane;
        if (pack) {
          PackTile(from, plain_lane_, to, columns_.data() + c, tile, lanes - lane);
        } else {
          UnpackTile(from, plain_lane_, to, columns_.data() + c, tile, lanes - lane);
        }
      }
    }
  }
#else
  (void)plain;
  (void)packed;
  (void)piece;
  (void)pack;
#endif
}

}  // namespace hlokit::interp::compiled

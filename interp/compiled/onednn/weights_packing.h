// SPDX-License-Identifier: Apache-2.0
// Conversions of f32 weights between strided arrays and the library's layouts in blocks, which read and write whole
// vectors. The library's own reorders take several times as long
// for many shapes.
#ifndef HLOKIT_INTERP_COMPILED_ONEDNN_WEIGHTS_PACKING_H_
#define HLOKIT_INTERP_COMPILED_ONEDNN_WEIGHTS_PACKING_H_

#include <cstdint>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"

namespace hlokit::interp::compiled {

class WeightsPacking {
 public:
  // `reversed`, by dimension: the strided array has the elements in reverse order; null: no dimension is. Returns false
  // for layouts without blocks of 16 elements, or without vectors of 16 on this processor.
  bool Init(const dnnl::memory::desc& plain, const dnnl::memory::desc& packed, const bool* reversed);

  // Returns the number of elements next to each other that are columns for the vectors; 0 if the vectors themselves
  // are.
  int64_t columns() const { return plain_lane_ == 1 ? 0 : static_cast<int64_t>(columns_.size()); }
  // Pieces are independent.
  int64_t pieces() const { return blocks_; }
  void Pack(const float* plain, float* packed, int64_t piece) const {
    Run(const_cast<float*>(plain), packed, piece, true);
  }
  void Unpack(const float* packed, float* plain, int64_t piece) const {
    Run(plain, const_cast<float*>(packed), piece, false);
  }

 private:
  static constexpr int64_t kLanes = 16;

  void Run(float* plain, float* packed, int64_t piece, bool pack) const;

  // The vectors of the packed array run along one dimension, in blocks of block_ elements.
  int64_t block_ = 0;
  int64_t blocks_ = 0;
  int64_t last_block_ = 0;  // elements of the last block, less the padding
  int64_t plain_lane_ = 0;  // strides
  int64_t plain_block_ = 0;
  int64_t packed_block_ = 0;
  // Columns: elements next to each other in the strided array (one, if the vectors are), by their place in the other.
  std::vector<int64_t> columns_;
  // Starts of columns in both arrays.
  struct Start {
    int64_t plain;
    int64_t packed;
  };
  std::vector<Start> starts_;
  // Columns of padding.
  std::vector<int64_t> padding_;
};

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_ONEDNN_WEIGHTS_PACKING_H_

// SPDX-License-Identifier: Apache-2.0
// Loops over an index space with several strided operands. Dimensions that are contiguous in all operands are
// collapsed, so that most nests become one long run; a body handles the innermost dimension as a whole.
#ifndef HLOKIT_INTERP_EXACT_PROGRAM_LOOP_NEST_H_
#define HLOKIT_INTERP_EXACT_PROGRAM_LOOP_NEST_H_

#include <cstdint>

#include "absl/types/span.h"
#include "interp/exact/program/view.h"

namespace hlokit::interp {

class LoopNest {
 public:
  LoopNest() = default;
  // `strides[k]`: strides of operand k, one for each of `dims`. Requires: no dimension is 0.
  LoopNest(absl::Span<const int64_t> dims, absl::Span<const Dims> strides)
      : operands_(static_cast<int>(strides.size())) {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == 1) continue;
      bool joins = !sizes_.empty();
      for (int k = 0; joins && k < operands_; ++k) {
        joins = strides_[strides_.size() - operands_ + k] == strides[k][i] * dims[i];
      }
      if (joins) {
        sizes_.back() *= dims[i];
        for (int k = 0; k < operands_; ++k) strides_[strides_.size() - operands_ + k] = strides[k][i];
      } else {
        sizes_.push_back(dims[i]);
        for (int k = 0; k < operands_; ++k) strides_.push_back(strides[k][i]);
      }
    }
    if (sizes_.empty()) {
      sizes_.push_back(1);
      strides_.resize(operands_, 0);
    }
  }

  int rank() const { return static_cast<int>(sizes_.size()); }
  int64_t size(int dim) const { return sizes_[dim]; }
  int64_t stride(int dim, int operand) const { return strides_[dim * operands_ + operand]; }
  const int64_t* strides(int dim) const { return &strides_[dim * operands_]; }
  // Returns the length of the innermost dimension, or its strides for each operand.
  int64_t inner_size() const { return sizes_.back(); }
  const int64_t* inner_strides() const { return &strides_[strides_.size() - operands_]; }
  int64_t outer_count() const {
    int64_t n = 1;
    for (size_t i = 0; i + 1 < sizes_.size(); ++i) n *= sizes_[i];
    return n;
  }

  // Calls body(offsets) for the runs [begin, end) of outer_count(); `offsets[k]` is the element offset of the run's
  // start in operand k.
  template <typename Body>
  void ForEachRun(int64_t begin, int64_t end, Body body) const {
    const int outer = rank() - 1;
    absl::InlinedVector<int64_t, 8> offsets(operands_, 0);
    Dims index(outer, 0);
    int64_t rest = begin;
    for (int d = outer - 1; d >= 0; --d) {
      index[d] = rest % sizes_[d];
      rest /= sizes_[d];
      for (int k = 0; k < operands_; ++k) offsets[k] += index[d] * stride(d, k);
    }
    for (int64_t run = begin; run < end; ++run) {
      body(static_cast<const int64_t*>(offsets.data()));
      for (int d = outer - 1; d >= 0; --d) {
        const int64_t* s = strides(d);
        if (++index[d] < sizes_[d]) {
          for (int k = 0; k < operands_; ++k) offsets[k] += s[k];
          break;
        }
        index[d] = 0;
        for (int k = 0; k < operands_; ++k) offsets[k] -= s[k] * (sizes_[d] - 1);
      }
    }
  }

 private:
  int operands_ = 0;
  Dims sizes_;                                // outermost first, at least one
  absl::InlinedVector<int64_t, 12> strides_;  // [dim][operand]
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_PROGRAM_LOOP_NEST_H_

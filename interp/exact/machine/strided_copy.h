// SPDX-License-Identifier: Apache-2.0
// Copies between strided arrays: makes views dense, and moves elements for pad, concatenate, slices and updates.
#ifndef HLOKIT_INTERP_EXACT_MACHINE_STRIDED_COPY_H_
#define HLOKIT_INTERP_EXACT_MACHINE_STRIDED_COPY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "interp/exact/program/exact_fwd.h"
#include "interp/exact/program/loop_nest.h"
#include "interp/exact/program/program.h"
#include "interp/exact/program/view.h"

namespace hlokit::interp {

// A copy of an index space between two arrays that do not overlap.
class StridedCopy {
 public:
  StridedCopy() = default;
  // Strides in elements.
  StridedCopy(absl::Span<const int64_t> dims, absl::Span<const int64_t> to_strides,
              absl::Span<const int64_t> from_strides, int64_t element_bytes);

  void Run(std::byte* to, const std::byte* from, RunContext& context) const;
  // Copies without threads or checks, for small copies inside a kernel.
  void RunSerial(std::byte* to, const std::byte* from) const { RunRange(to, from, 0, rows_); }
  int64_t bytes() const { return bytes_; }

 private:
  enum class Kind : uint8_t { kNothing, kRuns, kFill, kStrided, kTranspose };

  void RunRange(std::byte* to, const std::byte* from, int64_t begin, int64_t end) const;
  template <typename T>
  void RunTyped(T* to, const T* from, int64_t begin, int64_t end) const;

  Kind kind_ = Kind::kNothing;
  LoopNest nest_;  // operands: to, from
  int64_t element_bytes_ = 0;
  int64_t rows_ = 0;  // innermost runs; for kTranspose, outer iterations of tiles
  int64_t bytes_ = 0;
  // kTranspose: the two innermost dimensions of nest_ are (a, b), with source stride 1 in a and target stride 1 in b;
  // rows_ counts the dimensions outside of them.
};

// Returns parameters of a kernel that makes operand 0, strided like `view`, dense.
std::unique_ptr<ThunkParams> StridedCopyParams(const View& view);
void RunStridedCopy(const ThunkParams* params, const std::byte* const* in, std::byte* const* out, RunContext& context);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_MACHINE_STRIDED_COPY_H_

// SPDX-License-Identifier: Apache-2.0
// The attribute `sparsity_config` of convolutions, `{rhs={sparsity=1x4 dimension=0 stride=1 idx=2}}`, parsed from its
// stored text. Source: XLA's SparsityConfig and its evaluator's tests.
#ifndef HLOKIT_IR_OPS_SPARSITY_CONFIG_H_
#define HLOKIT_IR_OPS_SPARSITY_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"

namespace hlokit {

// Structured sparsity of one operand along one dimension: the operand holds `num_non_zero` of each `block_size`
// elements, and an array of the same shape holds the index within the block, below `block_size`, of each stored
// element. The elements of a block are `stride` apart: `stride` blocks are interleaved.
struct TensorSparsityConfig {
  int64_t num_non_zero = 0;
  int64_t block_size = 0;
  int64_t dimension = 0;
  int64_t stride = 1;
  int64_t indices_operand =
      0;  // the operand that holds the indices; 0: the operand itself is a pair of elements and indices
};

struct SparsityConfig {
  std::optional<TensorSparsityConfig> lhs;
  std::optional<TensorSparsityConfig> rhs;

  // Returns an error if a side has no `sparsity=NxM` with M >= N >= 1 or its stride is negative; "" has no sides.
  static absl::StatusOr<SparsityConfig> Parse(std::string_view text);
};

}  // namespace hlokit

#endif  // HLOKIT_IR_OPS_SPARSITY_CONFIG_H_

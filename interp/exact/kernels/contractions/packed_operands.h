// SPDX-License-Identifier: Apache-2.0
// Unpacks operands of dot and convolution.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_CONTRACTIONS_PACKED_OPERANDS_H_
#define HLOKIT_INTERP_EXACT_KERNELS_CONTRACTIONS_PACKED_OPERANDS_H_

#include <cstdint>
#include <optional>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/program/view.h"
#include "ir/ops/sparsity_config.h"

namespace hlokit::interp {

// `operand_precision=packed_nibble`: each 8-bit element is two 4-bit integers of the same signedness; both operands are
// packed or neither. Source: PrecisionConfig of XLA's xla_data.proto, and its OperandUpcaster, which multiplies the low
// nibbles and the high ones, and adds.
enum class OperandPacking : uint8_t { kNone, kNibbles };

// Returns the packing of the current instruction, a dot or convolution; nullopt after an error report.
std::optional<OperandPacking> OperandPackingOf(CompiledComputationBuilder& builder);

// Emits the elements with dimension `dim` doubled: element i becomes 2 i, its low nibble, and 2 i + 1, its high one.
// Dense.
View EmitNibbles(CompiledComputationBuilder& builder, const View& packed, int64_t dim);

// Emits a structured-sparse array made dense: the elements of `values` at the positions `places` in their blocks along
// the sparse dimension, zeros elsewhere; the later of two elements at one position wins. Positions outside of the block
// end the run. Source: the tests of XLA's evaluator. Returns nullopt after an error report.
std::optional<View> EmitDensified(CompiledComputationBuilder& builder, const View& values, const View& places,
                                  const TensorSparsityConfig& side);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_CONTRACTIONS_PACKED_OPERANDS_H_

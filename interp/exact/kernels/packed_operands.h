// SPDX-License-Identifier: Apache-2.0
// Operands of dot and convolution that hold their elements in another form, brought into the plain one.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_PACKED_OPERANDS_H_
#define HLOKIT_INTERP_EXACT_KERNELS_PACKED_OPERANDS_H_

#include <cstdint>
#include <optional>

#include "interp/exact/compiled_computation_builder.h"
#include "interp/exact/view.h"
#include "ir/ops/sparsity_config.h"

namespace hlokit::interp {

// `operand_precision=packed_nibble`: each 8-bit element is two 4-bit integers, signed if it is; both sides are packed
// or none. Source: PrecisionConfig of XLA's xla_data.proto, and its OperandUpcaster, which multiplies the low nibbles,
// the high ones, and adds.
enum class OperandPacking : uint8_t { kNone, kNibbles };

// Of the instruction at hand, a product; nullopt after an error report.
std::optional<OperandPacking> OperandPackingOf(CompiledComputationBuilder& builder);

// The same elements with dimension `dim` twice as long: where element i was, 2 i holds its low nibble and 2 i + 1 its
// high one. Dense.
View EmitNibbles(CompiledComputationBuilder& builder, const View& packed, int64_t dim);

// A structured-sparse array made dense: the elements of `values` are at the places in their blocks along the sparse
// dimension that `places` says, zeros elsewhere; of two elements in one place the later one counts. Places beyond the
// block end the run. Source: the tests of XLA's evaluator. Nullopt after an error report.
std::optional<View> EmitDensified(CompiledComputationBuilder& builder, const View& values, const View& places,
                                  const TensorSparsityConfig& side);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_PACKED_OPERANDS_H_

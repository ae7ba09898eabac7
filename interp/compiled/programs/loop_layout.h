// SPDX-License-Identifier: Apache-2.0
// The order in which a loop goes through its dimensions. Results of products and convolutions may be views whose memory
// is dense in another order than their dimensions'. A loop takes the order of its inputs, so that it reads and writes
// memory in sequence and copies nothing, and its results are views of the same kind.
#ifndef HLOKIT_INTERP_COMPILED_PROGRAMS_LOOP_LAYOUT_H_
#define HLOKIT_INTERP_COMPILED_PROGRAMS_LOOP_LAYOUT_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/program/view.h"

namespace hlokit::interp::compiled {

// Dimension order[k] of a shape is the k-th in memory, outermost first.
using MemoryOrder = std::vector<size_t>;

MemoryOrder DeclaredOrder(size_t rank);
// Returns the order of most of the bytes of the views, which have the dimensions `dims`; the declared one in doubt.
MemoryOrder ChooseOrder(absl::Span<const int64_t> dims, absl::Span<const View> views);

Dims Permuted(absl::Span<const int64_t> values, const MemoryOrder& order);
// Returns the same elements with dimensions in the order of memory.
View InMemoryOrder(CompiledComputationBuilder& builder, const View& view, const MemoryOrder& order);
// Returns the view with its dimensions in another order.
View Permuted(CompiledComputationBuilder& builder, const View& view, absl::Span<const int64_t> order);
// Returns the view whose dimensions in this order are those of `view`.
View PermutedBack(CompiledComputationBuilder& builder, const View& view, absl::Span<const int64_t> order);
// Returns the view of shape `shape` of an array that is dense in the order of memory.
View InDeclaredOrder(CompiledComputationBuilder& builder, const View& view, const MemoryOrder& order, Shape shape);
// Returns the order of the dimensions that are left without some.
MemoryOrder WithoutDimensions(const MemoryOrder& order, const std::vector<bool>& removed);

// Returns the view of shape `shape` whose elements depend on the index in `dimension` alone: `stride` elements of
// `values` from one to the next.
View AlongDimension(CompiledComputationBuilder& builder, const View& values, Shape shape, int64_t dimension,
                    int64_t stride);
// Returns a view of the same elements, or the same scalar, in the dimensions of the loop.
View InDims(CompiledComputationBuilder& builder, const View& view, Shape loop_shape);
// Returns a view of the same elements whose memory is dense except for repeated ones.
View Compact(CompiledComputationBuilder& builder, const View& view);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_PROGRAMS_LOOP_LAYOUT_H_

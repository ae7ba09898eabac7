// SPDX-License-Identifier: Apache-2.0
// Arguments of layers: numbers for each spatial dimension, types and ranks, checked with torch's messages; constants
// known when an op is called.
#ifndef HLOKIT_TRACER_OPS_LAYER_ARGUMENTS_H_
#define HLOKIT_TRACER_OPS_LAYER_ARGUMENTS_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tracer/dispatch/op_kernel_context.h"

namespace hlokit::lazy::kernel {

// The largest extent of a kernel, stride, padding or index list; sums and products of two do not overflow.
inline constexpr int64_t kMaxExtent = int64_t{1} << 30;

// Returns torch's name of a type in messages: "Float", "Long".
std::string_view TypeName(ElementType type);
// Returns the name of the op without its namespace: "conv2d".
std::string_view NameOf(OpKernelContext& c);
// Fails unless tensor argument i has a floating-point type: `"softshrink" not implemented for 'Long'`.
bool RequireFloat(OpKernelContext& c, size_t i);
// Fails unless tensor argument i has `low` to `high` dimensions.
bool RequireRank(OpKernelContext& c, size_t i, int64_t low, int64_t high);
// Fails unless the sizes of tensors a and b are equal.
bool RequireSameSizes(OpKernelContext& c, size_t a, size_t b);
// Reads `count` numbers of argument i, of which one may stand for all, each from `least` to kMaxExtent. If the list is
// empty, `absent` is read.
bool ReadExtents(OpKernelContext& c, size_t i, int64_t count, int64_t least, Dims absent, IntList* out);

// Returns a constant of the given sizes.
Tensor ConstantTensor(OpKernelContext& c, Dims sizes, std::vector<double> values, ElementType type);
// Returns the elements at indices `places` of a dimension.
Tensor SelectPlaces(OpKernelContext& c, const Tensor& t, int64_t dim, const std::vector<double>& places);
// Returns 0, 1, ... of type s64 along `dim` of `rank`, other dimensions of size 1.
Tensor IotaAlong(OpKernelContext& c, int64_t size, int64_t dim, int64_t rank);

// Returns the elements of an integer argument that shapes of the graph depend on. Nullopt after an error.
std::optional<std::vector<int64_t>> FetchIntegers(OpKernelContext& c, size_t i);

// Applies `reduction`: 0 none, 1 mean, 2 sum.
Tensor Reduced(OpKernelContext& c, const Tensor& loss, int64_t reduction);

}  // namespace hlokit::lazy::kernel

#endif  // HLOKIT_TRACER_OPS_LAYER_ARGUMENTS_H_

// SPDX-License-Identifier: Apache-2.0
// What the spatial dimensions of convolutions are: those of many convolutions are dimensions of a dot in disguise.
#ifndef HLOKIT_PASSES_SHARDING_CONTRACTION_DIMS_H_
#define HLOKIT_PASSES_SHARDING_CONTRACTION_DIMS_H_

#include <cstdint>

#include "ir/graph/module.h"

namespace hlokit::sharding {

enum class ConvolutionSpatialKind : uint8_t {
  kInputOnly,   // window of one: result index = input index
  kKernelOnly,  // input of one, padded and reversed: result index = kernel index
  kContracted,  // the window is the whole input
  kBatch,       // input dilated by its size, and a stride of one less: a window meets one element of each
  kWindow,
};
ConvolutionSpatialKind SpatialKindOf(Instruction convolution, int64_t spatial_dim);
// Returns true if no spatial dimension is a window.
bool IsConvolutionADot(Instruction convolution);

}  // namespace hlokit::sharding

#endif  // HLOKIT_PASSES_SHARDING_CONTRACTION_DIMS_H_

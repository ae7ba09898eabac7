// SPDX-License-Identifier: Apache-2.0
// Data-parallel training on all devices of a tracer: each holds the whole model, gradients are summed over devices.
#ifndef HLOKIT_TRACER_NN_DATA_PARALLEL_H_
#define HLOKIT_TRACER_NN_DATA_PARALLEL_H_

#include <source_location>

#include "tracer/nn/optimizer.h"

namespace hlokit::lazy::nn {

// Replaces the gradients of the optimizer's parameters by their means over all devices: one all-reduce, scaled by 1 /
// number of devices, like xm.reduce_gradients. Every device must call it.
void ReduceGradients(const Optimizer& optimizer,
                     const std::source_location& location = std::source_location::current());

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_DATA_PARALLEL_H_

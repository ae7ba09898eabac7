// SPDX-License-Identifier: Apache-2.0
// Collectives over the devices of a tracer. Each device records the same call in its own graph; the devices synchronize
// when each executes its step.
#ifndef HLOKIT_TRACER_OPS_COLLECTIVE_H_
#define HLOKIT_TRACER_OPS_COLLECTIVE_H_

#include "absl/types/span.h"
#include "tracer/graph/reduce_type.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

// Returns the tensors, all of one device, combined with those of all other devices and multiplied by `scale`. With one
// device and no other replica they are returned unchanged. The result has no gradient.
Tensors AllReduce(ReduceType type, const Tensors& tensors, double scale = 1);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_OPS_COLLECTIVE_H_

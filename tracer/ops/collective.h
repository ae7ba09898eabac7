// SPDX-License-Identifier: Apache-2.0
// What the devices of a tracer compute together. Each device records the same call in its own graph; a step of every
// device makes them meet.
#ifndef HLOKIT_TRACER_OPS_COLLECTIVE_H_
#define HLOKIT_TRACER_OPS_COLLECTIVE_H_

#include "absl/types/span.h"
#include "tracer/graph/reduce_type.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

// The tensors, all of one device, combined with those of all other devices and multiplied by `scale`. Where
// there is one device and no other replica they are the tensors themselves. The result takes no part in autograd.
Tensors AllReduce(ReduceType type, const Tensors& tensors, double scale = 1);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_OPS_COLLECTIVE_H_

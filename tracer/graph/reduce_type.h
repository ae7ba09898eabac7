// SPDX-License-Identifier: Apache-2.0
// Reduction functions of collectives.
#ifndef HLOKIT_TRACER_GRAPH_REDUCE_TYPE_H_
#define HLOKIT_TRACER_GRAPH_REDUCE_TYPE_H_

namespace hlokit::lazy {

// Values are PyTorch/XLA's.
enum class ReduceType { kSum, kMul, kAnd, kOr, kMin, kMax };

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_REDUCE_TYPE_H_

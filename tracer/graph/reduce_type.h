// SPDX-License-Identifier: Apache-2.0
// How a collective combines what it reduces.
#ifndef HLOKIT_TRACER_GRAPH_REDUCE_TYPE_H_
#define HLOKIT_TRACER_GRAPH_REDUCE_TYPE_H_

namespace hlokit::lazy {

// In PyTorch/XLA's numbering.
enum class ReduceType { kSum, kMul, kAnd, kOr, kMin, kMax };

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_REDUCE_TYPE_H_

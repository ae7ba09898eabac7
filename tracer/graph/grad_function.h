// SPDX-License-Identifier: Apache-2.0
// The autograd graph: one Node for each recorded op call, with the values of the call's arguments and results and the
// nodes that produced its tensor arguments. Nodes hold values rather than tensors, because a tensor written in place
// refers to a node that may have been called with that same tensor.
#ifndef HLOKIT_TRACER_GRAPH_GRAD_FUNCTION_H_
#define HLOKIT_TRACER_GRAPH_GRAD_FUNCTION_H_

#include <cstdint>
#include <source_location>

#include "absl/container/inlined_vector.h"
#include "ir/types/shape.h"
#include "tracer/graph/object_pool.h"
#include "tracer/graph/op.h"
#include "tracer/graph/ref_counted.h"
#include "tracer/graph/tensor_impl.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

// Accumulates gradients of one leaf.
class AccumulateGrad : public RefCounted {
 public:
  explicit AccumulateGrad(TensorImpl* l) : leaf(l) {}
  TensorImpl* leaf;  // cleared when the leaf is destroyed
};

struct Edge {
  Ref<Node> node;                   // null: a leaf, or no gradient
  uint32_t output = 0;              // output of node
  Ref<AccumulateGrad> accumulator;  // for a leaf
  bool valid() const { return node || accumulator; }
};

// Saved properties of a result of a call.
struct OutputInfo {
  Shape shape;
  Ref<TensorData> data;  // without its own node, which would be a reference cycle
  uint32_t version = 0;
};

// Saved properties of a tensor argument.
struct SavedVariable {
  Edge edge;
  Shape shape;           // invalid for None
  Ref<TensorData> data;  // dropped when the node is released
  uint32_t version = 0;
};

class Node : public RefCounted, public Pooled<Node> {
 public:
  Op op;
  uint64_t sequence = 0;                        // in order of calls
  Args args;                                    // of the call, with undefined tensors; empty once released
  absl::InlinedVector<SavedVariable, 3> slots;  // of tensor arguments, lists flattened
  absl::InlinedVector<OutputInfo, 1> outputs;
  bool released = false;
  std::source_location location;  // that the call is attributed to; its derivative is too
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_GRAD_FUNCTION_H_

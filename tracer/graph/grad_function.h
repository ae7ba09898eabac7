// SPDX-License-Identifier: Apache-2.0
// The graph of derivatives: one Node for each op call that autograd noted, holding the values of the call's
// arguments and results and the functions its tensor arguments came from. It holds values, never the tensors
// themselves: a tensor that is written in place comes to hold a function which may have been called with that very
// tensor.
#ifndef HLOKIT_TRACER_GRAPH_GRAD_FUNCTION_H_
#define HLOKIT_TRACER_GRAPH_GRAD_FUNCTION_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "ir/types/shape.h"
#include "tracer/graph/object_pool.h"
#include "tracer/graph/op.h"
#include "tracer/graph/ref_counted.h"
#include "tracer/graph/tensor_impl.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

// Collects gradients of one leaf.
class AccumulateGrad : public RefCounted {
 public:
  explicit AccumulateGrad(TensorImpl* l) : leaf(l) {}
  TensorImpl* leaf;  // cleared when the leaf goes away
};

struct Edge {
  Ref<Node> node;                   // null: a leaf, or nothing to do
  uint32_t output = 0;              // of function
  Ref<AccumulateGrad> accumulator;  // for a leaf
  bool valid() const { return node || accumulator; }
};

// What autograd remembers of a result of a call.
struct OutputInfo {
  Shape shape;
  Ref<TensorData> data;  // without its own function, which would be a circle
  uint32_t version = 0;
};

// What is kept of a tensor argument.
struct SavedVariable {
  Edge edge;
  Shape shape;           // invalid for None
  Ref<TensorData> data;  // dropped when the function is released
  uint32_t version = 0;
};

class Node : public RefCounted, public Pooled<Node> {
 public:
  Op op;
  uint64_t sequence = 0;                        // calls in order
  Args args;                                    // of the call, its tensors undefined; emptied when released
  absl::InlinedVector<SavedVariable, 3> slots;  // of tensor arguments, lists flattened
  absl::InlinedVector<OutputInfo, 1> outputs;
  bool released = false;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_GRAD_FUNCTION_H_

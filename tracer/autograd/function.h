// SPDX-License-Identifier: Apache-2.0
// The graph of derivatives: one Function for each op call that autograd noted, holding the values of the call's
// arguments and results and the functions its tensor arguments came from. It holds values, never the tensors
// themselves: a tensor that is written in place comes to hold a function which may have been called with that very
// tensor.
#ifndef HLOKIT_TRACER_AUTOGRAD_FUNCTION_H_
#define HLOKIT_TRACER_AUTOGRAD_FUNCTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "tracer/object_pool.h"
#include "tracer/op.h"
#include "tracer/ref_counted.h"
#include "tracer/tensor_impl.h"
#include "tracer/value.h"

namespace hlokit::lazy {

// Collects gradients of one leaf.
class Accumulator : public RefCounted {
 public:
  explicit Accumulator(TensorImpl* l) : leaf(l) {}
  TensorImpl* leaf;  // cleared when the leaf goes away
};

struct Edge {
  Ref<Function> function;        // null: a leaf, or nothing to do
  uint32_t output = 0;           // of function
  Ref<Accumulator> accumulator;  // for a leaf
  bool valid() const { return function || accumulator; }
};

// What autograd remembers of a result of a call.
struct OutputInfo {
  Shape shape;
  Ref<TensorData> data;  // without its own function, which would be a circle
  uint32_t version = 0;
};

// What is kept of a tensor argument.
struct Slot {
  Edge edge;
  Shape shape;           // invalid for None
  Ref<TensorData> data;  // dropped when the function is released
  uint32_t version = 0;
};

class Function : public RefCounted, public Pooled<Function> {
 public:
  Op op;
  uint64_t sequence = 0;               // calls in order
  Args args;                           // of the call, its tensors undefined; emptied when released
  absl::InlinedVector<Slot, 3> slots;  // of tensor arguments, lists flattened
  absl::InlinedVector<OutputInfo, 1> outputs;
  bool released = false;
};

// Whether calls are noted on this thread.
bool GradEnabled();
class GradMode {
 public:
  explicit GradMode(bool enabled);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool previous_;
};
struct NoGradGuard : GradMode {
  NoGradGuard() : GradMode(false) {}
};

// Whether a gradient can reach the tensor.
bool NeedsGrad(const Tensor& t);
// Notes a call whose results are `outputs`, if any of its arguments needs a gradient. `args` are taken.
void NoteCall(Op op, Args&& args, const Outputs& outputs);

struct DifferentiateOptions {
  bool retain_graph = false;
  // Gradients can be differentiated again; the graph is retained.
  bool create_graph = false;
};
// d(sum of roots . gradients) / d(each of `inputs`), or into the grad of every leaf when `inputs` is empty. An
// undefined gradient is 1. An input that the roots do not depend on gets an undefined tensor.
absl::StatusOr<Tensors> Differentiate(const Tensors& roots, const Tensors& gradients, const Tensors& inputs,
                                      const DifferentiateOptions& options = {});

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_AUTOGRAD_FUNCTION_H_

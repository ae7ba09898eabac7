// SPDX-License-Identifier: Apache-2.0
// Autograd: records calls as nodes (graph/grad_function.h) and runs backward.
#ifndef HLOKIT_TRACER_AUTOGRAD_NODE_H_
#define HLOKIT_TRACER_AUTOGRAD_NODE_H_

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tracer/graph/grad_function.h"
#include "tracer/graph/op.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

// Returns true if calls are recorded on this thread.
bool GradEnabled();
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled);
  ~AutoGradMode();
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

 private:
  bool previous_;
};
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};

// Returns true if a gradient can reach the tensor.
bool ComputeRequiresGrad(const Tensor& t);
// Records a call with results `outputs` if any of its arguments requires a gradient. Moves from `args`.
void SetHistory(Op op, Args&& args, const Outputs& outputs);

struct BackwardOptions {
  bool retain_graph = false;
  // Makes gradients differentiable and retains the graph.
  bool create_graph = false;
};
// Returns d(sum of roots . gradients) / d(each of `inputs`), or adds to the grad of every leaf if `inputs` is empty. An
// undefined gradient is 1. An input that the roots do not depend on gets an undefined tensor. What a derivative records
// is attributed to the line of the call that it differentiates.
absl::StatusOr<Tensors> RunBackward(const Tensors& roots, const Tensors& gradients, const Tensors& inputs,
                                    const BackwardOptions& options = {},
                                    const std::source_location& location = std::source_location::current());

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_AUTOGRAD_NODE_H_

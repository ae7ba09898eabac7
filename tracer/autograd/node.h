// SPDX-License-Identifier: Apache-2.0
// Derivatives: notes calls as functions (graph/grad_function.h) and follows them back.
#ifndef HLOKIT_TRACER_AUTOGRAD_NODE_H_
#define HLOKIT_TRACER_AUTOGRAD_NODE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tracer/graph/grad_function.h"
#include "tracer/graph/op.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

// Whether calls are noted on this thread.
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

// Whether a gradient can reach the tensor.
bool ComputeRequiresGrad(const Tensor& t);
// Notes a call whose results are `outputs`, if any of its arguments needs a gradient. `args` are taken.
void SetHistory(Op op, Args&& args, const Outputs& outputs);

struct BackwardOptions {
  bool retain_graph = false;
  // Gradients can be differentiated again; the graph is retained.
  bool create_graph = false;
};
// d(sum of roots . gradients) / d(each of `inputs`), or into the grad of every leaf when `inputs` is empty. An
// undefined gradient is 1. An input that the roots do not depend on gets an undefined tensor.
absl::StatusOr<Tensors> RunBackward(const Tensors& roots, const Tensors& gradients, const Tensors& inputs,
                                    const BackwardOptions& options = {});

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_AUTOGRAD_NODE_H_

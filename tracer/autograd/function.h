// SPDX-License-Identifier: Apache-2.0
// Derivatives: notes calls as functions (graph/grad_function.h) and follows them back.
#ifndef HLOKIT_TRACER_AUTOGRAD_FUNCTION_H_
#define HLOKIT_TRACER_AUTOGRAD_FUNCTION_H_

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

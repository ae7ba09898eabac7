// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/data_parallel.h"

#include "interp/processes/world.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/scope.h"
#include "tracer/ops/collective.h"
#include "tracer/step/device_state.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy::nn {

void ReduceGradients(const Optimizer& optimizer, const std::source_location& location) {
  const ScopedSourceLocation site(location);
  Tensors gradients;
  for (const Tensor& p : optimizer.parameters()) {
    if (p.grad().defined()) gradients.push_back(p.grad());
  }
  if (gradients.empty()) return;
  const Tracer& tracer = *gradients[0].device()->tracer();
  const interp::World* const processes = tracer.options().client.evaluator.world;
  const size_t world = tracer.device_count() * static_cast<size_t>(processes == nullptr ? 1 : processes->size());
  if (world == 1 && tracer.options().replicas == 1) return;
  const NoGradGuard no_grad;
  const Tensors means = AllReduce(ReduceType::kSum, gradients, 1.0 / static_cast<double>(world));
  for (size_t i = 0; i < gradients.size(); ++i) WriteInPlace(gradients[i], means[i]);
}

}  // namespace hlokit::lazy::nn

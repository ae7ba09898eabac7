// SPDX-License-Identifier: Apache-2.0
#include "tracer/ops/collective.h"

#include "tracer/autograd/node.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/step/device_state.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

Tensors AllReduce(ReduceType type, const Tensors& tensors, double scale) {
  if (tensors.empty() || !tensors[0].defined()) return tensors;
  DeviceState& device = *tensors[0].device();
  if (device.tracer()->device_count() == 1 && device.tracer()->options().replicas == 1) return tensors;
  const NoGradGuard no_grad;
  Tensor token;
  {
    // A token in f32 that each collective consumes and produces, so that they run in recording order.
    DeviceLock lock(device.mutex());
    token = device.CollectiveToken();
  }
  Outputs all =
      InvokeOpMultiOutput(Op::cross_replica_sum, tensors, token, static_cast<int64_t>(type), scale, true, IntList{});
  if (all.size() != tensors.size() + 1) return Tensors(tensors.size());
  {
    DeviceLock lock(device.mutex());
    device.SetCollectiveToken(all.back());
  }
  return Tensors(all.begin(), all.end() - 1);
}

}  // namespace hlokit::lazy

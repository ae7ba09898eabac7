// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/host_costs.h"

namespace hlokit::tpu {

namespace {

// PyTorch/XLA of January 2023 with PJRT on the host of a TPU v4 ("TPU dynamo speed up on Training analysis" of
// pytorch/xla): of a lazy training step of ResNet-50 13.67 ms are recording and, of 39 ms in all, 7.5 are neither
// recording nor on the device, 4.0 of these in the call; a call of a graph with next to no work takes 1.8 ms. That
// step, with SGD, is one of 953 ops, 2,216 nodes and 1,134 arguments and results here (ir-dump --model=resnet50).
// bench/python/torch_xla_host.py measures torch_xla.
HostCosts TorchXlaCosts() {
  HostCosts costs;
  costs.op = 13.67e-3 / 953;  // with its node, Python and autograd
  costs.node = 0;
  costs.sync = 0;
  costs.visited = 3.5e-3 / 2216;
  costs.call = 1.8e-3;
  costs.buffer = 2.2e-3 / 1134;
  return costs;
}

}  // namespace

HostCosts HostCostsOf(const DeviceDescription& machine, HostSystem system) {
  HostCosts costs = system == HostSystem::kTorchXla ? TorchXlaCosts() : HostCosts();
  if (system == HostSystem::kTracer) costs.call = machine.queued_dispatch_latency;
  if (machine.host_rate > 0) costs.host_rate = machine.host_rate;
  return costs;
}

double SecondsOf(const HostCosts& costs, const runtime::HostWork& work) {
  return costs.op * work.ops + costs.node * work.nodes + costs.sync * work.syncs + costs.visited * work.visited +
         costs.lowered * work.lowered + costs.call * work.calls + costs.buffer * work.buffers +
         costs.transfer * (static_cast<double>(work.transfers) + work.fetches) +
         (static_cast<double>(work.sent_bytes) + static_cast<double>(work.fetched_bytes)) / costs.host_rate;
}

}  // namespace hlokit::tpu

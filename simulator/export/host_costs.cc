// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/host_costs.h"

namespace hlokit::tpu {

HostCosts HostCostsOf(const DeviceDescription& machine) {
  HostCosts costs;
  costs.call = machine.queued_dispatch_latency;
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

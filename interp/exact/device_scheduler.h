// SPDX-License-Identifier: Apache-2.0
// The devices of one run: a machine for each, which take turns on one thread. A device runs until it ends or comes to a
// collective; the group goes on when all of it is there.
#ifndef HLOKIT_INTERP_EXACT_DEVICE_SCHEDULER_H_
#define HLOKIT_INTERP_EXACT_DEVICE_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "interp/exact/collective.h"
#include "interp/exact/program.h"
#include "interp/exact/run_context.h"
#include "interp/exact/virtual_machine.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

class DeviceScheduler {
 public:
  // `arguments` holds those of each device in turn, as VirtualMachine takes them. The context says how many devices
  // there are.
  DeviceScheduler(RunContext& context, const Module& module, CompiledComputation* entry,
                  absl::Span<const SlotValue> arguments, ExecutionObserver* observer);

  // Runs all devices to their ends. False after an error, which the context has.
  bool Run();

  int64_t size() const { return static_cast<int64_t>(devices_.size()); }
  // Leaves of the root, after Run.
  std::vector<SlotValue>& results(int64_t device) { return devices_[static_cast<size_t>(device)]->machine.results(); }

 private:
  struct Device {
    Device(RunContext& context, CompiledComputation* entry, absl::Span<const SlotValue> arguments)
        : machine(context, entry, arguments) {}
    VirtualMachine machine;
    // Random draws of the device; the context has those of the one that runs.
    uint64_t rng_counter = 0;
    std::pair<uint64_t, uint64_t> rng_state;
  };

  // True if the group that `device` waits in is complete; runs what it waits for.
  bool TryRunCollective(int64_t device);
  void ReportDeadlock();
  const CollectivePlan& WaitingPlan(int64_t device) const;
  std::string Name(int64_t device) const;

  RunContext& context_;
  const Module& module_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_DEVICE_SCHEDULER_H_

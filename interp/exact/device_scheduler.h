// SPDX-License-Identifier: Apache-2.0
// Schedules the devices of one run cooperatively on one thread, each with a virtual machine. A device runs until it
// ends or reaches a collective; a group continues when all its devices have arrived.
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
#include "ir/graph/module_fwd.h"

namespace hlokit::interp {

class DeviceScheduler {
 public:
  // `arguments`: those of each device in turn, in the form of VirtualMachine. The context has the number of devices.
  DeviceScheduler(RunContext& context, const Module& module, CompiledComputation* entry,
                  absl::Span<const SlotValue> arguments, ExecutionObserver* observer);

  // Runs all devices to completion. Returns false after an error, which the context has.
  bool Run();

  int64_t size() const { return static_cast<int64_t>(devices_.size()); }
  // Returns the leaves of the root. Requires: Run returned true.
  std::vector<SlotValue>& results(int64_t device) { return devices_[static_cast<size_t>(device)]->machine.results(); }

 private:
  struct Device {
    Device(RunContext& context, CompiledComputation* entry, absl::Span<const SlotValue> arguments)
        : machine(context, entry, arguments) {}
    VirtualMachine machine;
    // Count of random draws on the device; the context has that of the running device.
    uint64_t rng_counter = 0;
    std::pair<uint64_t, uint64_t> rng_state;
  };

  // Runs the collective that `device` waits for if its group is complete. Returns false if not.
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

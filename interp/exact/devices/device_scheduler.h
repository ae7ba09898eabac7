// SPDX-License-Identifier: Apache-2.0
// Schedules the devices of one run, or those of this process, cooperatively on one thread, each with a virtual machine.
// A device runs until it ends or reaches a collective; a group continues when all its devices have arrived, those in
// other processes too.
#ifndef HLOKIT_INTERP_EXACT_DEVICES_DEVICE_SCHEDULER_H_
#define HLOKIT_INTERP_EXACT_DEVICES_DEVICE_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "interp/exact/builder/collective.h"
#include "interp/exact/devices/process_groups.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/machine/virtual_machine.h"
#include "interp/exact/program/program.h"
#include "interp/processes/world.h"
#include "ir/graph/module_fwd.h"

namespace hlokit::interp {

class DeviceScheduler {
 public:
  // `arguments`: those of each device of this process in turn, in the form of VirtualMachine. The context has the
  // number of all devices. `world`: the processes, with `groups` for the program; null if there is one.
  DeviceScheduler(RunContext& context, const Module& module, CompiledComputation* entry,
                  absl::Span<const SlotValue> arguments, ExecutionObserver* observer, World* world,
                  const ProcessGroups* groups);
  ~DeviceScheduler();

  // Runs the devices to completion. Returns false after an error, which the context has; the transport is then in use
  // by operations that do not end, and must not be called again.
  bool Run();

  // Number of devices of this process.
  int64_t size() const { return static_cast<int64_t>(devices_.size()); }
  // Returns the leaves of the root of one of them. Requires: Run returned true.
  std::vector<SlotValue>& results(int64_t index) { return devices_[static_cast<size_t>(index)]->machine.results(); }
  // Computes large results in literals, not in memory of the pool.
  void PlaceResults() {
    for (const std::unique_ptr<Device>& device : devices_) device->machine.set_results(&device->literals);
  }
  // Returns the literals in which leaves of the root were computed; empty ones for other leaves.
  std::vector<Literal>& literals(int64_t index) { return devices_[static_cast<size_t>(index)]->literals; }

 private:
  struct Device {
    Device(RunContext& context, CompiledComputation* entry, absl::Span<const SlotValue> arguments)
        : literals(entry->results.size()), machine(context, entry, arguments) {}
    std::vector<Literal> literals;
    VirtualMachine machine;
    bool in_operation = false;  // at a collective that has begun
    // Count of random draws on the device; the context has that of the running device.
    uint64_t rng_counter = 0;
    std::pair<uint64_t, uint64_t> rng_state;
  };

  // A collective with devices of other processes, in progress.
  struct ActiveOperation;
  using Results = std::vector<std::vector<SlotValue>>;

  bool IsLocal(int64_t device) const { return FindLocal(device) != nullptr; }
  // Returns a device of this process; null if it is another's.
  Device* FindLocal(int64_t device) const {
    return device >= 0 && device < static_cast<int64_t>(by_number_.size()) ? by_number_[static_cast<size_t>(device)]
                                                                           : nullptr;
  }
  VirtualMachine& MachineOf(int64_t device) { return FindLocal(device)->machine; }
  const VirtualMachine& MachineOf(int64_t device) const { return FindLocal(device)->machine; }
  void SetCurrent(int64_t device) {
    context_.device = {device / context_.num_partitions, device % context_.num_partitions};
  }
  // Runs the devices that can. Returns false after an error.
  bool RunDevices();
  // Runs, or begins, the collective that `device` waits for if its group is complete in this process. Returns false if
  // not.
  bool TryRunCollective(int64_t device);
  // Allocates the results of the members of this process.
  bool AllocateResults(const std::vector<int64_t>& group, const Thunk& thunk, Results* results);
  // Begins the collective with the results that `active` has.
  void BeginOperation(const std::vector<int64_t>& group, const Thunk& thunk, uint64_t tag, ProcessGroup& processes,
                      std::unique_ptr<ActiveOperation> active);
  void ReleaseAll(const Results& results);
  // Returns one that has ended, or a new one.
  std::unique_ptr<ActiveOperation> NewOperation();
  // Returns true if an operation has ended.
  bool AdvanceOperations();
  void FinishOperation(ActiveOperation& active);
  void ReportMismatch(const ActiveOperation& active);
  bool ReceiveMessages();
  // Waits for other processes. Returns false after an error.
  bool WaitForOthers();
  // Decides what it means that all processes wait. Returns false after an error.
  bool CheckAllWait(absl::Span<const DeviceState> states);
  // States of the devices of this process.
  std::vector<DeviceState> States() const;
  // `states`: of all devices.
  void ReportDeadlock(absl::Span<const DeviceState> states);
  void FailMissing(int64_t device, absl::Span<const DeviceState> missing);
  const CollectiveParams& WaitingParams(int64_t device) const;
  std::string Name(int64_t device) const;

  RunContext& context_;
  const Module& module_;
  World* const world_;
  const ProcessGroups* const groups_;
  std::vector<int64_t> own_;  // numbers of the devices of this process
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Device*> by_number_;  // null: of another process
  std::vector<std::unique_ptr<ActiveOperation>> operations_;
  std::vector<std::unique_ptr<ActiveOperation>> ended_operations_;
  uint64_t round_ = 0;  // of AdvanceOperations
  int64_t polls_ = 0;   // without progress
  double idle_since_ = 0;
  double data_since_ = -1;  // when all first waited for data
  bool reported_idle_ = false;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_DEVICES_DEVICE_SCHEDULER_H_

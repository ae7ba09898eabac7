// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/device_scheduler.h"

#include "ir/core/str_cat.h"

namespace hlokit::interp {

DeviceScheduler::DeviceScheduler(RunContext& context, const Module& module, CompiledComputation* entry,
                                 absl::Span<const SlotValue> arguments, ExecutionObserver* observer)
    : context_(context), module_(module) {
  const size_t count = static_cast<size_t>(context.num_replicas * context.num_partitions);
  const size_t each = arguments.size() / count;
  for (size_t d = 0; d < count; ++d) {
    devices_.push_back(std::make_unique<Device>(context, entry, arguments.subspan(d * each, each)));
    devices_[d]->rng_counter = context.rng_counter;
    devices_[d]->rng_state = context.rng_state;
    devices_[d]->machine.set_observer(observer);
  }
}

std::string DeviceScheduler::Name(int64_t device) const {
  return StrCat("replica ", device / context_.num_partitions, ", partition ", device % context_.num_partitions);
}

const CollectivePlan& DeviceScheduler::WaitingPlan(int64_t device) const {
  return *static_cast<const CollectivePlan*>(devices_[static_cast<size_t>(device)]->machine.waiting_for().plan);
}

bool DeviceScheduler::Run() {
  for (;;) {
    for (int64_t d = 0; d < size(); ++d) {
      Device& device = *devices_[static_cast<size_t>(d)];
      if (device.machine.state() == VirtualMachine::State::kFailed) return false;
      if (device.machine.state() != VirtualMachine::State::kRunning) continue;
      context_.device = {d / context_.num_partitions, d % context_.num_partitions};
      context_.rng_counter = device.rng_counter;
      context_.rng_state = device.rng_state;
      if (device.machine.Run() == VirtualMachine::State::kFailed) return false;
      device.rng_counter = context_.rng_counter;
      device.rng_state = context_.rng_state;
    }
    bool waiting = false;
    bool progressed = false;
    for (int64_t d = 0; d < size(); ++d) {
      if (devices_[static_cast<size_t>(d)]->machine.state() != VirtualMachine::State::kWaiting) continue;
      waiting = true;
      progressed = TryRunCollective(d) || progressed;
      if (context_.failed()) return false;
    }
    if (!waiting) return true;
    if (!progressed) {
      ReportDeadlock();
      return false;
    }
  }
}

bool DeviceScheduler::TryRunCollective(int64_t device) {
  const VirtualMachine& first = devices_[static_cast<size_t>(device)]->machine;
  const Thunk& step = first.waiting_for();
  const CollectivePlan& plan = WaitingPlan(device);
  const std::vector<int64_t>& group = plan.groups[static_cast<size_t>(plan.group_of[static_cast<size_t>(device)])];
  for (int64_t d : group) {
    const VirtualMachine& machine = devices_[static_cast<size_t>(d)]->machine;
    if (machine.state() != VirtualMachine::State::kWaiting || &machine.waiting_for() != &step) return false;
  }
  if (!plan.Ready(device, context_)) return false;
  context_.device = {device / context_.num_partitions, device % context_.num_partitions};
  const CompiledComputation& routine = first.waiting_computation();
  std::vector<std::vector<SlotValue>> results(group.size());
  std::vector<std::vector<std::byte*>> data(group.size());
  std::vector<CollectiveMember> members;
  bool allocated = true;
  for (size_t m = 0; m < group.size() && allocated; ++m) {
    for (uint32_t i = 0; i < step.result_count && allocated; ++i) {
      const int64_t bytes = routine.slots[step.result_begin + i].bytes;
      PoolBlock* buffer = context_.pool.Allocate(bytes);
      allocated = buffer != nullptr;
      if (!allocated) {
        context_.Fail(Scratch::OutOfMemory(context_, bytes));
        break;
      }
      results[m].push_back({buffer, buffer->data()});
      data[m].push_back(buffer->data());
    }
    const VirtualMachine& machine = devices_[static_cast<size_t>(group[m])]->machine;
    members.push_back({group[m], machine.waiting_operands().data(), data[m].data()});
  }
  if (allocated) plan.Run(members, context_);
  if (context_.failed()) {
    context_.error_instruction = step.instruction;
    for (const std::vector<SlotValue>& values : results) {
      for (const SlotValue& v : values) context_.pool.Release(v.owner);
    }
    return false;
  }
  for (size_t m = 0; m < group.size(); ++m) devices_[static_cast<size_t>(group[m])]->machine.Resume(results[m]);
  return true;
}

void DeviceScheduler::ReportDeadlock() {
  constexpr int kMaxNamed = 8;
  for (int64_t d = 0; d < size(); ++d) {
    const VirtualMachine& machine = devices_[static_cast<size_t>(d)]->machine;
    if (machine.state() != VirtualMachine::State::kWaiting) continue;
    const CollectivePlan& plan = WaitingPlan(d);
    std::string missing;
    int named = 0;
    for (int64_t other : plan.groups[static_cast<size_t>(plan.group_of[static_cast<size_t>(d)])]) {
      const VirtualMachine& absent = devices_[static_cast<size_t>(other)]->machine;
      const bool waits = absent.state() == VirtualMachine::State::kWaiting;
      if (waits && &absent.waiting_for() == &machine.waiting_for()) continue;
      if (++named > kMaxNamed) continue;
      StrAppend(&missing, missing.empty() ? "" : "; ", Name(other));
      if (waits) {
        StrAppend(&missing, " waits at ", module_.instruction(absent.waiting_for().instruction).name());
      } else {
        StrAppend(&missing, " has finished");
      }
    }
    if (named > kMaxNamed) StrAppend(&missing, "; and ", named - kMaxNamed, " more");
    context_.device = {d / context_.num_partitions, d % context_.num_partitions};
    context_.error_instruction = machine.waiting_for().instruction;
    const std::string what = plan.WaitsFor();
    context_.Fail(what.empty() ? StrCat("deadlock: waiting for devices that do not reach this collective: ", missing)
                               : StrCat("deadlock: waiting for ", what, ", which no device sends"));
    return;
  }
}

}  // namespace hlokit::interp

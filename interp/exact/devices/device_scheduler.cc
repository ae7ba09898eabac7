// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/devices/device_scheduler.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "interp/exact/devices/collective_operation.h"
#include "interp/processes/world.h"
#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

constexpr int kMessageTag = 1;
constexpr int64_t kPollsPerCheck = 64;

}  // namespace

struct DeviceScheduler::ActiveOperation {
  const Thunk* thunk;
  const std::vector<int64_t>* group;
  ProcessGroup* processes;
  Results results;                      // of the members of this process; taken over by their machines unless it starts
  std::vector<std::byte*> result_data;  // of all members of this process
  std::vector<const std::byte*> operand_data;
  std::vector<PoolBlock*> held;  // operands and results of a start, until its end
  CollectiveOperation operation;

  ActiveOperation(World& world, RunContext& context) : operation(world, context) {}
};

DeviceScheduler::DeviceScheduler(RunContext& context, const Module& module, CompiledComputation* entry,
                                 absl::Span<const SlotValue> arguments, ExecutionObserver* observer, World* world,
                                 const ProcessGroups* groups)
    : context_(context), module_(module), world_(world), groups_(groups) {
  const int64_t all = context.num_replicas * context.num_partitions;
  if (world != nullptr) {
    own_ = world->OwnDevices(all);
  } else {
    own_.resize(static_cast<size_t>(all));
    std::iota(own_.begin(), own_.end(), 0);
  }
  const size_t count = own_.size();
  by_number_.resize(static_cast<size_t>(all));
  const size_t each = arguments.size() / std::max<size_t>(count, 1);
  for (size_t d = 0; d < count; ++d) {
    devices_.push_back(std::make_unique<Device>(context, entry, arguments.subspan(d * each, each)));
    devices_[d]->rng_counter = context.rng_counter;
    devices_[d]->rng_state = context.rng_state;
    devices_[d]->machine.set_observer(observer);
    by_number_[static_cast<size_t>(own_[d])] = devices_[d].get();
  }
  if (world == nullptr) return;
  context.send_away = [this, all](int64_t channel, int64_t device, const std::string& message) {
    if (IsLocal(device) || device < 0 || device >= all) return false;
    const int64_t header[] = {channel, device};
    std::string text(reinterpret_cast<const char*>(header), sizeof(header));
    text += message;
    if (!world_->transport().Send(world_->ProcessOf(device, all), kMessageTag, text.data(),
                                  static_cast<int64_t>(text.size()))) {
      context_.Fail(world_->ErrorText());
    }
    return true;
  };
}

DeviceScheduler::~DeviceScheduler() {
  context_.send_away = nullptr;
  for (const std::unique_ptr<ActiveOperation>& active : operations_) {
    for (PoolBlock* block : active->held) context_.pool.Release(block);
    if (!static_cast<const CollectiveParams*>(active->thunk->params)->starts) ReleaseAll(active->results);
  }
}

void DeviceScheduler::ReleaseAll(const Results& results) {
  for (const std::vector<SlotValue>& values : results) {
    for (const SlotValue& v : values) context_.pool.Release(v.owner);
  }
}

std::unique_ptr<DeviceScheduler::ActiveOperation> DeviceScheduler::NewOperation() {
  if (ended_operations_.empty()) return std::make_unique<ActiveOperation>(*world_, context_);
  std::unique_ptr<ActiveOperation> active = std::move(ended_operations_.back());
  ended_operations_.pop_back();
  return active;
}

std::string DeviceScheduler::Name(int64_t device) const {
  return StrCat("replica ", device / context_.num_partitions, ", partition ", device % context_.num_partitions);
}

const CollectiveParams& DeviceScheduler::WaitingParams(int64_t device) const {
  return *static_cast<const CollectiveParams*>(MachineOf(device).waiting_for().params);
}

bool DeviceScheduler::RunDevices() {
  for (int64_t d = 0; d < size(); ++d) {
    Device& device = *devices_[static_cast<size_t>(d)];
    if (device.machine.state() == VirtualMachine::State::kFailed) return false;
    if (device.machine.state() != VirtualMachine::State::kRunning) continue;
    SetCurrent(own_[static_cast<size_t>(d)]);
    context_.rng_counter = device.rng_counter;
    context_.rng_state = device.rng_state;
    if (device.machine.Run() == VirtualMachine::State::kFailed) return false;
    device.rng_counter = context_.rng_counter;
    device.rng_state = context_.rng_state;
  }
  return true;
}

bool DeviceScheduler::Run() {
  for (;;) {
    if (!RunDevices()) return false;
    bool waiting = false;
    bool progressed = false;
    for (const int64_t d : own_) {
      if (MachineOf(d).state() != VirtualMachine::State::kWaiting) continue;
      waiting = true;
      progressed = TryRunCollective(d) || progressed;
      if (context_.failed()) return false;
    }
    progressed = AdvanceOperations() || progressed;
    if (context_.failed()) return false;
    if (!waiting && operations_.empty()) break;
    if (progressed) {
      polls_ = 0;
      if (reported_idle_) world_->ReportProgress({});
      reported_idle_ = false;
    } else if (world_ == nullptr) {
      ReportDeadlock(States());
      return false;
    } else if (!WaitForOthers()) {
      return false;
    }
  }
  // Others that wait for these devices will learn that they do in vain.
  if (world_ != nullptr) world_->ReportProgress(States());
  return true;
}

bool DeviceScheduler::AllocateResults(const std::vector<int64_t>& group, const Thunk& thunk, Results* results) {
  results->resize(group.size());
  for (std::vector<SlotValue>& values : *results) values.clear();
  for (size_t m = 0; m < group.size(); ++m) {
    const int64_t d = group[m];
    if (!IsLocal(d)) continue;
    std::vector<SlotValue>& values = (*results)[m];
    const CompiledComputation& computation = MachineOf(d).waiting_computation();
    const Thunk& own = MachineOf(d).waiting_for();  // another thunk of the same collective, or this one
    for (uint32_t i = 0; i < thunk.result_count; ++i) {
      const int64_t bytes = computation.slots[own.result_begin + i].bytes;
      PoolBlock* buffer = context_.pool.Allocate(bytes);
      if (buffer == nullptr) {
        context_.Fail(Scratch::OutOfMemory(context_, bytes), DiagnosticKind::kTooLarge);
        return false;
      }
      values.push_back({buffer, buffer->data()});
    }
  }
  return true;
}

bool DeviceScheduler::TryRunCollective(int64_t device) {
  if (FindLocal(device)->in_operation) return false;
  const VirtualMachine& first = MachineOf(device);
  const Thunk& thunk = first.waiting_for();
  const CollectiveParams& params = WaitingParams(device);
  const auto number = static_cast<size_t>(params.group_of[static_cast<size_t>(device)]);
  const std::vector<int64_t>& group = params.groups[number];
  for (int64_t d : group) {
    if (!IsLocal(d)) continue;
    if (MachineOf(d).state() != VirtualMachine::State::kWaiting) return false;
    const bool here =
        &MachineOf(d).waiting_for() == &thunk || (params.number != 0 && WaitingParams(d).number == params.number);
    if (!here) return false;
  }
  if (!params.Ready(device, context_)) return false;
  SetCurrent(device);
  if (world_ != nullptr) {
    const ProcessGroups::Collective& collective = groups_->Of(&params);
    ProcessGroup* const processes = collective.groups[number];
    if (processes != nullptr && processes->communicator >= 0) {
      std::unique_ptr<ActiveOperation> active = NewOperation();
      active->thunk = &thunk;
      if (AllocateResults(group, thunk, &active->results)) {
        BeginOperation(group, thunk, collective.tag, *processes, std::move(active));
        return true;
      }
      context_.error_instruction = thunk.instruction;
      ReleaseAll(active->results);
      return false;
    }
  }
  Results results;
  if (AllocateResults(group, thunk, &results)) {
    std::vector<std::vector<std::byte*>> data(group.size());
    std::vector<CollectiveMember> members;
    for (size_t m = 0; m < group.size(); ++m) {
      for (const SlotValue& v : results[m]) data[m].push_back(v.data);
      members.push_back({group[m], MachineOf(group[m]).waiting_operands().data(), data[m].data()});
    }
    params.Run(members, context_);
  }
  if (context_.failed()) {
    context_.error_instruction = thunk.instruction;
    ReleaseAll(results);
    return false;
  }
  for (size_t m = 0; m < group.size(); ++m) MachineOf(group[m]).Resume(results[m]);
  return true;
}

void DeviceScheduler::BeginOperation(const std::vector<int64_t>& group, const Thunk& thunk, uint64_t tag,
                                     ProcessGroup& processes, std::unique_ptr<ActiveOperation> active) {
  const auto& params = *static_cast<const CollectiveParams*>(thunk.params);
  active->group = &group;
  active->processes = &processes;
  // Pointers of all members of this process, those of each contiguous.
  const std::vector<size_t>& local = processes.members_of[processes.self];
  const CompiledComputation& computation = MachineOf(group[local[0]]).waiting_computation();
  int64_t result_bytes = 0;
  for (uint32_t i = 0; i < thunk.result_count; ++i) result_bytes += computation.slots[thunk.result_begin + i].bytes;
  active->result_data.clear();
  active->operand_data.clear();
  active->result_data.reserve(local.size() * thunk.result_count);
  active->operand_data.reserve(local.size() * thunk.operand_count);
  std::vector<CollectiveMember>& members = active->operation.members();
  members.clear();
  for (size_t m = 0; m < group.size(); ++m) {
    members.push_back({group[m], nullptr, nullptr});
    if (!IsLocal(group[m])) continue;
    members.back().operands = active->operand_data.data() + active->operand_data.size();
    members.back().results = active->result_data.data() + active->result_data.size();
    const absl::Span<const std::byte* const> operands = MachineOf(group[m]).waiting_operands();
    active->operand_data.insert(active->operand_data.end(), operands.begin(), operands.end());
    for (const SlotValue& v : active->results[m]) active->result_data.push_back(v.data);
  }
  active->operation.Begin(params, result_bytes, tag, processes);
  for (size_t m : local) {
    VirtualMachine& machine = MachineOf(group[m]);
    if (!params.starts) {
      FindLocal(group[m])->in_operation = true;
      continue;
    }
    // The device goes on; its operands and results stay as they are until the end.
    machine.HoldOperands(&active->held);
    for (const SlotValue& v : active->results[m]) {
      ++v.owner->refs;
      active->held.push_back(v.owner);
    }
    context_.pending_starts.insert({group[m], thunk.instruction.value});
    machine.Resume(active->results[m]);
  }
  operations_.push_back(std::move(active));
}

bool DeviceScheduler::AdvanceOperations() {
  bool progressed = false;
  // Members of a communicator start its operations in one order, so only the oldest of each group goes on: when one
  // takes its next step depends on timing.
  ++round_;
  for (size_t i = 0; i < operations_.size();) {
    ActiveOperation& active = *operations_[i];
    if (active.processes->waits_in == round_) {
      ++i;
      continue;
    }
    if (!active.operation.Advance()) {
      active.processes->waits_in = round_;
      ++i;
      continue;
    }
    if (context_.failed()) {
      ReportMismatch(active);
      return false;
    }
    FinishOperation(active);
    ended_operations_.push_back(std::move(operations_[i]));
    operations_.erase(operations_.begin() + static_cast<int64_t>(i));
    progressed = true;
  }
  return progressed;
}

void DeviceScheduler::FinishOperation(ActiveOperation& active) {
  const bool starts = static_cast<const CollectiveParams*>(active.thunk->params)->starts;
  for (size_t m : active.processes->members_of[active.processes->self]) {
    const int64_t device = (*active.group)[m];
    if (starts) {
      context_.pending_starts.erase({device, active.thunk->instruction.value});
    } else {
      FindLocal(device)->in_operation = false;
      MachineOf(device).Resume(active.results[m]);
    }
  }
  active.operation.End();
  for (PoolBlock* block : active.held) context_.pool.Release(block);
  active.held.clear();
}

void DeviceScheduler::ReportMismatch(const ActiveOperation& active) {
  context_.error_instruction = active.thunk->instruction;
  const ProcessGroup& processes = *active.processes;
  const int64_t device = (*active.group)[processes.members_of[processes.self][0]];
  SetCurrent(device);
  if (active.operation.mismatches().empty()) return;
  if (const absl::Status others = world_->CheckOthers(); !others.ok()) {
    context_.ReplaceError(std::string(others.message()));
    return;
  }
  std::vector<DeviceState> missing;
  for (const CollectiveOperation::Mismatch& other : active.operation.mismatches()) {
    const InstructionId at = groups_->InstructionOf(other.tag);
    const auto process = std::lower_bound(processes.ranks.begin(), processes.ranks.end(), other.rank);
    const int64_t first =
        (*active.group)[processes.members_of[static_cast<size_t>(process - processes.ranks.begin())][0]];
    if (!at.valid()) {
      context_.ReplaceError(StrCat("process ", other.rank, " runs another program"));
      return;
    }
    missing.push_back({first, at.value});
  }
  FailMissing(device, missing);
}

bool DeviceScheduler::ReceiveMessages() {
  Transport& transport = world_->transport();
  int source = 0;
  const int64_t bytes = transport.Probe(Transport::kAnySource, kMessageTag, &source);
  if (bytes < 0) return false;
  std::string message(static_cast<size_t>(bytes), '\0');
  int64_t header[2];
  absl::Status received = world_->Wait(transport.Receive(source, kMessageTag, message.data(), bytes), bytes);
  if (received.ok() && message.size() < sizeof(header)) received = absl::InternalError("a message is too short");
  if (!received.ok()) {
    context_.Fail(std::string(received.message()));
    return true;
  }
  std::memcpy(header, message.data(), sizeof(header));
  context_.messages[{header[0], header[1]}].push_back(message.substr(sizeof(header)));
  return true;
}

bool DeviceScheduler::WaitForOthers() {
  if (polls_ == 0) idle_since_ = data_since_ = -1;
  ++polls_;
  if (groups_->receives() && ReceiveMessages()) {
    polls_ = 0;
    return !context_.failed();
  }
  PauseBetweenPolls(polls_);
  if (polls_ % kPollsPerCheck != 0) return true;
  if (!context_.CheckTime()) {
    for (const int64_t d : own_) {
      if (MachineOf(d).state() != VirtualMachine::State::kWaiting) continue;
      SetCurrent(d);
      context_.error_instruction = MachineOf(d).waiting_for().instruction;
      break;
    }
    return false;
  }
  const double now = context_.seconds();
  if (idle_since_ < 0) idle_since_ = now;
  if (now - idle_since_ < kIdleSeconds) return true;
  idle_since_ = now;
  reported_idle_ = true;
  if (const absl::Status others = world_->CheckOthers(); !others.ok()) {
    context_.Fail(std::string(others.message()));
    return false;
  }
  world_->ReportIdle(States());
  std::vector<DeviceState> states;
  return !world_->AllWait(&states) || CheckAllWait(states);
}

bool DeviceScheduler::CheckAllWait(absl::Span<const DeviceState> states) {
  const auto on_their_way =
      std::find_if(operations_.begin(), operations_.end(),
                   [](const std::unique_ptr<ActiveOperation>& active) { return active->operation.all_arrived(); });
  if (on_their_way == operations_.end()) {
    ReportDeadlock(states);
    return false;
  }
  const double now = context_.seconds(), limit = world_->LimitOf((*on_their_way)->operation.bytes());
  if (data_since_ < 0) data_since_ = now;
  if (now - data_since_ < limit) return true;
  context_.error_instruction = (*on_their_way)->thunk->instruction;
  context_.Fail(
      StrCat("all processes wait, and the data of this collective have not come within ", FormatDouble(limit), " s"));
  return false;
}

std::vector<DeviceState> DeviceScheduler::States() const {
  std::vector<DeviceState> states;
  for (const int64_t d : own_) {
    const bool waits = MachineOf(d).state() == VirtualMachine::State::kWaiting;
    states.push_back({d, waits ? static_cast<int64_t>(MachineOf(d).waiting_for().instruction.value) : -1});
  }
  return states;
}

void DeviceScheduler::ReportDeadlock(absl::Span<const DeviceState> states) {
  for (const int64_t d : own_) {
    const VirtualMachine& machine = MachineOf(d);
    if (machine.state() != VirtualMachine::State::kWaiting) continue;
    const CollectiveParams& params = WaitingParams(d);
    SetCurrent(d);
    context_.error_instruction = machine.waiting_for().instruction;
    if (const std::string what = params.WaitsFor(); !what.empty()) {
      context_.Fail(StrCat("deadlock: waiting for ", what, ", which no device sends"));
      return;
    }
    std::vector<DeviceState> missing;
    for (int64_t other : params.groups[static_cast<size_t>(params.group_of[static_cast<size_t>(d)])]) {
      const auto at =
          std::find_if(states.begin(), states.end(), [&](const DeviceState& s) { return s.device == other; });
      if (at == states.end() || at->instruction == static_cast<int64_t>(machine.waiting_for().instruction.value))
        continue;
      missing.push_back(*at);
    }
    FailMissing(d, missing);
    return;
  }
  context_.Fail("deadlock: waiting for other processes, which wait too");
}

void DeviceScheduler::FailMissing(int64_t device, absl::Span<const DeviceState> missing) {
  constexpr size_t kMaxNamed = 8;
  std::string text;
  for (size_t i = 0; i < missing.size() && i < kMaxNamed; ++i) {
    StrAppend(&text, text.empty() ? "" : "; ", Name(missing[i].device));
    if (missing[i].instruction >= 0) {
      const InstructionId at(static_cast<uint32_t>(missing[i].instruction));
      StrAppend(&text, " waits at ", module_.instruction(at).name());
    } else {
      StrAppend(&text, " has finished");
    }
  }
  if (missing.size() > kMaxNamed) StrAppend(&text, "; and ", missing.size() - kMaxNamed, " more");
  SetCurrent(device);
  context_.ReplaceError(StrCat("deadlock: waiting for devices that do not reach this collective: ", text));
}

}  // namespace hlokit::interp

// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/breakdown.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/core/str_cat.h"
#include "simulator/report/report.h"

namespace hlokit::tpu {

namespace {

TimeKind KindOfWait(ScheduleUnitKind kind) {
  switch (kind) {
    case ScheduleUnitKind::kCollective:
    case ScheduleUnitKind::kDone:
      return TimeKind::kCommunication;
    case ScheduleUnitKind::kHost:
      return TimeKind::kHost;
    case ScheduleUnitKind::kCopy:
      return TimeKind::kMemory;
    case ScheduleUnitKind::kKernel:
    case ScheduleUnitKind::kCall:
    case ScheduleUnitKind::kLoop:
      break;
  }
  return TimeKind::kCompute;
}

// Returns the start of an asynchronous operation from its done.
InstructionId Starter(const Module& module, InstructionId id) {
  Instruction i = module.instruction(id);
  for (int hops = 0; hops < 8 && i.operand_count() > 0; ++hops) {
    if (!HasTrait(i.opcode(), kEndsAsync) && i.opcode() != Opcode::kGetTupleElement) break;
    i = i.operand(0);
  }
  return i.id();
}

double EndOf(const StepTime& time) { return time.start + time.duration; }

}  // namespace

uint32_t StallCause(const ComputationPlan& plan, const ComputationTime& time, uint32_t step) {
  if (!time.steps[step].on_core && time.steps[step].duration > 0) return step;
  uint32_t latest = ComputationPlan::kNoStep;
  for (uint32_t input : plan.steps[step].inputs) {
    if (latest == ComputationPlan::kNoStep || EndOf(time.steps[input]) > EndOf(time.steps[latest])) latest = input;
  }
  return latest;
}

std::vector<CoreStall> CoreStalls(const ReportInput& input, const KernelPlan& plan) {
  std::vector<CoreStall> waits;
  const Module& module = input.module;
  for (size_t c = 0; c < plan.computations().size(); ++c) {
    const ComputationPlan& computation = plan.computations()[c];
    const ComputationTime& time = input.simulation.computations[c];
    if (time.core_runs == 0) continue;
    const auto add = [&](InstructionId waiting, uint32_t step, double seconds) {
      CoreStall wait;
      wait.waiting = waiting;
      wait.runs = time.core_runs;
      wait.seconds = seconds * time.core_runs;
      if (step != ComputationPlan::kNoStep) {
        wait.waited_for = computation.steps[step].root;
        wait.unit = &computation.steps[step];
        if (wait.unit->kind == ScheduleUnitKind::kDone) {
          wait.waited_for = Starter(module, wait.waited_for);
          const uint32_t starter = plan.StepOf(wait.waited_for);
          if (starter < computation.steps.size()) wait.unit = &computation.steps[starter];
        }
        wait.kind = wait.unit->kind;
      }
      waits.push_back(wait);
    };
    double core = 0;  // time at which the core finished
    double last = 0;
    uint32_t last_step = ComputationPlan::kNoStep;
    for (uint32_t s = 0; s < computation.steps.size(); ++s) {
      const StepTime& t = time.steps[s];
      if (t.stall > 0) add(computation.steps[s].root, StallCause(computation, time, s), t.stall);
      if (t.on_core || t.stall > 0 || t.kernel_time > 0) core = std::max(core, EndOf(t));
      if (EndOf(t) > last) {
        last = EndOf(t);
        last_step = s;
      }
    }
    // After the last kernel the core stalls on operations in flight.
    if (last > core) add(InstructionId(), last_step, last - core);
  }
  std::stable_sort(waits.begin(), waits.end(),
                   [](const CoreStall& a, const CoreStall& b) { return a.seconds > b.seconds; });
  return waits;
}

std::vector<TimeShare> DeviceBreakdown(const ReportInput& input, const KernelPlan& plan) {
  std::map<std::string, TimeShare> shares;
  double sum = 0;
  const auto add = [&](std::string name, TimeKind kind, double seconds) {
    TimeShare& share = shares[name];
    share.name = std::move(name);
    share.kind = kind;
    share.seconds += seconds;
    sum += seconds;
  };
  for (const OpRow& row : input.simulation.rows) {
    if (row.core_seconds <= 0) continue;
    const double launch = row.times[static_cast<size_t>(Resource::kOverhead)] * row.core_seconds / row.seconds;
    const double start = std::min(launch, row.core_seconds);
    add(std::string(CategoryOf(input.module, CorePartOf(row))), TimeKind::kCompute, row.core_seconds - start);
    add("start of kernels", TimeKind::kOverhead, start);
  }
  for (const CoreStall& wait : CoreStalls(input, plan)) {
    std::string what = "links";
    if (wait.unit != nullptr) what = std::string(CategoryOf(input.module, *wait.unit));
    add(StrCat("waiting for ", what), KindOfWait(wait.kind), wait.seconds);
  }
  std::vector<TimeShare> result;
  for (auto& entry : shares) {
    if (entry.second.seconds > 0) result.push_back(std::move(entry.second));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const TimeShare& a, const TimeShare& b) { return a.seconds > b.seconds; });
  const double rest = input.simulation.device_seconds - sum;
  if (rest > 1e-6 * input.simulation.device_seconds) {
    const bool differ = input.simulation.devices.shares.size() > 1;
    result.push_back({differ ? "waiting for slower devices" : "not attributed",
                      differ ? TimeKind::kCommunication : TimeKind::kOverhead, rest});
  }
  return result;
}

}  // namespace hlokit::tpu

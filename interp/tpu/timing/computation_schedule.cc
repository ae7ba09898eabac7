// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/timing/computation_schedule.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "interp/tpu/memory/residency.h"
#include "ir/core/str_cat.h"
#include "passes/analysis/loop.h"
#include "passes/analysis/trip_count.h"

namespace hlokit::tpu {

namespace {

// Steps that a trip of a loop can run before it begins: they read only what the loop leaves alone and its counter.
std::vector<uint8_t> FindAhead(const ScheduleContext& context, const ComputationPlan& plan) {
  const Module& module = context.module;
  std::vector<uint8_t> ahead(plan.steps.size(), 0);
  const InstructionId loop = context.loop_of_body[plan.computation.value];
  if (!loop.valid() || module.header().is_scheduled) return ahead;
  const Computation body = module.computation(plan.computation);
  absl::flat_hash_set<int64_t> steady = InvariantElements(body);
  if (const std::optional<CountedLoop> counted = CountLoop(module.instruction(loop))) steady.insert(counted->index);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (step.kind != StepKind::kKernel && step.kind != StepKind::kCollective) continue;
    bool free = true;
    for (uint32_t input : step.inputs) free = free && ahead[input] != 0;
    for (InstructionId member : step.members) {
      for (Instruction operand : module.instruction(member).operands()) {
        const Instruction value = ValueOf(operand);
        if (value.opcode() == Opcode::kParameter) free = false;
        if (IsStateElement(value, body)) free = free && steady.contains(value.int_attr(Attr::kIndex));
      }
    }
    ahead[s] = free ? 1 : 0;
  }
  return ahead;
}

class Scheduler {
 public:
  Scheduler(const ScheduleContext& context, const ComputationPlan& plan)
      : context_(context), module_(context.module), machine_(context.options.machine), plan_(plan) {}

  ComputationTime Run() {
    const size_t n = plan_.steps.size();
    result_.steps.resize(n);
    FindWorks();
    residency_ =
        PlaceArrays(machine_, module_, plan_, works_, context_.loop_of_body[plan_.computation.value].valid(),
                    FindCalled(), context_.held_by_callers[plan_.computation.value], context_.assigned, context_.scale);
    const std::vector<uint8_t> ahead = FindAhead(context_, plan_);
    for (size_t s = 0; s < n; ++s) result_.steps[s].ahead = ahead[s] != 0;
    if (module_.header().is_scheduled) {
      RunInOrder();
    } else {
      RunAsReady();
    }
    Finish();
    return std::move(result_);
  }

 private:
  void Miss(std::string what) { ++(*context_.missing)[std::move(what)]; }
  Instruction NameOf(uint32_t s) const { return module_.instruction(plan_.steps[s].name); }

  // By step: vector memory that arrays of what it calls take.
  std::vector<double> FindCalled() {
    std::vector<double> called(plan_.steps.size(), 0);
    for (uint32_t s = 0; s < called.size(); ++s) {
      if (plan_.steps[s].kind != StepKind::kLoop && plan_.steps[s].kind != StepKind::kCall) continue;
      for (Computation callee : NameOf(s).called_computations()) {
        const ComputationTime* time = CalleeTime(callee);
        if (time != nullptr) called[s] = std::max(called[s], time->vmem_held);
      }
    }
    return called;
  }

  void FindWorks() {
    works_.resize(plan_.steps.size());
    for (size_t s = 0; s < works_.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (step.kind != StepKind::kKernel) continue;
      works_[s] = WorkOf(machine_, context_.costs, module_, step);
      if (!works_[s].opaque) continue;
      Miss(StrCat("work of custom call ", module_.instruction(step.members.back()).string_attr(Attr::kCustomCallTarget),
                  ": only its operands and results are counted"));
    }
  }

  // ---- what a step calls ----

  struct CalledTime {
    double core = 0;
    double waited = 0;
  };

  const ComputationTime* CalleeTime(Computation callee) const {
    if (!callee.valid()) return nullptr;
    const int64_t at = context_.plan.PlanOf(callee.id());
    return at >= 0 && at < static_cast<int64_t>(context_.done.size()) ? &context_.done[at] : nullptr;
  }

  static void Take(const ComputationTime* callee, double runs, StepTime* time, CalledTime* called) {
    if (callee == nullptr) return;
    time->duration += callee->duration * runs;
    AddTimes(callee->busy, runs, &time->times);
    time->flops += callee->flops * runs;
    time->hbm_bytes += callee->hbm_bytes * runs;
    time->wire_bytes += callee->wire_bytes * runs;
    called->core += callee->core_busy * runs;
    called->waited += callee->waited * runs;
  }

  CalledTime TimeCall(Instruction i, StepTime* time) {
    CalledTime called;
    if (i.opcode() == Opcode::kConditional) {
      // Which branch runs is not known: the longest.
      const ComputationTime* longest = nullptr;
      for (Computation branch : i.called_computations()) {
        const ComputationTime* t = CalleeTime(branch);
        if (t != nullptr && (longest == nullptr || t->duration > longest->duration)) longest = t;
      }
      Take(longest, 1, time, &called);
      Miss("branch taken by a conditional: the longest is assumed");
    } else {
      for (Computation callee : i.called_computations()) Take(CalleeTime(callee), 1, time, &called);
    }
    time->bound = BoundOf(time->times);
    return called;
  }

  CalledTime TimeLoop(Instruction i, StepTime* time) {
    CalledTime called;
    const std::optional<int64_t> trips = TripCount(i);
    if (!trips) Miss(StrCat("trips of a loop: ", context_.options.unknown_trips, " assumed"));
    time->trips = static_cast<double>(std::max<int64_t>(trips.value_or(context_.options.unknown_trips), 0));
    Take(CalleeTime(i.computation_attr(Attr::kCondition)), time->trips + 1, time, &called);
    Take(CalleeTime(i.computation_attr(Attr::kBody)), time->trips, time, &called);
    time->bound = BoundOf(time->times);
    return called;
  }

  // ---- resources ----

  // Starts a step beside the core no earlier than `at`; gives when its results are there.
  double RunOffCore(uint32_t s, double at) {
    const Step& step = plan_.steps[s];
    StepTime& time = result_.steps[s];
    result_.order.push_back(s);
    time.start = at;
    switch (step.kind) {
      case StepKind::kCollective: {
        context_.timer.Collective(NameOf(s), &time);
        for (size_t lane = 0; lane < kLanes; ++lane) {
          if (time.lanes >> lane & 1) lane_busy_[lane] += time.duration;
        }
        // The links carry it while the trip before runs.
        if (time.ahead) {
          time.start = 0;
          return at;
        }
        for (size_t lane = 0; lane < kLanes; ++lane) {
          if (time.lanes >> lane & 1) time.start = std::max(time.start, lane_free_[lane]);
        }
        for (size_t lane = 0; lane < kLanes; ++lane) {
          if (time.lanes >> lane & 1) lane_free_[lane] = time.start + time.duration;
        }
        break;
      }
      case StepKind::kCopy:
      case StepKind::kHost:
        context_.timer.Copy(NameOf(s), &time);
        time.start = std::max(at, copy_free_);
        copy_free_ = time.start + time.duration;
        break;
      case StepKind::kCall:
        TimeCall(NameOf(s), &time);
        break;
      case StepKind::kDone:
      case StepKind::kKernel:
      case StepKind::kLoop:
        break;
    }
    time.on_core = false;
    return time.start + time.duration;
  }

  // Runs a step on the core when its operands are there; gives when it ends.
  double RunOnCore(uint32_t s, double ready) {
    const Step& step = plan_.steps[s];
    StepTime& time = result_.steps[s];
    result_.order.push_back(s);
    time.start = std::max(core_, ready);
    time.waited = time.start - core_;
    if (step.kind == StepKind::kKernel) {
      const double used = context_.timer.Kernel(works_[s], step, residency_, fetched_, &time);
      result_.core_busy += time.duration;
      const double idle = std::max(time.duration - time.times[static_cast<size_t>(Resource::kHbm)], 0.0) + time.waited;
      fetched_ = std::min(fetched_ - used + idle * context_.timer.HbmRate(), residency_.free_bytes[s]);
    } else {
      const CalledTime called = step.kind == StepKind::kLoop ? TimeLoop(NameOf(s), &time) : TimeCall(NameOf(s), &time);
      result_.core_busy += called.core;
      result_.waited += called.waited;
      fetched_ = 0;
    }
    result_.waited += time.waited;
    core_ = time.start + time.duration;
    return core_;
  }

  // ---- orders ----

  // As the text has it.
  void RunInOrder() {
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      double at = core_;
      for (uint32_t input : step.inputs) {
        const StepTime& t = result_.steps[input];
        at = std::max(at, t.start + t.duration);
      }
      if (!IsOffCore(step, NameOf(s))) {
        end_ = std::max(end_, RunOnCore(s, at));
        continue;
      }
      // The start of an asynchronous step costs the core nothing; a synchronous one, and a done, holds it.
      const bool starts = HasTrait(NameOf(s).opcode(), kStartsAsync);
      const double ended = RunOffCore(s, starts ? core_ : at);
      end_ = std::max(end_, ended);
      if (starts) continue;
      result_.waited += ended - core_;
      result_.steps[s].waited = ended - core_;
      core_ = ended;
    }
  }

  // Off-core steps begin as soon as they can; the core takes the first ready one.
  void RunAsReady() {
    const uint32_t n = static_cast<uint32_t>(plan_.steps.size());
    users_.resize(n);
    waiting_.resize(n);
    ready_.assign(n, 0);
    for (uint32_t s = 0; s < n; ++s) {
      for (uint32_t input : plan_.steps[s].inputs) users_[input].push_back(s);
      waiting_[s] = static_cast<uint32_t>(plan_.steps[s].inputs.size());
    }
    for (uint32_t s = n; s-- > 0;) {
      if (waiting_[s] == 0) released_.push_back(s);
    }
    StartReleased();
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> now;
    while (!now.empty() || !later_.empty()) {
      while (!later_.empty() && (later_.top().first <= core_ || now.empty())) {
        // Nothing else to do: the core waits for the earliest.
        const bool waits = later_.top().first > core_;
        now.push(later_.top().second);
        later_.pop();
        if (waits) break;
      }
      const uint32_t s = now.top();
      now.pop();
      End(s, RunOnCore(s, ready_[s]));
      StartReleased();
    }
  }

  void End(uint32_t s, double at) {
    end_ = std::max(end_, at);
    for (uint32_t user : users_[s]) {
      ready_[user] = std::max(ready_[user], at);
      if (--waiting_[user] == 0) released_.push_back(user);
    }
  }

  void StartReleased() {
    while (!released_.empty()) {
      const uint32_t s = released_.back();
      released_.pop_back();
      if (IsOffCore(plan_.steps[s], NameOf(s))) {
        End(s, RunOffCore(s, ready_[s]));
      } else {
        later_.push({ready_[s], s});
      }
    }
  }

  void Finish() {
    result_.duration = std::max(end_, core_);
    result_.waited += result_.duration - core_;
    // Collectives issued a trip ahead still need the links once in each trip.
    const double links = *std::max_element(lane_busy_.begin(), lane_busy_.end());
    if (links > result_.duration) {
      result_.waited += links - result_.duration;
      result_.duration = links;
    }
    FindVmem();
    for (const StepTime& time : result_.steps) {
      AddTimes(time.times, 1, &result_.busy);
      result_.flops += time.flops;
      result_.hbm_bytes += time.hbm_bytes;
      result_.wire_bytes += time.wire_bytes;
    }
  }

  // Arrays that stay, and the tiles through which a kernel streams the others. What is called has its own.
  void FindVmem() {
    const double tiles = machine_.vmem_scoped * static_cast<double>(machine_.cores_per_device());
    result_.vmem.assign(plan_.steps.size(), 0);
    for (size_t s = 0; s < result_.vmem.size(); ++s) {
      const double streamed = works_[s].vmem_bytes * context_.scale;
      result_.vmem[s] = residency_.used_bytes[s] + std::min(streamed, tiles);
      result_.vmem_held = std::max(result_.vmem_held, residency_.used_bytes[s]);
      if (plan_.steps[s].kind != StepKind::kLoop && plan_.steps[s].kind != StepKind::kCall) continue;
      for (Computation callee : NameOf(static_cast<uint32_t>(s)).called_computations()) {
        const ComputationTime* time = CalleeTime(callee);
        if (time == nullptr || time->vmem.empty()) continue;
        const double most = *std::max_element(time->vmem.begin(), time->vmem.end());
        result_.vmem[s] = std::max(result_.vmem[s], residency_.used_bytes[s] + most);
        result_.vmem_held = std::max(result_.vmem_held, residency_.used_bytes[s] + time->vmem_held);
      }
    }
    result_.vmem_arrays = std::move(residency_.residents);
  }

  const ScheduleContext& context_;
  const Module& module_;
  const Machine& machine_;
  const ComputationPlan& plan_;
  std::vector<KernelWork> works_;  // by step
  Residency residency_;
  ComputationTime result_;

  double core_ = 0;                         // when the core is free
  double end_ = 0;                          // of what has run so far
  double copy_free_ = 0;                    // when the DMA engines are
  double fetched_ = 0;                      // bytes brought in ahead of the kernels that read them
  std::array<double, kLanes> lane_free_{};  // when the links of each axis are
  std::array<double, kLanes> lane_busy_{};

  std::vector<std::vector<uint32_t>> users_;  // by step
  std::vector<uint32_t> waiting_;             // for so many inputs
  std::vector<double> ready_;                 // when the last of them was there
  std::vector<uint32_t> released_;            // wait for none
  using Ready = std::pair<double, uint32_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> later_;
};

}  // namespace

ComputationTime ScheduleComputation(const ScheduleContext& context, const ComputationPlan& plan) {
  return Scheduler(context, plan).Run();
}

}  // namespace hlokit::tpu

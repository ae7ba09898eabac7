// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/computation_schedule.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ir/core/str_cat.h"
#include "passes/analysis/trip_count.h"
#include "passes/target/aliases.h"
#include "simulator/memory/residency.h"

namespace hlokit::tpu {

namespace {

class Scheduler {
 public:
  Scheduler(const ScheduleContext& context, const ComputationPlan& plan)
      : context_(context), module_(context.module), machine_(context.options.machine), plan_(plan) {}

  ComputationTime Run() {
    FindWorks();
    residency_ = FindResidency(module_, context_.model.target(), plan_, works_, FindCalled(),
                               context_.reserved_by_callers[plan_.computation.value]);
    RunRepeatedly();
    Finish();
    for (const auto& [what, count] : missing_) (*context_.missing)[what] += count;
    return std::move(result_);
  }

 private:
  void RecordUnmodeled(std::string what) { ++missing_[std::move(what)]; }
  Instruction RootOf(uint32_t s) const { return module_.instruction(plan_.steps[s].root); }

  // Returns, by step, the vector memory that arrays of its callees occupy.
  std::vector<double> FindCalled() {
    std::vector<double> called(plan_.steps.size(), 0);
    for (uint32_t s = 0; s < called.size(); ++s) {
      if (plan_.steps[s].kind != ScheduleUnitKind::kLoop && plan_.steps[s].kind != ScheduleUnitKind::kCall) continue;
      RootOf(s).ForEachCallee([&](Computation callee) {
        const ComputationTime* time = CalleeTime(callee);
        if (time != nullptr) called[s] = std::max(called[s], time->vmem_reserved);
      });
    }
    return called;
  }

  void FindWorks() {
    works_.resize(plan_.steps.size());
    for (size_t s = 0; s < works_.size(); ++s) {
      const ScheduleUnit& step = plan_.steps[s];
      const bool fused = step.kind == ScheduleUnitKind::kCollective && step.root != step.collective && !step.starts &&
                         RootOf(static_cast<uint32_t>(s)).opcode() == Opcode::kFusion;
      if (step.kind != ScheduleUnitKind::kKernel && !fused) continue;
      works_[s] = context_.model.KernelCostOf(module_.instruction(step.root));
      if (!works_[s].opaque) continue;
      ++(*context_.missing)[StrCat("work of custom call ",
                                   module_.instruction(step.root).string_attr(Attr::kCustomCallTarget),
                                   ": only its operands and results are counted")];
    }
  }

  // ---- callees ----

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
    called->waited += callee->stall * runs;
  }

  CalledTime TimeCall(Instruction i, StepTime* time) {
    CalledTime called;
    const std::vector<Computation> callees = i.called_computations();
    if (i.opcode() == Opcode::kConditional) {
      // The branch is unknown before the run: assume the longest.
      const int64_t longest = LongestBranch(callees, [&](Computation branch) {
        const ComputationTime* t = CalleeTime(branch);
        return t != nullptr ? t->duration : -1;
      });
      if (longest >= 0) time->branch = callees[static_cast<size_t>(longest)].id();
      RecordUnmodeled("branch taken by a conditional: the longest is assumed");
    } else if (callees.size() == 1) {
      time->branch = callees[0].id();
    }
    if (time->branch.valid()) {
      Take(CalleeTime(module_.computation(time->branch)), 1, time, &called);
    } else {
      for (Computation callee : callees) Take(CalleeTime(callee), 1, time, &called);
    }
    time->bound = BoundOf(time->times);
    return called;
  }

  CalledTime TimeLoop(Instruction i, StepTime* time) {
    CalledTime called;
    const std::optional<int64_t> trip_count = TripCount(i);
    if (!trip_count) RecordUnmodeled(StrCat("trip count of a loop: ", context_.options.default_trip_count, " assumed"));
    time->trip_count =
        static_cast<double>(std::max<int64_t>(trip_count.value_or(context_.options.default_trip_count), 0));
    Take(CalleeTime(i.computation_attr(Attr::kCondition)), time->trip_count + 1, time, &called);
    Take(CalleeTime(i.computation_attr(Attr::kBody)), time->trip_count, time, &called);
    time->bound = BoundOf(time->times);
    return called;
  }

  // ---- resources ----

  // Starts a transfer when the link to the host, or another DMA engine, is free.
  void ReserveDma(double at, StepTime* time) {
    double& free = OverHostLink(*time) ? host_free_ : copy_free_;
    time->start = std::max(at, free);
    free = time->start + OccupancyOf(*time);
  }

  // Sets `time` of a kernel while others use `contended` bytes a second of HBM. Returns the prefetched bytes it used.
  double RunKernel(uint32_t s, double contended, OpTime* time) {
    return context_.model.Kernel(works_[s],
                                 {.in_vmem = [&](InstructionId value) { return residency_.PartOf(value); },
                                  .prefetchable = [&](InstructionId value) { return IsPrefetchable(value, s); },
                                  .prefetched = fetched_,
                                  .contended = contended},
                                 time);
  }

  // Sets `time` of a collective, and for one in a fusion the core's work at the same time.
  void RunCollective(uint32_t s, StepTime* time) {
    context_.model.Collective(RootOf(s), time);
    if (plan_.steps[s].starts || RootOf(s).opcode() != Opcode::kFusion) return;
    OpTime kernel;
    RunKernel(s, 0, &kernel);
    time->kernel_time = kernel.duration;
    CostModel::AddKernel(kernel, time);
  }

  // Starts a step on a resource other than the core no earlier than `at`. Returns the time at which its results are
  // ready.
  double RunOffCore(uint32_t s, double at) {
    const ScheduleUnit& step = plan_.steps[s];
    StepTime& time = result_.steps[s];
    time.start = at;
    switch (step.kind) {
      case ScheduleUnitKind::kCollective: {
        RunCollective(s, &time);
        for (size_t link = 0; link < kLinkGroups; ++link) {
          if (time.link_mask >> link & 1) time.start = std::max(time.start, link_free_[link]);
        }
        for (size_t link = 0; link < kLinkGroups; ++link) {
          if (time.link_mask >> link & 1) link_free_[link] = time.start + time.link_time;
        }
        if (time.hbm_bytes > 0 && time.duration > 0) {
          in_flight_.push_back({time.start, time.start + time.duration, time.hbm_bytes / time.duration});
          TakeHbm(core_, &time);
        }
        break;
      }
      case ScheduleUnitKind::kCopy:
      case ScheduleUnitKind::kHost:
        context_.model.Copy(RootOf(s), &time);
        if (IsCopiedBefore(s)) {
          time.start = at - time.duration;
          break;
        }
        TakeHbm(core_, &time);
        ReserveDma(at, &time);
        break;
      case ScheduleUnitKind::kCall:
        TimeCall(RootOf(s), &time);
        if (OverHostLink(time)) ReserveDma(at, &time);
        break;
      case ScheduleUnitKind::kDone:
      case ScheduleUnitKind::kKernel:
      case ScheduleUnitKind::kLoop:
        break;
    }
    time.on_core = false;
    return time.start + time.duration;
  }

  // Returns true for a copy that the run before has started, at its end: its result is there from the begin.
  bool IsCopiedBefore(uint32_t s) const { return !context_.first_run && IsCrossProgramPrefetch(RootOf(s)); }

  // Runs a step on the core once its operands are ready. Returns the time at which it ends.
  double RunOnCore(uint32_t s, double ready) {
    const ScheduleUnit& step = plan_.steps[s];
    StepTime& time = result_.steps[s];
    time.start = std::max(core_, ready);
    time.stall = time.start - core_;
    if (step.kind == ScheduleUnitKind::kKernel) {
      double used = RunKernel(s, 0, &time);
      if (const double contended = HbmRateInFlight(time.start, time.duration); contended > 0) {
        used = RunKernel(s, contended, &time);
      }
      TakeHbm(time.start, &time);
      result_.core_busy += time.duration;
      const double idle = std::max(time.duration - time.times[static_cast<size_t>(Resource::kHbm)], 0.0) + time.stall;
      fetched_ = std::min(fetched_ - used + idle * context_.model.target().HbmRate(), residency_.free_bytes[s]);
    } else {
      const CalledTime called =
          step.kind == ScheduleUnitKind::kLoop ? TimeLoop(RootOf(s), &time) : TimeCall(RootOf(s), &time);
      result_.core_busy += called.core;
      result_.stall += called.waited;
      fetched_ = 0;
      // Callees keep to the budget themselves.
      budget_.AdvanceTo(time.start + time.duration);
      budget_.Take(time.hbm_bytes);
      budget_.Forgive();
    }
    result_.stall += time.stall;
    core_ = time.start + time.duration;
    return core_;
  }

  // Takes the bytes of a step that begins at `at` from the budget. The step lasts until HBM has moved them.
  void TakeHbm(double at, StepTime* time) {
    if (!budget_.limited() || time->hbm_bytes <= 0) return;
    budget_.AdvanceTo(at, fetched_);
    const double least = budget_.Take(time->hbm_bytes);
    if (least <= time->duration) return;
    time->duration = least;
    time->times[static_cast<size_t>(Resource::kHbm)] = least;
    time->bound = BoundOf(time->times);
  }

  // Returns the mean rate, in bytes per second, of the HBM traffic of collectives in flight from `at` on for `seconds`.
  double HbmRateInFlight(double at, double seconds) {
    if (seconds <= 0) return 0;
    double bytes = 0;
    for (const Traffic& t : in_flight_) {
      bytes += t.rate * std::max(std::min(t.end, at + seconds) - std::max(t.begin, at), 0.0);
    }
    in_flight_.erase(
        std::remove_if(in_flight_.begin(), in_flight_.end(), [&](const Traffic& t) { return t.end <= at; }),
        in_flight_.end());
    return bytes / seconds;
  }

  // ---- order ----

  // Finds the state in which one run follows another: each begins with what the end of the one before it left of the
  // HBM budget, and with its share of what the program had at its begin.
  void RunRepeatedly() {
    RunInOrder(context_.hbm.capacity());
    const double end = budget_.available();
    if (!budget_.limited() || end >= budget_.capacity()) return;
    const double share = context_.initial_hbm / std::max((*context_.runs)[context_.done.size()], 1.0);
    if (end > 0) {
      RunInOrder(share + end);
      // A run that needs HBM less than it sustains has all of the budget again before its end.
      if (budget_.available() >= end * (1 - 1e-6)) return;
    }
    RunInOrder(share);
    if (budget_.available() > 0) RunInOrder(share + budget_.available());
  }

  // Runs the steps in text order, with so many bytes that HBM may move beyond its sustained rate.
  void RunInOrder(double initial_hbm) {
    result_ = ComputationTime();
    result_.steps.resize(plan_.steps.size());
    missing_.clear();
    core_ = end_ = copy_free_ = host_free_ = fetched_ = 0;
    link_free_.fill(0);
    in_flight_.clear();
    budget_ = context_.hbm;
    budget_.Restart(initial_hbm);
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const ScheduleUnit& step = plan_.steps[s];
      double at = core_;
      for (uint32_t input : step.inputs) {
        const StepTime& t = result_.steps[input];
        at = std::max(at, t.start + t.duration);
      }
      if (!IsOffCore(step, RootOf(s))) {
        end_ = std::max(end_, RunOnCore(s, at));
        continue;
      }
      // The start of an asynchronous step takes no core time; the core blocks on synchronous steps and on dones.
      const bool starts = step.starts;
      const double ended = RunOffCore(s, starts ? core_ : at);
      end_ = std::max(end_, ended);
      if (starts) continue;
      const double busy = result_.steps[s].kernel_time;
      result_.core_busy += busy;
      result_.steps[s].stall = std::max(ended - core_ - busy, 0.0);
      result_.stall += result_.steps[s].stall;
      core_ = ended;
    }
  }

  // Returns true if `value` is produced early enough before step `s` to be prefetched.
  bool IsPrefetchable(InstructionId value, uint32_t s) const {
    Instruction v = module_.instruction(value);
    if (v.opcode() == Opcode::kGetTupleElement) v = ValueOf(v.operand(0));
    const uint32_t producer = context_.plan.StepOf(v.id());
    return producer == ComputationPlan::kNoStep || producer + 2 < s;
  }

  void Finish() {
    result_.duration = std::max(end_, core_);
    result_.stall += result_.duration - core_;
    FindVmem();
    for (const StepTime& time : result_.steps) {
      AddTimes(time.times, 1, &result_.busy);
      result_.flops += time.flops;
      result_.hbm_bytes += time.hbm_bytes;
      result_.wire_bytes += time.wire_bytes;
    }
  }

  // Computes vector memory in use by step: resident arrays, and the tiles through which kernels stream the others.
  // Callees have tiles of their own.
  void FindVmem() {
    const double tiles = machine_.vmem_scoped * static_cast<double>(machine_.cores_per_device());
    result_.vmem.assign(plan_.steps.size(), 0);
    for (size_t s = 0; s < result_.vmem.size(); ++s) {
      const double streamed = works_[s].vmem_bytes / context_.model.target().parts;
      result_.vmem[s] = residency_.used_bytes[s] + std::min(streamed, tiles);
      result_.vmem_reserved = std::max(result_.vmem_reserved, residency_.used_bytes[s]);
      if (plan_.steps[s].kind != ScheduleUnitKind::kLoop && plan_.steps[s].kind != ScheduleUnitKind::kCall) continue;
      RootOf(static_cast<uint32_t>(s)).ForEachCallee([&](Computation callee) {
        const ComputationTime* time = CalleeTime(callee);
        if (time == nullptr || time->vmem.empty()) return;
        const double most = *std::max_element(time->vmem.begin(), time->vmem.end());
        result_.vmem[s] = std::max(result_.vmem[s], residency_.used_bytes[s] + most);
        result_.vmem_reserved = std::max(result_.vmem_reserved, residency_.used_bytes[s] + time->vmem_reserved);
      });
    }
    result_.vmem_arrays = std::move(residency_.residents);
  }

  const ScheduleContext& context_;
  const Module& module_;
  const DeviceDescription& machine_;
  const ComputationPlan& plan_;
  std::vector<KernelCost> works_;  // by step
  Residency residency_;
  ComputationTime result_;
  std::map<std::string, int64_t> missing_;

  // HBM traffic of a collective in flight.
  struct Traffic {
    double begin = 0;
    double end = 0;
    double rate = 0;
  };

  double core_ = 0;                              // when the core is free
  double end_ = 0;                               // end of all steps so far
  double copy_free_ = 0;                         // when the DMA engines can start another copy
  double host_free_ = 0;                         // when the link to the host can
  double fetched_ = 0;                           // prefetched bytes that no kernel has read
  std::array<double, kLinkGroups> link_free_{};  // when the links of each axis are free
  std::vector<Traffic> in_flight_;
  HbmBudget budget_;
};

}  // namespace

bool IsCrossProgramPrefetch(Instruction copy) {
  return copy.opcode() == Opcode::kCopyStart && copy.has(Attr::kCrossProgramPrefetchIndex) &&
         copy.module().computation(copy.record().parent).is_entry();
}

bool IsOffCore(const ScheduleUnit& step, Instruction name) {
  return step.kind == ScheduleUnitKind::kCollective || step.kind == ScheduleUnitKind::kCopy ||
         step.kind == ScheduleUnitKind::kHost || step.kind == ScheduleUnitKind::kDone ||
         (step.kind == ScheduleUnitKind::kCall && name.opcode() == Opcode::kAsyncStart);
}

ComputationTime ScheduleComputation(const ScheduleContext& context, const ComputationPlan& plan) {
  return Scheduler(context, plan).Run();
}

}  // namespace hlokit::tpu

// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/simulator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/core/str_cat.h"
#include "simulator/memory/residency.h"
#include "simulator/timing/computation_schedule.h"
#include "simulator/timing/multi_device_simulation.h"

namespace hlokit::tpu {

namespace {

class Simulator {
 public:
  Simulator(const Module& module, const KernelPlan& plan, const SimulationOptions& options)
      : module_(module), plan_(plan), options_(options), machine_(options.machine) {}

  Simulation Run() {
    ComputeImplicitPartitions();
    CollectDynamicSizes();
    const TpuTarget target = TargetOf(options_, module_);
    const CostModel model(module_, target);
    const std::vector<double> held = ReservedByCallers(module_, target);
    const std::map<std::string, int64_t> unmodeled = result_.unmodeled;
    ScheduleContext context{module_, plan_, options_, model, held, result_.computations, &result_.unmodeled};
    const auto schedule = [&] {
      result_.computations.clear();
      result_.unmodeled = unmodeled;
      for (const ComputationPlan& computation : plan_.computations()) {
        result_.computations.push_back(ScheduleComputation(context, computation));
      }
      CountRuns();
    };
    schedule();
    const int64_t first = plan_.PlanOf(module_.entry().id());
    const double busy = first < 0 ? 0 : result_.computations[first].busy[static_cast<size_t>(Resource::kHbm)];
    context.hbm = BudgetOf(target, busy, &context.initial_hbm);
    std::vector<double> runs;
    if (context.hbm.limited()) {
      for (const ComputationTime& time : result_.computations) runs.push_back(time.runs);
      context.runs = &runs;
      schedule();
    }
    MakeRows();
    ComputeVmemPeak();
    const int64_t entry = plan_.PlanOf(module_.entry().id());
    if (entry >= 0) {
      const ComputationTime& time = result_.computations[entry];
      result_.device_seconds = time.duration;
      result_.busy = time.busy;
      result_.vmem_timeline = time.vmem;
      result_.core_busy = time.core_busy;
      result_.stall = time.stall;
      result_.flops = time.flops;
      result_.hbm_bytes = time.hbm_bytes;
      result_.wire_bytes = time.wire_bytes;
      TimeFirstRun(context, static_cast<size_t>(entry));
    }
    result_.devices = SimulateDevices(module_, plan_, options_, result_, MultiDeviceOptions());
    if (!options_.variation.empty()) {
      result_.device_seconds = result_.devices.seconds;
      double compute = 0;
      for (const DeviceTimeBreakdown& share : result_.devices.shares) compute += share.compute;
      result_.core_busy = compute / static_cast<double>(result_.devices.shares.size());
      result_.stall = result_.device_seconds - result_.core_busy;
    }
    const double dispatch = options_.dispatch < 0 ? machine_.queued_dispatch_latency : options_.dispatch;
    result_.step_seconds = std::max(result_.device_seconds, dispatch);
    ResourceTimes totals = result_.busy;
    if (dispatch > result_.device_seconds) totals[static_cast<size_t>(Resource::kHost)] = dispatch;
    result_.bound = BoundOf(totals);
    return std::move(result_);
  }

 private:
  void ComputeImplicitPartitions() {
    result_.implicit_partitions = ImplicitPartitionCount(module_);
    if (result_.implicit_partitions == 1) return;
    RecordUnmodeled(
        "partitioning: shapes are those of all partitions; the work is divided evenly and no collective counted");
  }

  void CollectDynamicSizes() {
    for (Computation c : module_.computations()) {
      for (Instruction i : c.instructions()) {
        if (i.shape().has_unbounded_dims()) {
          RecordUnmodeled("sizes: arrays with a dimension of no known bound count as if it were empty");
        } else if (i.shape().has_dynamic_dims()) {
          RecordUnmodeled("sizes: arrays with a dimension that is known when the program runs count at its bound");
        }
      }
    }
  }

  // Times the first run of a program with prefetches that otherwise the run before starts.
  void TimeFirstRun(const ScheduleContext& steady, size_t entry) {
    const ComputationPlan& plan = plan_.computations()[entry];
    for (const ScheduleUnit& step : plan.steps) {
      result_.prefetches += IsCrossProgramPrefetch(module_.instruction(step.root));
    }
    if (result_.prefetches == 0) return;
    const std::vector<ComputationTime> callees(result_.computations.begin(),
                                               result_.computations.begin() + static_cast<ptrdiff_t>(entry));
    std::map<std::string, int64_t> ignored;
    const ScheduleContext first = {.module = steady.module,
                                   .plan = steady.plan,
                                   .options = steady.options,
                                   .model = steady.model,
                                   .reserved_by_callers = steady.reserved_by_callers,
                                   .done = callees,
                                   .missing = &ignored,
                                   .hbm = steady.hbm,
                                   .initial_hbm = steady.initial_hbm,
                                   .runs = steady.runs,
                                   .first_run = true};
    result_.first_run_seconds = ScheduleComputation(first, plan).duration;
  }

  void RecordUnmodeled(std::string what) { ++result_.unmodeled[std::move(what)]; }

  // ---- totals ----

  void CountRuns() {
    const std::vector<ComputationPlan>& plans = plan_.computations();
    const int64_t entry = plan_.PlanOf(module_.entry().id());
    if (entry < 0) return;
    result_.computations[entry].runs = result_.computations[entry].core_runs = 1;
    // Callers follow their callees.
    for (size_t c = plans.size(); c-- > 0;) {
      const ComputationTime& caller = result_.computations[c];
      for (size_t s = 0; s < plans[c].steps.size(); ++s) {
        const ScheduleUnit& step = plans[c].steps[s];
        if (step.kind != ScheduleUnitKind::kCall && step.kind != ScheduleUnitKind::kLoop) continue;
        const Instruction i = module_.instruction(step.root);
        for (Computation callee : i.called_computations()) {
          const int64_t at = plan_.PlanOf(callee.id());
          if (at < 0 || at >= static_cast<int64_t>(c)) continue;
          if (i.opcode() == Opcode::kConditional && callee.id() != caller.steps[s].branch) continue;
          double runs = step.kind == ScheduleUnitKind::kLoop ? caller.steps[s].trip_count : 1;
          if (step.kind == ScheduleUnitKind::kLoop && callee == i.computation_attr(Attr::kCondition)) runs += 1;
          result_.computations[at].runs += caller.runs * runs;
          if (caller.steps[s].on_core) result_.computations[at].core_runs += caller.core_runs * runs;
          if (i.opcode() == Opcode::kConditional) break;
        }
      }
    }
  }

  void ComputeVmemPeak() {
    for (size_t c = 0; c < result_.computations.size(); ++c) {
      const ComputationTime& time = result_.computations[c];
      if (time.runs == 0) continue;
      for (size_t s = 0; s < time.vmem.size(); ++s) {
        if (time.vmem[s] <= result_.vmem_peak) continue;
        result_.vmem_peak = time.vmem[s];
        result_.vmem_peak_at = plan_.computations()[c].steps[s].root;
        result_.vmem_live.clear();
        for (const Resident& r : time.vmem_arrays) {
          if (r.from <= s && s <= r.to) result_.vmem_live.push_back(r);
        }
      }
    }
    std::stable_sort(result_.vmem_live.begin(), result_.vmem_live.end(),
                     [](const Resident& a, const Resident& b) { return a.bytes > b.bytes; });
  }

  void MakeRows() {
    for (size_t c = 0; c < plan_.computations().size(); ++c) {
      const ComputationTime& time = result_.computations[c];
      if (time.runs == 0) continue;
      for (size_t s = 0; s < time.steps.size(); ++s) {
        const ScheduleUnit& step = plan_.computations()[c].steps[s];
        if (step.kind == ScheduleUnitKind::kCall || step.kind == ScheduleUnitKind::kLoop) continue;
        const StepTime& t = time.steps[s];
        if (t.duration == 0 && t.stall == 0) continue;
        OpRow row;
        row.name = step.root;
        row.kind = step.kind;
        row.collective = step.collective;
        row.scatters = step.scatters;
        row.on_core = t.on_core && time.core_runs > 0;
        row.runs = time.runs;
        row.seconds = t.duration * time.runs;
        row.core_seconds = (t.on_core ? t.duration : t.kernel_time) * time.core_runs;
        row.stall = t.stall * time.core_runs;
        row.bound = t.bound;
        row.flops = t.flops * time.runs;
        row.hbm_bytes = t.hbm_bytes * time.runs;
        row.wire_bytes = t.wire_bytes * time.runs;
        AddTimes(t.times, time.runs, &row.times);
        result_.rows.push_back(row);
      }
    }
    std::stable_sort(result_.rows.begin(), result_.rows.end(),
                     [](const OpRow& a, const OpRow& b) { return a.seconds > b.seconds; });
  }

  const Module& module_;
  const KernelPlan& plan_;
  const SimulationOptions& options_;
  const DeviceDescription& machine_;
  Simulation result_;
};

}  // namespace

Simulation Simulate(const Module& module, const KernelPlan& plan, const SimulationOptions& options) {
  return Simulator(module, plan, options).Run();
}

}  // namespace hlokit::tpu

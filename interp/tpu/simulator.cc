#include "interp/tpu/simulator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

#include "interp/tpu/op_class.h"
#include "interp/tpu/residency.h"
#include "interp/tpu/tiling.h"
#include "ir/replica_groups.h"
#include "ir/str_cat.h"
#include "passes/analysis/trip_count.h"

namespace hlokit::tpu {

namespace {

size_t Index(Resource r) { return static_cast<size_t>(r); }

constexpr int64_t kHostMemorySpace = 5;

// Largest of the resources; overhead only where it is most of the time.
Resource BoundOf(const ResourceTimes& times) {
  size_t best = Index(Resource::kOverhead);
  for (size_t r = 0; r < kResourceCount; ++r) {
    if (times[r] > times[best]) best = r;
  }
  return static_cast<Resource>(best);
}

void Add(const ResourceTimes& from, double scale, ResourceTimes* to) {
  for (size_t r = 0; r < kResourceCount; ++r) (*to)[r] += from[r] * scale;
}

class Simulator {
 public:
  Simulator(const Module& module, const KernelPlan& plan, const SimulationOptions& options)
      : module_(module), plan_(plan), options_(options), machine_(options.machine), costs_(module) {}

  Simulation Run() {
    FindParts();
    FindLoopBodies();
    for (const ComputationPlan& computation : plan_.computations()) {
      result_.computations.push_back(SimulateComputation(computation));
    }
    CountRuns();
    MakeRows();
    const int64_t entry = plan_.PlanOf(module_.entry().id());
    if (entry >= 0) {
      const ComputationTime& time = result_.computations[entry];
      result_.device_seconds = time.duration;
      result_.busy = time.busy;
      result_.core_busy = time.core_busy;
      result_.waited = time.waited;
      result_.flops = time.flops;
      result_.hbm_bytes = time.hbm_bytes;
      result_.wire_bytes = time.wire_bytes;
    }
    const double dispatch = options_.dispatch < 0 ? machine_.dispatch_queued : options_.dispatch;
    result_.step_seconds = std::max(result_.device_seconds, dispatch);
    ResourceTimes totals = result_.busy;
    if (dispatch > result_.device_seconds) totals[Index(Resource::kHost)] = dispatch;
    result_.bound = BoundOf(totals);
    return std::move(result_);
  }

 private:
  // A module with shardings but without collectives has not been partitioned: its shapes are those of all devices.
  void FindParts() {
    if (module_.header().num_partitions <= 1) return;
    bool shardings = false;
    for (Computation c : module_.computations()) {
      for (Instruction i : c.instructions()) {
        if (HasTrait(i.opcode(), kCollective)) return;
        shardings |= i.has(Attr::kSharding);
      }
    }
    if (!shardings) return;
    result_.parts = static_cast<double>(module_.header().num_partitions);
    Miss("partitioning: shapes are those of all partitions; the work is divided evenly and no collective counted");
  }

  void FindLoopBodies() {
    loop_of_body_.resize(module_.computation_id_bound());
    for (Computation c : module_.computations()) {
      for (Instruction i : c.instructions()) {
        if (i.opcode() != Opcode::kWhile) continue;
        const Computation body = i.computation_attr(Attr::kBody);
        if (body.valid()) loop_of_body_[body.id().value] = i.id();
      }
    }
  }

  void Miss(std::string what) { ++result_.missing[std::move(what)]; }

  double Scale() const { return 1 / result_.parts; }

  // ---- one step ----

  void TimeKernel(const KernelWork& work, const Step& step, const Residency& residency, double prefetched,
                  double* prefetchable, StepTime* time) {
    ResourceTimes times = work.times;
    double bytes = 0;
    *prefetchable = 0;
    for (const Access& access : work.reads) {
      const double part = access.bytes * (1 - residency.PartOf(access.value));
      bytes += part;
      if (IsEarly(access.value, step)) *prefetchable += part;
    }
    for (const Access& access : work.writes) bytes += access.bytes * (1 - residency.PartOf(access.value));
    for (const Product& product : work.products) {
      const Instruction named = module_.instruction(step.name);
      const bool plain = ClassOf(named.opcode()) == OpClass::kProduct;
      const bool lhs = plain && residency.PartOf(ValueOf(named.operand(0)).id()) == 1;
      const bool rhs = plain && residency.PartOf(ValueOf(named.operand(1)).id()) == 1;
      const ProductTime product_time = TimeOf(machine_, product, lhs, rhs);
      times[Index(Resource::kMxu)] += product_time.mxu;
      bytes += product_time.reread;
    }
    bytes *= Scale();
    *prefetchable *= Scale();
    const double used = std::min(prefetched, *prefetchable);
    *prefetchable = used;
    const double hbm =
        (bytes - used) / (work.own_pipeline ? machine_.HbmRate() * machine_.attention_hbm_efficiency : HbmRate());
    double compute = 0;
    for (double& t : times) {
      t *= Scale();
      compute = std::max(compute, t);
    }
    compute = std::max(compute, times[Index(Resource::kScalar)]);
    times[Index(Resource::kHbm)] = hbm;
    double overhead = 0;
    // Scalars run between kernels.
    const bool scalar_only = compute == times[Index(Resource::kScalar)] && bytes < 4096;
    if (!scalar_only) overhead += machine_.kernel_overhead;
    if (bytes - used > 4096) overhead += machine_.hbm_latency;
    if (work.lane_reduce) overhead += machine_.xlu_overhead;
    times[Index(Resource::kOverhead)] = overhead;
    const double p = machine_.overlap_exponent;
    const double larger = std::max(compute, hbm);
    double both = larger > 0 ? larger * std::pow(std::pow(compute / larger, p) + std::pow(hbm / larger, p), 1 / p) : 0;
    if (work.own_pipeline) both = larger;
    time->times = times;
    time->duration = both + overhead;
    time->bound = BoundOf(times);
    time->flops = work.flops * Scale();
    time->hbm_bytes = bytes;
  }

  double HbmRate() const { return machine_.HbmRate() * machine_.hbm_efficiency; }

  // There long enough before the step to have been fetched meanwhile.
  bool IsEarly(InstructionId value, const Step& step) const {
    Instruction v = module_.instruction(value);
    if (v.opcode() == Opcode::kGetTupleElement) v = ValueOf(v.operand(0));
    const uint32_t maker = plan_.StepOf(v.id());
    if (maker == ComputationPlan::kNoStep) return true;
    const uint32_t own = plan_.StepOf(step.members.back());
    return maker + 2 < own;
  }

  void TimeCollective(Instruction i, StepTime* time, GroupSpan* span) {
    const Collective collective = CollectiveOf(machine_, options_.topology, i);
    const CollectiveTime t = TimeOf(machine_, collective.kind, collective.bytes, collective.span);
    time->times[Index(Resource::kIci)] = std::max(t.ici, t.latency);
    time->times[Index(Resource::kDcn)] = t.dcn;
    time->times[Index(Resource::kOverhead)] = machine_.kernel_overhead;
    time->duration = t.total() + machine_.kernel_overhead;
    time->bound = BoundOf(time->times);
    time->wire_bytes = collective.bytes;
    time->on_core = false;
    *span = collective.span;
  }

  void TimeCopy(Instruction i, StepTime* time) {
    double bytes = 0;
    bool host = i.opcode() != Opcode::kCopyStart;
    for (Shape leaf : Leaves(i.shape())) {
      if (leaf.IsArray() && leaf.layout() != nullptr && leaf.layout()->memory_space() == kHostMemorySpace) host = true;
    }
    for (Instruction operand : i.operands()) bytes += static_cast<double>(PaddedBytes(machine_, operand.shape()));
    if (i.operand_count() == 0 || bytes == 0) bytes = static_cast<double>(PaddedBytes(machine_, i.shape()));
    bytes *= Scale();
    const Resource resource = host ? Resource::kHost : Resource::kHbm;
    time->times[Index(resource)] = bytes / (host ? machine_.host_rate : HbmRate());
    time->times[Index(Resource::kOverhead)] = machine_.hbm_latency;
    time->duration = time->times[Index(resource)] + machine_.hbm_latency;
    time->bound = BoundOf(time->times);
    time->hbm_bytes = bytes;
    time->on_core = false;
  }

  void TakeCallee(const ComputationTime& callee, double runs, StepTime* time) {
    time->duration += callee.duration * runs;
    Add(callee.busy, runs, &time->times);
    time->flops += callee.flops * runs;
    time->hbm_bytes += callee.hbm_bytes * runs;
    time->wire_bytes += callee.wire_bytes * runs;
    core_of_call_ += callee.core_busy * runs;
    waited_of_call_ += callee.waited * runs;
  }
  const ComputationTime* CalleeTime(Computation callee) const {
    if (!callee.valid()) return nullptr;
    const int64_t at = plan_.PlanOf(callee.id());
    return at >= 0 && at < static_cast<int64_t>(result_.computations.size()) ? &result_.computations[at] : nullptr;
  }

  void TimeCall(Instruction i, StepTime* time) {
    if (i.opcode() == Opcode::kConditional) {
      // Which branch runs is not known: the longest.
      const ComputationTime* longest = nullptr;
      for (Computation branch : i.called_computations()) {
        const ComputationTime* t = CalleeTime(branch);
        if (t != nullptr && (longest == nullptr || t->duration > longest->duration)) longest = t;
      }
      if (longest != nullptr) TakeCallee(*longest, 1, time);
      Miss("branch taken by a conditional: the longest is assumed");
    } else {
      for (Computation callee : i.called_computations()) {
        if (const ComputationTime* t = CalleeTime(callee); t != nullptr) TakeCallee(*t, 1, time);
      }
      time->on_core = i.opcode() != Opcode::kAsyncStart;
    }
    time->bound = BoundOf(time->times);
  }

  void TimeLoop(Instruction i, StepTime* time) {
    const std::optional<int64_t> trips = TripCount(i);
    if (!trips) Miss(StrCat("trips of a loop: ", options_.unknown_trips, " assumed"));
    time->trips = static_cast<double>(std::max<int64_t>(trips.value_or(options_.unknown_trips), 0));
    const ComputationTime* body = CalleeTime(i.computation_attr(Attr::kBody));
    const ComputationTime* condition = CalleeTime(i.computation_attr(Attr::kCondition));
    if (condition != nullptr) TakeCallee(*condition, time->trips + 1, time);
    if (body != nullptr) TakeCallee(*body, time->trips, time);
    time->bound = BoundOf(time->times);
  }

  // ---- one computation ----

  // Steps that a trip can run before it begins: they read only what the loop leaves alone and its counter.
  std::vector<uint8_t> FindAhead(const ComputationPlan& plan) {
    std::vector<uint8_t> ahead(plan.steps.size(), 0);
    const InstructionId loop = loop_of_body_[plan.computation.value];
    if (!loop.valid() || module_.header().is_scheduled) return ahead;
    const Computation body = module_.computation(plan.computation);
    absl::flat_hash_set<int64_t> steady = InvariantElements(body);
    if (const std::optional<CountedLoop> counted = CountLoop(module_.instruction(loop))) steady.insert(counted->index);
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      const Step& step = plan.steps[s];
      if (step.kind != StepKind::kKernel && step.kind != StepKind::kCollective) continue;
      bool free = true;
      for (uint32_t input : step.inputs) free = free && ahead[input] != 0;
      for (InstructionId member : step.members) {
        for (Instruction operand : module_.instruction(member).operands()) {
          const Instruction value = ValueOf(operand);
          if (value.opcode() == Opcode::kParameter) free = false;
          if (value.opcode() == Opcode::kGetTupleElement && value.operand(0).opcode() == Opcode::kParameter) {
            free = free && steady.contains(value.int_attr(Attr::kIndex));
          }
        }
      }
      ahead[s] = free ? 1 : 0;
    }
    return ahead;
  }

  ComputationTime SimulateComputation(const ComputationPlan& plan) {
    const size_t n = plan.steps.size();
    ComputationTime result;
    result.steps.resize(n);
    std::vector<KernelWork> works(n);
    for (size_t s = 0; s < n; ++s) {
      if (plan.steps[s].kind != StepKind::kKernel) continue;
      works[s] = WorkOf(machine_, costs_, module_, plan.steps[s]);
      if (works[s].opaque) {
        Miss(StrCat("work of custom call ",
                    module_.instruction(plan.steps[s].members.back()).string_attr(Attr::kCustomCallTarget),
                    ": only its operands and results are counted"));
      }
    }
    const Residency residency =
        PlaceArrays(machine_, module_, plan, works, loop_of_body_[plan.computation.value].valid(), Scale());
    const std::vector<uint8_t> ahead = FindAhead(plan);

    std::vector<std::vector<uint32_t>> users(n);
    std::vector<uint32_t> waiting(n);
    for (uint32_t s = 0; s < n; ++s) {
      for (uint32_t input : plan.steps[s].inputs) users[input].push_back(s);
      waiting[s] = static_cast<uint32_t>(plan.steps[s].inputs.size());
    }
    const bool in_order = module_.header().is_scheduled;
    std::vector<double> ready(n, 0);      // when operands are there
    std::vector<double> axis_free(4, 0);  // links of each axis; the last: other slices
    std::vector<double> axis_busy(4, 0);
    double copy_free = 0;
    double core = 0;
    double credit = 0;  // bytes fetched ahead
    double end = 0;
    // Off-core steps begin as soon as they can; the core takes the first ready one.
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> now;
    using Later = std::pair<double, uint32_t>;
    std::priority_queue<Later, std::vector<Later>, std::greater<>> later;
    std::vector<uint32_t> released;
    const auto release = [&](uint32_t s) { released.push_back(s); };
    const auto finish = [&](uint32_t s, double at) {
      end = std::max(end, at);
      for (uint32_t user : users[s]) {
        ready[user] = std::max(ready[user], at);
        if (--waiting[user] == 0) release(user);
      }
    };
    const auto is_off_core = [&](StepKind kind, Instruction i) {
      return kind == StepKind::kCollective || kind == StepKind::kCopy || kind == StepKind::kHost ||
             kind == StepKind::kDone || (kind == StepKind::kCall && i.opcode() == Opcode::kAsyncStart);
    };
    // Starts an off-core step no earlier than `at`; gives when it ends.
    const auto run_off_core = [&](uint32_t s, double at) {
      const Step& step = plan.steps[s];
      const Instruction i = module_.instruction(step.name);
      StepTime& time = result.steps[s];
      time.start = at;
      time.on_core = false;
      if (step.kind == StepKind::kCollective) {
        GroupSpan span;
        TimeCollective(i, &time, &span);
        if (ahead[s]) time.start = 0;
        std::vector<size_t> lanes;
        for (const GroupSpan::Axis& axis : span.axes) lanes.push_back(std::min<size_t>(axis.axis, 2));
        if (span.slices > 1) lanes.push_back(3);
        if (!ahead[s]) {
          for (size_t lane : lanes) time.start = std::max(time.start, axis_free[lane]);
          for (size_t lane : lanes) axis_free[lane] = time.start + time.duration;
        }
        for (size_t lane : lanes) axis_busy[lane] += time.duration;
        return ahead[s] ? at : time.start + time.duration;
      }
      if (step.kind == StepKind::kCopy || step.kind == StepKind::kHost) {
        TimeCopy(i, &time);
        time.start = std::max(at, copy_free);
        copy_free = time.start + time.duration;
      } else if (step.kind == StepKind::kCall) {
        core_of_call_ = 0;
        waited_of_call_ = 0;
        TimeCall(i, &time);
        time.on_core = false;
      }
      return time.start + time.duration;
    };
    const auto run_on_core = [&](uint32_t s) {
      const Step& step = plan.steps[s];
      const Instruction i = module_.instruction(step.name);
      StepTime& time = result.steps[s];
      time.start = std::max(core, ready[s]);
      time.waited = time.start - core;
      double used = 0;
      if (step.kind == StepKind::kKernel) {
        TimeKernel(works[s], step, residency, credit, &used, &time);
        result.core_busy += time.duration;
        const double idle = std::max(time.duration - time.times[Index(Resource::kHbm)], 0.0) + time.waited;
        credit = std::min(credit - used + idle * HbmRate(), residency.free_bytes[s]);
      } else {
        core_of_call_ = 0;
        waited_of_call_ = 0;
        if (step.kind == StepKind::kLoop) {
          TimeLoop(i, &time);
        } else {
          TimeCall(i, &time);
        }
        result.core_busy += core_of_call_;
        result.waited += waited_of_call_;
        credit = 0;
      }
      result.waited += time.waited;
      result.order.push_back(s);
      core = time.start + time.duration;
      return core;
    };
    const auto drain_released = [&] {
      while (!released.empty()) {
        const uint32_t s = released.back();
        released.pop_back();
        if (is_off_core(plan.steps[s].kind, module_.instruction(plan.steps[s].name))) {
          finish(s, run_off_core(s, ready[s]));
        } else {
          later.push({ready[s], s});
        }
      }
    };

    if (in_order) {
      for (uint32_t s = 0; s < n; ++s) {
        const Step& step = plan.steps[s];
        const Instruction i = module_.instruction(step.name);
        double at = core;
        for (uint32_t input : step.inputs) {
          const StepTime& t = result.steps[input];
          at = std::max(at, t.start + t.duration);
        }
        if (!is_off_core(step.kind, i)) {
          ready[s] = at;
          end = std::max(end, run_on_core(s));
          continue;
        }
        // The start of an asynchronous step costs the core nothing; a synchronous one, and a done, holds it.
        if (HasTrait(i.opcode(), kStartsAsync)) at = core;
        const double ended = run_off_core(s, at);
        end = std::max(end, ended);
        if (!HasTrait(i.opcode(), kStartsAsync)) {
          result.waited += ended - core;
          result.steps[s].waited = ended - core;
          core = ended;
        }
      }
    } else {
      for (uint32_t s = 0; s < n; ++s) {
        if (waiting[s] == 0) release(s);
      }
      std::reverse(released.begin(), released.end());
      drain_released();
      while (!now.empty() || !later.empty()) {
        while (!later.empty() && (later.top().first <= core || now.empty())) {
          // Nothing else to do: the core waits for the earliest.
          if (later.top().first > core && !now.empty()) break;
          now.push(later.top().second);
          const bool waits = later.top().first > core;
          later.pop();
          if (waits) break;
        }
        const uint32_t s = now.top();
        now.pop();
        finish(s, run_on_core(s));
        drain_released();
      }
    }
    result.duration = std::max(end, core);
    result.waited += result.duration - core;
    // Collectives issued a trip ahead still need the links once in each trip.
    const double links = *std::max_element(axis_busy.begin(), axis_busy.end());
    if (links > result.duration) {
      result.waited += links - result.duration;
      result.duration = links;
    }
    for (const StepTime& time : result.steps) {
      Add(time.times, 1, &result.busy);
      result.flops += time.flops;
      result.hbm_bytes += time.hbm_bytes;
      result.wire_bytes += time.wire_bytes;
    }
    return result;
  }

  // ---- totals ----

  void CountRuns() {
    const std::vector<ComputationPlan>& plans = plan_.computations();
    const int64_t entry = plan_.PlanOf(module_.entry().id());
    if (entry < 0) return;
    result_.computations[entry].runs = 1;
    // Callers come after their callees.
    for (size_t c = plans.size(); c-- > 0;) {
      const ComputationTime& caller = result_.computations[c];
      for (size_t s = 0; s < plans[c].steps.size(); ++s) {
        const Step& step = plans[c].steps[s];
        if (step.kind != StepKind::kCall && step.kind != StepKind::kLoop) continue;
        const Instruction i = module_.instruction(step.name);
        const ComputationTime* longest = nullptr;
        for (Computation callee : i.called_computations()) {
          const int64_t at = plan_.PlanOf(callee.id());
          if (at < 0 || at >= static_cast<int64_t>(c)) continue;
          ComputationTime& time = result_.computations[at];
          if (i.opcode() == Opcode::kConditional) {
            if (longest == nullptr || time.duration > longest->duration) longest = &time;
            continue;
          }
          double runs = step.kind == StepKind::kLoop ? caller.steps[s].trips : 1;
          if (step.kind == StepKind::kLoop && callee == i.computation_attr(Attr::kCondition)) runs += 1;
          time.runs += caller.runs * runs;
        }
        if (longest != nullptr) const_cast<ComputationTime*>(longest)->runs += caller.runs;
      }
    }
  }

  void MakeRows() {
    for (size_t c = 0; c < plan_.computations().size(); ++c) {
      const ComputationTime& time = result_.computations[c];
      if (time.runs == 0) continue;
      for (size_t s = 0; s < time.steps.size(); ++s) {
        const Step& step = plan_.computations()[c].steps[s];
        if (step.kind == StepKind::kCall || step.kind == StepKind::kLoop) continue;
        const StepTime& t = time.steps[s];
        if (t.duration == 0 && t.waited == 0) continue;
        OpRow row;
        row.name = step.name;
        row.kind = step.kind;
        row.runs = time.runs;
        row.seconds = t.duration * time.runs;
        row.waited = t.waited * time.runs;
        row.bound = t.bound;
        row.flops = t.flops * time.runs;
        row.hbm_bytes = t.hbm_bytes * time.runs;
        row.wire_bytes = t.wire_bytes * time.runs;
        Add(t.times, time.runs, &row.times);
        result_.rows.push_back(row);
      }
    }
    std::stable_sort(result_.rows.begin(), result_.rows.end(),
                     [](const OpRow& a, const OpRow& b) { return a.seconds > b.seconds; });
  }

  const Module& module_;
  const KernelPlan& plan_;
  const SimulationOptions& options_;
  const Machine& machine_;
  const CostAnalysis costs_;
  std::vector<InstructionId> loop_of_body_;  // by ComputationId
  double core_of_call_ = 0;
  double waited_of_call_ = 0;
  Simulation result_;
};

}  // namespace

int64_t DevicesOf(const Module& module) {
  const int64_t replicas = std::max<int64_t>(module.header().replica_count, 1);
  const int64_t partitions = std::max<int64_t>(module.header().num_partitions, 1);
  int64_t devices = 0;
  constexpr int64_t kMost = int64_t{1} << 20;
  if (__builtin_mul_overflow(replicas, partitions, &devices)) return kMost;
  // Dumps of one partition do not always say how many there are; the groups of collectives do.
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!HasTrait(i.opcode(), kCollective)) continue;
      if (const std::optional<uint32_t> groups = i.payload(Attr::kReplicaGroups)) {
        devices = std::max(devices, CountReplicaGroups(module.context(), ListId(*groups)).devices);
      }
      for (int64_t d : i.list_attr(Attr::kSourceTargetPairs)) devices = std::max(devices, std::min(d, kMost) + 1);
    }
  }
  return std::min(devices, kMost);
}

Simulation Simulate(const Module& module, const KernelPlan& plan, const SimulationOptions& options) {
  return Simulator(module, plan, options).Run();
}

}  // namespace hlokit::tpu

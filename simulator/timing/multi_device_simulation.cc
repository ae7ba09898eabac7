// SPDX-License-Identifier: Apache-2.0
// Idea: all devices run the same steps, so one stack of frames walks the program once, and what differs is an array
// over the devices: the time at which each core is free. A step lasts as the Simulation says, times the device's speed
// and jitter; a collective begins, for the devices of a group, when the last of them is there and its links are free.
// Invariant: core_[d] is when device d has done the steps so far; it never decreases. Devices that are all alike are
// simulated as one.
// Cost: steps times devices, up to MultiDeviceOptions::max_events; beyond it the remaining iterations of loops are
// extrapolated, and counted.
#include "simulator/timing/multi_device_simulation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "simulator/timing/call_totals.h"
#include "simulator/timing/computation_schedule.h"
#include "simulator/timing/device_groups.h"
#include "simulator/timing/device_run_state.h"
#include "simulator/timing/device_speeds.h"
#include "simulator/timing/timeline_events.h"

namespace hlokit::tpu {

namespace {

class MultiDeviceSimulator {
 public:
  MultiDeviceSimulator(const Module& module, const KernelPlan& plan, const SimulationOptions& options,
                       const Simulation& simulation, const MultiDeviceOptions& multi_device_options)
      : module_(module),
        plan_(plan),
        simulation_(simulation),
        multi_device_options_(multi_device_options),
        table_(module, options),
        alike_(options.variation.empty()),
        n_(alike_ ? 1 : static_cast<size_t>(table_.devices())),
        speeds_(options.variation, n_),
        facts_(plan.computations().size()),
        events_(plan, simulation, multi_device_options, frames_, n_),
        waits_(n_) {
    result_.devices = table_.devices();
    core_.assign(n_, 0);
    sums_.shares.resize(n_);
  }

  DeviceTimelines Run() {
    const int64_t entry = plan_.PlanOf(module_.entry().id());
    if (entry >= 0) {
      if (alike_) events_.ShowModule(0, simulation_.device_seconds, simulation_.step_seconds);
      Push(static_cast<size_t>(entry), kNone, 0, 0);
      while (!frames_.empty()) {
        Frame& frame = *frames_.back();
        if (frame.next < plan_.computations()[frame.plan].steps.size()) {
          RunStep(&frame, static_cast<uint32_t>(frame.next++));
        } else {
          EndIteration();
        }
      }
    }
    for (size_t d = 0; d < n_; ++d) result_.seconds = std::max(result_.seconds, core_[d]);
    for (size_t d = 0; d < n_; ++d) {
      sums_.shares[d].idle = result_.seconds - core_[d];
      waits_.MoveTo(d, &sums_.shares[d]);
      if (!alike_) events_.ShowModule(d, core_[d], result_.seconds);
    }
    for (CollectiveTotals& t : sums_.kinds) {
      for (double* mean : {&t.runs, &t.bytes, &t.seconds, &t.ideal, &t.exposed, &t.sync}) {
        *mean /= static_cast<double>(n_);
      }
    }
    std::stable_sort(sums_.kinds.begin(), sums_.kinds.end(),
                     [](const CollectiveTotals& a, const CollectiveTotals& b) { return a.seconds > b.seconds; });
    result_.shares = std::move(sums_.shares);
    result_.collectives = std::move(sums_.kinds);
    return std::move(result_);
  }

 private:
  double Factor(size_t d) const { return speeds_.Factor(d, draw_); }

  // ---- properties of a plan ----

  const PlanFacts& FactsOf(size_t plan) {
    PlanFacts& facts = facts_[plan];
    if (facts.known) return facts;
    facts.known = true;
    const std::vector<ScheduleUnit>& steps = plan_.computations()[plan].steps;
    facts.off_core.assign(steps.size(), 0);
    facts.starts.assign(steps.size(), 0);
    facts.last_use.assign(steps.size(), 0);
    facts.groups.assign(steps.size(), nullptr);
    facts.kind.assign(steps.size(), kNone);
    for (uint32_t s = 0; s < steps.size(); ++s) {
      const Instruction root = module_.instruction(steps[s].root);
      for (uint32_t input : steps[s].inputs) facts.last_use[input] = s;
      facts.off_core[s] = IsOffCore(steps[s], root) ? 1 : 0;
      facts.starts[s] = steps[s].starts ? 1 : 0;
      if (steps[s].kind != ScheduleUnitKind::kCollective) continue;
      const Instruction collective = module_.instruction(steps[s].collective);
      facts.kind[s] = KindOf(NameOfCollective(collective, steps[s].scatters));
      if (!alike_) facts.groups[s] = &table_.GroupsOf(collective);
    }
    return facts;
  }

  uint32_t KindOf(std::string_view text) {
    for (size_t k = 0; k < sums_.kinds.size(); ++k) {
      if (sums_.kinds[k].kind == text) return static_cast<uint32_t>(k);
    }
    sums_.kinds.push_back({text});
    return static_cast<uint32_t>(sums_.kinds.size() - 1);
  }

  // ---- frames ----

  Frame* Push(size_t plan, uint32_t caller_step, double iterations, double condition) {
    frames_.push_back(std::make_unique<Frame>());
    Frame& frame = *frames_.back();
    frame.plan = plan;
    frame.caller_step = caller_step;
    frame.loop = iterations > 0;
    frame.iterations_left = frame.loop ? iterations - 1 : 0;
    frame.condition = condition;
    frame.entered.assign(core_.begin(),
                         core_.begin() + static_cast<std::ptrdiff_t>(frame.loop ? n_ : events_.devices()));
    frame.off.resize(plan_.computations()[plan].steps.size());
    // Registers the kinds of collectives first, so that the saved sums contain each kind.
    FactsOf(plan);
    if (frame.loop) {
      ++loops_in_progress_;
      frame.at_entry = std::make_unique<RunTotals>(sums_);
    } else if (caller_step != kNone && !calls_.Contains(frames_[frames_.size() - 2]->plan, caller_step)) {
      frame.calls_mean = std::make_unique<MeanTotals>(MeanOf(sums_, core_));
    }
    CountValues();
    if (frame.loop) RunConditions(frame);
    BeginIteration(&frame);
    return &frame;
  }

  void BeginIteration(Frame* frame) {
    frame->next = 0;
    for (std::vector<double>& link : frame->link_free) link.clear();
    frame->copy_free.clear();
    frame->host_free.clear();
    frame->tail.clear();
    for (std::unique_ptr<AsyncState>& off : frame->off) Drop(&off);
  }

  void Drop(std::unique_ptr<AsyncState>* off) {
    if (*off == nullptr) return;
    off->reset();
    --in_flight_;
  }

  // Updates the most numbers that are kept at one time: of calls, of the devices at the entry of loops, and of those of
  // transfers in flight.
  void CountValues() {
    const size_t of_loop = 1 + std::size(kDeviceTimeParts), of_state = 4;
    result_.peak_values =
        std::max(result_.peak_values, calls_.values() + n_ * (of_loop * loops_in_progress_ + of_state * in_flight_));
  }

  void RunConditions(const Frame& frame) {
    if (frame.condition == 0) return;
    for (size_t d = 0; d < n_; ++d) Compute(d, frame.condition * Factor(d));
  }

  void Compute(size_t d, double seconds) {
    sums_.shares[d].compute += seconds;
    core_[d] += seconds;
  }

  void EndIteration() {
    Frame& frame = *frames_.back();
    // Waits for off-core steps in flight.
    for (size_t d = 0; d < n_ && !frame.tail.empty(); ++d) {
      const double end = frame.tail_state.end[d];
      if (end > core_[d]) WaitFor(d, frame.tail_state, CauseOf(frame, frame.tail[d]), end);
    }
    frame.iterations_done += 1;
    events_.Count();
    if (frame.loop && frame.iterations_left >= 1) {
      const bool shows = events_.devices() > 0 && frame.suppressed_from < 0;
      const bool more_to_show = shows && events_.HasRoomFor(plan_.computations()[frame.plan].steps.size());
      if (shows && !more_to_show) {
        frame.suppressed_from = core_[0];
        frame.suppressed_iterations = frame.iterations_left;
      }
      // Iterations of homogeneous devices, and of an empty body, are identical.
      const bool empty = plan_.computations()[frame.plan].steps.empty();
      const bool done = alike_ ? !more_to_show : empty || result_.events > multi_device_options_.max_events;
      if (!done) {
        frame.iterations_left -= 1;
        RunConditions(frame);
        BeginIteration(&frame);
        return;
      }
      SkipIterations(&frame);
    }
    if (frame.loop) RunConditions(frame);
    Pop();
  }

  // Extrapolates the remaining iterations from those that ran.
  void SkipIterations(Frame* frame) {
    const double more = frame->iterations_left / frame->iterations_done;
    const RunTotals& before = *frame->at_entry;
    if (!alike_) result_.scaled = true;
    for (size_t d = 0; d < n_; ++d) {
      Extrapolate(before.shares[d], more, &sums_.shares[d]);
      core_[d] += (core_[d] - frame->entered[d]) * more;
    }
    for (size_t k = 0; k < sums_.kinds.size(); ++k) {
      Extrapolate(k < before.kinds.size() ? before.kinds[k] : CollectiveTotals(), more, &sums_.kinds[k]);
    }
    frame->iterations_left = 0;
  }

  void Pop() {
    const std::unique_ptr<Frame> frame = std::move(frames_.back());
    frames_.pop_back();
    for (std::unique_ptr<AsyncState>& off : frame->off) Drop(&off);
    if (frame->loop) --loops_in_progress_;
    if (frame->suppressed_from >= 0) events_.ShowSkipped(*frame, core_[0]);
    if (frame->caller_step == kNone) return;
    const Frame& caller = *frames_.back();
    if (frame->loop) {
      calls_.Remember(caller.plan, frame->caller_step, MeanOf(*frame->at_entry, frame->entered), MeanOf(sums_, core_));
    } else if (frame->calls_mean != nullptr) {
      calls_.Remember(caller.plan, frame->caller_step, *frame->calls_mean, MeanOf(sums_, core_));
    }
    if (alike_) return;
    for (size_t d = 0; d < events_.devices(); ++d) {
      events_.ShowStep(d, caller, frame->caller_step, frame->entered[d], core_[d] - frame->entered[d]);
    }
  }

  // ---- calls that ran before ----

  // Adds what a call or loop added before, instead of running it: on homogeneous devices it takes the same time, on
  // others, with more events than are simulated, a similar one. Returns false if it must run. Calls of calls would run
  // exponentially often.
  bool RunsAsBefore(const Frame& frame, uint32_t s, bool showing) {
    if (alike_ ? showing && events_.Showing() : result_.events <= multi_device_options_.max_events) return false;
    if (!calls_.Repeat(frame.plan, s, &sums_, &core_)) return false;
    if (!alike_) result_.scaled = true;
    return true;
  }

  // ---- stalls ----

  // Stalls device `d` until `until` for the results of an off-core step. `kind`: of the collective that it is or
  // completes.
  void WaitFor(size_t d, const AsyncState& off, uint32_t kind, double until) {
    const double from = core_[d];
    if (until <= from) return;
    core_[d] = until;
    DeviceTimeBreakdown& share = sums_.shares[d];
    if (kind == kNone) {
      share.other += until - from;
      return;
    }
    const double sync = off.SyncPart(d, from, until);
    share.sync += sync;
    waits_.Add(d, off.last[d], sync);
    share.exposed += until - from - sync;
    sums_.kinds[kind].sync += sync;
    sums_.kinds[kind].exposed += until - from - sync;
  }

  // Returns the kind of the collective that `s` is or waits for, or kNone.
  uint32_t CauseOf(const Frame& frame, uint32_t s) const {
    const PlanFacts& facts = facts_[frame.plan];
    const std::vector<ScheduleUnit>& steps = plan_.computations()[frame.plan].steps;
    while (steps[s].kind == ScheduleUnitKind::kDone && !steps[s].inputs.empty()) s = steps[s].inputs[0];
    return facts.kind[s];
  }

  // Returns the time at which the off-core inputs of `s` are ready, and the latest of them.
  double Ready(const Frame& frame, uint32_t s, size_t d, uint32_t* last) const {
    double ready = -1;
    *last = kNone;
    const PlanFacts& facts = facts_[frame.plan];
    for (uint32_t input : plan_.computations()[frame.plan].steps[s].inputs) {
      if (facts.off_core[input] == 0 || frame.off[input] == nullptr) continue;
      const double end = frame.off[input]->end[d];
      if (end > ready) {
        ready = end;
        *last = input;
      }
    }
    return ready;
  }

  // ---- steps ----

  void RunStep(Frame* frame, uint32_t s) {
    ++draw_;
    events_.Count();
    result_.events += static_cast<double>(n_);
    const PlanFacts& facts = facts_[frame->plan];
    const ScheduleUnit& step = plan_.computations()[frame->plan].steps[s];
    const StepTime& time = simulation_.computations[frame->plan].steps[s];
    bool waits = false;
    for (uint32_t input : step.inputs) waits |= facts.off_core[input] != 0;
    if (facts.off_core[s] != 0) {
      RunOffCore(frame, s);
      if (facts.last_use[s] == 0) Drop(&frame->off[s]);
    } else {
      for (size_t d = 0; d < n_ && waits; ++d) {
        uint32_t last = kNone;
        const double ready = Ready(*frame, s, d, &last);
        if (ready <= core_[d]) continue;
        const uint32_t kind = CauseOf(*frame, last);
        events_.ShowWait(d, *frame, s, last, kind != kNone, core_[d], ready - core_[d]);
        WaitFor(d, *frame->off[last], kind, ready);
      }
      if (!Enter(*frame, s)) {
        for (size_t d = 0; d < n_ && time.duration > 0; ++d) {
          const double from = core_[d];
          Compute(d, time.duration * Factor(d));
          events_.ShowStep(d, *frame, s, from, core_[d] - from);
        }
      }
    }
    // Drops the state of inputs without later uses.
    for (uint32_t input : step.inputs) {
      if (facts.off_core[input] != 0 && facts.last_use[input] == s) Drop(&frame->off[input]);
    }
  }

  // Pushes a frame for the callee of a loop or call. Returns false if there is none or it is unknown.
  bool Enter(const Frame& frame, uint32_t s) {
    const ScheduleUnit& step = plan_.computations()[frame.plan].steps[s];
    if (step.kind != ScheduleUnitKind::kLoop && step.kind != ScheduleUnitKind::kCall) return false;
    const StepTime& time = simulation_.computations[frame.plan].steps[s];
    const Instruction i = module_.instruction(step.root);
    const bool showing = events_.HasRoomFor(1);
    // On homogeneous devices the time of a loop or call is known before its steps run.
    if (alike_) {
      for (size_t d = 0; d < events_.devices(); ++d) events_.ShowStep(d, frame, s, core_[d], time.duration);
    }
    if (events_.devices() > 0 && !showing) events_.SuppressInnermostLoop(core_[0]);
    if (RunsAsBefore(frame, s, showing)) return true;
    if (step.kind == ScheduleUnitKind::kLoop) {
      const int64_t body = PlanOf(i.computation_attr(Attr::kBody));
      const int64_t condition = PlanOf(i.computation_attr(Attr::kCondition));
      if (body < 0 || time.trip_count < 1) return false;
      Push(static_cast<size_t>(body), s, time.trip_count,
           condition < 0 ? 0 : simulation_.computations[static_cast<size_t>(condition)].duration);
      return true;
    }
    const int64_t callee = time.branch.valid() ? plan_.PlanOf(time.branch) : -1;
    if (callee < 0) return false;
    Push(static_cast<size_t>(callee), s, 0, 0);
    return true;
  }

  int64_t PlanOf(Computation computation) const { return computation.valid() ? plan_.PlanOf(computation.id()) : -1; }

  // Starts a transfer on each device when the link to the host, or another DMA engine, is free.
  void Transfer(Frame* frame, uint32_t s, const StepTime& time, AsyncState* off) {
    std::vector<double>& free = OverHostLink(time) ? frame->host_free : frame->copy_free;
    if (free.empty()) free.assign(n_, -1);
    for (size_t d = 0; d < n_; ++d) {
      const double start = std::max(off->issue[d], free[d]);
      off->end[d] = start + time.duration;
      free[d] = start + OccupancyOf(time);
      events_.ShowStep(d, *frame, s, start, time.duration, off->issue[d]);
    }
  }

  void RunOffCore(Frame* frame, uint32_t s) {
    const ScheduleUnit& step = plan_.computations()[frame->plan].steps[s];
    const StepTime& time = simulation_.computations[frame->plan].steps[s];
    const PlanFacts& facts = facts_[frame->plan];
    frame->off[s] = std::make_unique<AsyncState>();
    AsyncState& off = *frame->off[s];
    ++in_flight_;
    CountValues();
    off.issue.resize(n_);
    const bool holds = facts.starts[s] == 0;
    for (size_t d = 0; d < n_; ++d) {
      uint32_t last = kNone;
      const double ready = facts.starts[s] != 0 ? -1 : Ready(*frame, s, d, &last);
      off.issue[d] = std::max(core_[d], ready);
    }
    off.arrive = off.issue;
    off.end = off.issue;
    off.last.assign(n_, kNone);
    switch (step.kind) {
      case ScheduleUnitKind::kCollective:
        Meet(frame, s, time, &off);
        break;
      case ScheduleUnitKind::kCopy:
      case ScheduleUnitKind::kHost:
        // The run before has started a cross-program prefetch.
        if (!IsCrossProgramPrefetch(module_.instruction(step.root))) Transfer(frame, s, time, &off);
        break;
      case ScheduleUnitKind::kCall:
        if (OverHostLink(time)) Transfer(frame, s, time, &off);
        for (size_t d = 0; d < n_ && !OverHostLink(time); ++d) {
          off.end[d] = off.issue[d] + time.duration * Factor(d);
          events_.ShowStep(d, *frame, s, off.issue[d], off.end[d] - off.issue[d]);
        }
        break;
      case ScheduleUnitKind::kDone: {
        // Attributes the stall to the operation that the done completes.
        if (step.inputs.empty() || frame->off[step.inputs[0]] == nullptr) break;
        const AsyncState& started = *frame->off[step.inputs[0]];
        off.issue = started.issue;
        off.arrive = started.arrive;
        off.last = started.last;
        break;
      }
      case ScheduleUnitKind::kKernel:
      case ScheduleUnitKind::kLoop:
        break;
    }
    if (frame->tail.empty()) {
      frame->tail.assign(n_, s);
      frame->tail_state = off;
    }
    const uint32_t kind = CauseOf(*frame, s);
    for (size_t d = 0; d < n_; ++d) {
      if (time.kernel_time > 0 && holds) {
        // The work of a fusion while its collective is in flight.
        const double kernel = time.kernel_time * Factor(d);
        events_.Show(
            d, {.line = TimelineLine::kOps, .start = core_[d], .duration = kernel, .step = &time, .name = step.root});
        Compute(d, kernel);
        off.end[d] = std::max(off.end[d], core_[d]);
      }
      if (holds && off.end[d] > core_[d]) {
        events_.ShowWait(d, *frame, s, s, kind != kNone, core_[d], off.end[d] - core_[d]);
        WaitFor(d, off, kind, off.end[d]);
      }
      if (off.end[d] >= frame->tail_state.end[d]) {
        frame->tail[d] = s;
        frame->tail_state.CopyDevice(d, off);
      }
    }
  }

  // Runs a collective, which begins when all devices of a group have arrived and the links it uses are free.
  void Meet(Frame* frame, uint32_t s, const StepTime& time, AsyncState* off) {
    CollectiveTotals& totals = sums_.kinds[facts_[frame->plan].kind[s]];
    for (size_t link = 0; link < kLinkGroups; ++link) {
      if ((time.link_mask >> link & 1) && frame->link_free[link].empty()) frame->link_free[link].assign(n_, -1);
    }
    std::vector<double> busy_until(n_, -1);
    const DeviceGroupSet* set = facts_[frame->plan].groups[s];
    if (set == nullptr) {
      const uint32_t self = 0;
      SynchronizeGroup(*frame, s, time, &self, 1, 1, off, &busy_until);
    } else {
      for (const std::vector<uint32_t>& group : set->groups) {
        SynchronizeGroup(*frame, s, time, group.data(), group.size(), 1, off, &busy_until);
      }
      for (const std::pair<uint32_t, uint32_t>& route : set->routes) {
        const uint32_t ends[] = {route.second, route.first};
        SynchronizeGroup(*frame, s, time, ends, route.first == route.second ? 1 : 2, 0.5, off, &busy_until);
      }
    }
    for (size_t link = 0; link < kLinkGroups; ++link) {
      if (!(time.link_mask >> link & 1)) continue;
      for (size_t d = 0; d < n_; ++d) frame->link_free[link][d] = std::max(frame->link_free[link][d], busy_until[d]);
    }
    totals.runs += static_cast<double>(n_);
    totals.bytes += time.wire_bytes * static_cast<double>(n_);
    totals.seconds += time.link_time * static_cast<double>(n_);
    totals.ideal += time.ideal * static_cast<double>(n_);
  }

  // Runs a collective for one group. `part`: fraction of the time per member; devices of a permute both send and
  // receive.
  void SynchronizeGroup(const Frame& frame, uint32_t s, const StepTime& time, const uint32_t* members, size_t count,
                        double part, AsyncState* off, std::vector<double>* busy_until) {
    double arrive = 0;
    uint32_t last = members[0];
    for (size_t k = 0; k < count; ++k) {
      if (off->issue[members[k]] > off->issue[last]) last = members[k];
    }
    arrive = std::max(arrive, off->issue[last]);
    double start = arrive;
    for (size_t link = 0; link < kLinkGroups; ++link) {
      if (!(time.link_mask >> link & 1)) continue;
      for (size_t k = 0; k < count; ++k) start = std::max(start, frame.link_free[link][members[k]]);
    }
    const double done = start + time.link_time;
    for (size_t k = 0; k < count; ++k) {
      const size_t d = members[k];
      if (off->last[d] == kNone || arrive > off->arrive[d]) off->last[d] = last;
      off->arrive[d] = std::max(off->arrive[d], arrive);
      off->end[d] = std::max(off->end[d], done);
      (*busy_until)[d] = done;
      sums_.shares[d].communication += time.link_time * part;
      // For a permute shows the receiving device only.
      if (part == 1 || k == 0) events_.ShowStep(d, frame, s, start, time.link_time, off->issue[d]);
    }
  }

  const Module& module_;
  const KernelPlan& plan_;
  const Simulation& simulation_;
  const MultiDeviceOptions& multi_device_options_;
  DeviceGroupTable table_;
  const bool alike_;
  const size_t n_;  // simulated devices
  const DeviceSpeeds speeds_;
  CallTotals calls_;

  uint64_t draw_ = 0;
  std::vector<double> core_;  // by device: when it is free
  std::vector<PlanFacts> facts_;
  std::vector<std::unique_ptr<Frame>> frames_;
  TimelineEvents events_;
  size_t loops_in_progress_ = 0;
  size_t in_flight_ = 0;  // off-core steps with a state
  RunTotals sums_;
  WaitsByDevice waits_;
  DeviceTimelines result_;
};

}  // namespace

DeviceTimelines SimulateDevices(const Module& module, const KernelPlan& plan, const SimulationOptions& options,
                                const Simulation& simulation, const MultiDeviceOptions& multi_device_options) {
  return MultiDeviceSimulator(module, plan, options, simulation, multi_device_options).Run();
}

}  // namespace hlokit::tpu

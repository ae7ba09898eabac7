// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/timing/multi_device_simulation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "interp/tpu/timing/computation_schedule.h"
#include "interp/tpu/timing/device_groups.h"
#include "interp/tpu/timing/device_run_state.h"
#include "interp/tpu/timing/device_speeds.h"

namespace hlokit::tpu {

namespace {

constexpr size_t kMaxDevicesWithWaits = 1024;  // up to which each device's waits are kept by device

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
        facts_(plan.computations().size()) {
    result_.devices = table_.devices();
    shown_ = multi_device_options.show
                 ? std::min<size_t>(static_cast<size_t>(std::max<int64_t>(multi_device_options.shown, 0)), n_)
                 : 0;
    core_.assign(n_, 0);
    sums_.shares.resize(n_);
  }

  DeviceTimelines Run() {
    const int64_t entry = plan_.PlanOf(module_.entry().id());
    if (entry >= 0) {
      if (alike_) ShowModule(0, simulation_.device_seconds, simulation_.step_seconds);
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
      if (!alike_) ShowModule(d, core_[d], result_.seconds);
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
    frame.entered = core_;
    frame.off.resize(plan_.computations()[plan].steps.size());
    // Registers the kinds of collectives first, so that the saved sums contain each kind.
    FactsOf(plan);
    const bool again = caller_step != kNone && added_.contains(KeyOf(frames_[frames_.size() - 2]->plan, caller_step));
    if (frame.loop || (caller_step != kNone && !again)) {
      frame.at_entry = std::make_unique<RunTotals>(frame.loop ? sums_ : sums_.WithoutWaits());
    }
    if (frame.loop) RunConditions(frame);
    BeginIteration(&frame);
    return &frame;
  }

  void BeginIteration(Frame* frame) {
    frame->next = 0;
    for (std::vector<double>& link : frame->link_free) link.clear();
    frame->copy_free.clear();
    frame->host_free.clear();
    frame->tail_end.clear();
    frame->tail.clear();
    for (std::unique_ptr<AsyncState>& off : frame->off) off.reset();
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
      if (frame.tail_end[d] > core_[d]) WaitFor(frame, d, frame.tail[d], frame.tail_end[d]);
    }
    frame.iterations_done += 1;
    ++events_shown_;
    if (frame.loop && frame.iterations_left >= 1) {
      const bool shows = shown_ > 0 && frame.suppressed_from < 0;
      const bool more_to_show =
          shows && events_shown_ + plan_.computations()[frame.plan].steps.size() <= multi_device_options_.max_shown;
      if (shows && !more_to_show) {
        frame.suppressed_from = core_[0];
        frame.suppressed_iterations = frame.iterations_left;
      }
      // Iterations of homogeneous devices are identical.
      const bool done = alike_ ? !more_to_show : result_.events > multi_device_options_.max_events;
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
    if (frame->suppressed_from >= 0) {
      Show(0, {.start = frame->suppressed_from,
               .duration = core_[0] - frame->suppressed_from,
               .skipped_iterations = static_cast<int64_t>(std::min(frame->suppressed_iterations, 9e18))});
    }
    if (frame->caller_step == kNone) return;
    const Frame& caller = *frames_.back();
    if (frame->at_entry != nullptr) Remember(caller.plan, *frame);
    if (alike_) return;
    for (size_t d = 0; d < shown_; ++d) {
      ShowStep(d, caller, frame->caller_step, frame->entered[d], core_[d] - frame->entered[d]);
    }
  }

  // ---- calls that ran before ----

  static uint64_t KeyOf(size_t plan, uint32_t step) { return uint64_t{plan} << 32 | step; }

  // Keeps what a call or loop added, for when the same one runs again.
  void Remember(size_t caller, const Frame& frame) {
    Added& added = added_[KeyOf(caller, frame.caller_step)];
    added.totals = sums_.Since(*frame.at_entry);
    added.seconds.resize(n_);
    for (size_t d = 0; d < n_; ++d) added.seconds[d] = core_[d] - frame.entered[d];
  }

  // Adds what a call or loop added before, instead of running it: on homogeneous devices it takes the same time, on
  // others, with more events than are simulated, a similar one. Returns false if it must run. Calls of calls would run
  // exponentially often.
  bool RunsAsBefore(const Frame& frame, uint32_t s, bool showing) {
    if (alike_ ? shown_ > 0 && showing && Showing() : result_.events <= multi_device_options_.max_events) return false;
    const auto found = added_.find(KeyOf(frame.plan, s));
    if (found == added_.end()) return false;
    if (!alike_) result_.scaled = true;
    sums_.Add(found->second.totals);
    for (size_t d = 0; d < n_; ++d) core_[d] += found->second.seconds[d];
    return true;
  }

  // ---- stalls ----

  // Stalls device `d` until `until` for the results of off-core step `s`.
  void WaitFor(const Frame& frame, size_t d, uint32_t s, double until) {
    const double from = core_[d];
    if (until <= from) return;
    core_[d] = until;
    const AsyncState* off = s == kNone ? nullptr : frame.off[s].get();
    const uint32_t kind = s == kNone ? kNone : CauseOf(frame, s);
    DeviceTimeBreakdown& share = sums_.shares[d];
    if (off == nullptr || kind == kNone) {
      share.other += until - from;
      return;
    }
    const double sync = SyncPart(*off, d, from, until);
    share.sync += sync;
    if (sync > 0 && off->last[d] != kNone && off->last[d] != d && n_ <= kMaxDevicesWithWaits) {
      share.sync_for[off->last[d]] += sync;
    }
    share.exposed += until - from - sync;
    sums_.kinds[kind].sync += sync;
    sums_.kinds[kind].exposed += until - from - sync;
  }

  // Returns the part of a stall of device `d` in which it waits for other devices to enter the collective.
  static double SyncPart(const AsyncState& off, size_t d, double from, double until) {
    return std::clamp(off.arrive[d] - std::max(from, off.issue[d]), 0.0, until - from);
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
    ++events_shown_;
    result_.events += static_cast<double>(n_);
    const PlanFacts& facts = facts_[frame->plan];
    const ScheduleUnit& step = plan_.computations()[frame->plan].steps[s];
    const StepTime& time = simulation_.computations[frame->plan].steps[s];
    bool waits = false;
    for (uint32_t input : step.inputs) waits |= facts.off_core[input] != 0;
    if (facts.off_core[s] != 0) {
      RunOffCore(frame, s);
    } else {
      for (size_t d = 0; d < n_ && waits; ++d) {
        uint32_t last = kNone;
        const double ready = Ready(*frame, s, d, &last);
        if (ready <= core_[d]) continue;
        ShowWait(d, *frame, s, last, core_[d], ready - core_[d]);
        WaitFor(*frame, d, last, ready);
      }
      if (!Enter(*frame, s)) {
        for (size_t d = 0; d < n_ && time.duration > 0; ++d) {
          const double from = core_[d];
          Compute(d, time.duration * Factor(d));
          ShowStep(d, *frame, s, from, core_[d] - from);
        }
      }
    }
    // Drops the state of inputs without later uses.
    for (uint32_t input : step.inputs) {
      if (facts.off_core[input] != 0 && facts.last_use[input] == s) frame->off[input].reset();
    }
  }

  // Pushes a frame for the callee of a loop or call. Returns false if there is none or it is unknown.
  bool Enter(const Frame& frame, uint32_t s) {
    const ScheduleUnit& step = plan_.computations()[frame.plan].steps[s];
    if (step.kind != ScheduleUnitKind::kLoop && step.kind != ScheduleUnitKind::kCall) return false;
    const StepTime& time = simulation_.computations[frame.plan].steps[s];
    const Instruction i = module_.instruction(step.root);
    const bool showing = shown_ > 0 && events_shown_ < multi_device_options_.max_shown;
    // On homogeneous devices the time of a loop or call is known before its steps run.
    if (alike_) {
      for (size_t d = 0; d < shown_; ++d) ShowStep(d, frame, s, core_[d], time.duration);
    }
    if (shown_ > 0 && !showing) SuppressEvents();
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
      ShowStep(d, *frame, s, start, time.duration, off->issue[d]);
    }
  }

  void RunOffCore(Frame* frame, uint32_t s) {
    const ScheduleUnit& step = plan_.computations()[frame->plan].steps[s];
    const StepTime& time = simulation_.computations[frame->plan].steps[s];
    const PlanFacts& facts = facts_[frame->plan];
    frame->off[s] = std::make_unique<AsyncState>();
    AsyncState& off = *frame->off[s];
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
          ShowStep(d, *frame, s, off.issue[d], off.end[d] - off.issue[d]);
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
      frame->tail_end.assign(n_, -1);
      frame->tail.assign(n_, kNone);
    }
    for (size_t d = 0; d < n_; ++d) {
      if (time.kernel_time > 0 && holds) {
        // The work of a fusion while its collective is in flight.
        const double kernel = time.kernel_time * Factor(d);
        Show(d, {.line = TimelineLine::kOps, .start = core_[d], .duration = kernel, .step = &time, .name = step.root});
        Compute(d, kernel);
        off.end[d] = std::max(off.end[d], core_[d]);
      }
      if (holds && off.end[d] > core_[d]) {
        ShowWait(d, *frame, s, s, core_[d], off.end[d] - core_[d]);
        WaitFor(*frame, d, s, off.end[d]);
      }
      if (off.end[d] >= frame->tail_end[d]) {
        frame->tail_end[d] = off.end[d];
        frame->tail[d] = s;
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
      if (part == 1 || k == 0) ShowStep(d, frame, s, start, time.link_time, off->issue[d]);
    }
  }

  // ---- events ----

  // Suppresses events of the innermost loop's further iterations.
  void SuppressEvents() {
    for (size_t k = frames_.size(); k-- > 0;) {
      Frame& frame = *frames_[k];
      if (!frame.loop) continue;
      if (frame.suppressed_from < 0) {
        frame.suppressed_from = core_[0];
        frame.suppressed_iterations = frame.iterations_left + 1;
      }
      return;
    }
  }

  bool Showing() const {
    for (const std::unique_ptr<Frame>& frame : frames_) {
      if (frame->suppressed_from >= 0) return false;
    }
    return true;
  }

  void Show(size_t d, TimelineEvent event) {
    if (d >= shown_ || !Showing()) return;
    event.device = static_cast<int64_t>(d);
    multi_device_options_.show(event);
  }

  void ShowModule(size_t d, double device, double step) {
    Show(d, {.line = TimelineLine::kSteps, .duration = step});
    Show(d, {.line = TimelineLine::kModules, .duration = device});
  }

  void ShowStep(size_t d, const Frame& frame, uint32_t s, double start, double duration, double issued = -1) {
    if (d >= shown_ || duration <= 0) return;
    const StepTime& time = simulation_.computations[frame.plan].steps[s];
    Show(d, {.line = time.on_core ? TimelineLine::kOps : TimelineLine::kAsyncOps,
             .start = start,
             .duration = duration,
             .step = &time,
             .name = plan_.computations()[frame.plan].steps[s].root,
             .issued = issued});
  }

  void ShowWait(size_t d, const Frame& frame, uint32_t s, uint32_t last, double start, double duration) {
    if (d >= shown_) return;
    const std::vector<ScheduleUnit>& steps = plan_.computations()[frame.plan].steps;
    const AsyncState* off = last == kNone ? nullptr : frame.off[last].get();
    double sync = 0;
    int64_t slowest = -1;
    if (off != nullptr && off->last[d] != kNone && CauseOf(frame, last) != kNone) {
      sync = SyncPart(*off, d, start, start + duration);
      if (sync > 0 && off->last[d] != d) slowest = off->last[d];
    }
    if (last == s && steps[s].kind == ScheduleUnitKind::kDone && !steps[s].inputs.empty()) last = steps[s].inputs[0];
    Show(d, {.line = TimelineLine::kWaits,
             .start = start,
             .duration = duration,
             .name = steps[s].root,
             .waited_for = last == kNone ? InstructionId() : steps[last].root,
             .sync = sync,
             .slowest = slowest});
  }

  const Module& module_;
  const KernelPlan& plan_;
  const Simulation& simulation_;
  const MultiDeviceOptions& multi_device_options_;
  DeviceGroupTable table_;
  const bool alike_;
  const size_t n_;  // simulated devices
  const DeviceSpeeds speeds_;
  // What a call or loop added when it ran last.
  struct Added {
    RunTotals totals;
    std::vector<double> seconds;  // by device
  };
  absl::flat_hash_map<uint64_t, Added> added_;  // by plan and step

  size_t shown_ = 0;         // devices with events
  size_t events_shown_ = 0;  // steps and iterations on each, including those without an event
  uint64_t draw_ = 0;
  std::vector<double> core_;  // by device: when it is free
  std::vector<PlanFacts> facts_;
  std::vector<std::unique_ptr<Frame>> frames_;
  RunTotals sums_;
  DeviceTimelines result_;
};

}  // namespace

DeviceTimelines SimulateDevices(const Module& module, const KernelPlan& plan, const SimulationOptions& options,
                                const Simulation& simulation, const MultiDeviceOptions& multi_device_options) {
  return MultiDeviceSimulator(module, plan, options, simulation, multi_device_options).Run();
}

}  // namespace hlokit::tpu

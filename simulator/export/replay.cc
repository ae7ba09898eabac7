// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/replay.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "ir/core/str_cat.h"
#include "simulator/export/host_plan_recorder.h"
#include "simulator/export/thread_points.h"

namespace hlokit::tpu {

namespace {

using runtime::Profile;
using runtime::TraceEvent;

constexpr double kUnknown = -1;

// State of a thread's replay.
struct Thread {
  std::vector<ThreadPoint> points;
  size_t next = 0;  // the next point
  double now = 0;   // time of the previous point
  bool begun = false;
  size_t waiting = ThreadPoint::kNone;  // the outermost wait in progress
  double wait_ends = 0;
};

// The executions of a device, in the order of their calls.
struct Queue {
  std::vector<size_t> executions;
  size_t next = 0;
  double free = 0;
};

// Orders "replica 2" before "replica 10".
bool NameBefore(std::string_view a, std::string_view b) {
  const auto split = [](std::string_view name) {
    size_t digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
    return std::make_tuple(name.substr(0, digits), name.size() - digits, name.substr(digits));
  };
  return split(a) < split(b);
}

class Replayer {
 public:
  Replayer(const Profile& profile, const ReplayOptions& options)
      : profile_(profile), options_(options), recorder_(profile) {}

  Replay Run() {
    IdentifyProgramThread();
    ReadThreads();
    Simulate();
    for (const Thread& thread : threads_) result_.seconds = std::max(result_.seconds, thread.now);
    for (const auto& [device, queue] : queues_) result_.seconds = std::max(result_.seconds, queue.free);
    if (options_.times != HostTimes::kRecorded) FindLoader();
    std::vector<double> on_device(options_.seconds_of.begin(), options_.seconds_of.end());
    recorder_.Finish(on_device, &result_);
    MakeThreads();
    return std::move(result_);
  }

 private:
  // Selects the thread with steps, else with calls, else with most spans.
  void IdentifyProgramThread() {
    std::vector<int64_t> weight(std::max<size_t>(profile_.threads.size(), 1), 0);
    // Of threads with as many steps, the first.
    for (const TraceEvent& e : profile_.events) {
      roots_ |= StatOf(e, "_r", 0) != 0;
      weight[e.thread] += e.name == kStepMarker || StatOf(e, "_r", 0) != 0 ? int64_t{1} << 30 : 1;
    }
    for (const runtime::ExecutionEvent& e : profile_.executions) weight[e.thread] += 1000;
    main_ = static_cast<uint32_t>(std::max_element(weight.begin(), weight.end()) - weight.begin());
    for (uint32_t t = 0; t < profile_.threads.size(); ++t) {
      if (profile_.threads[t] == "main" && weight[t] >= int64_t{1} << 30) main_ = t;
    }
    roots_ = std::any_of(profile_.events.begin(), profile_.events.end(),
                         [&](const TraceEvent& e) { return e.thread == main_ && StatOf(e, "_r", 0) != 0; });
  }

  void ReadThreads() {
    const std::vector<ThreadRecord> records = RecordsOfThreads(profile_);
    threads_.resize(records.size());
    for (uint32_t t = 0; t < threads_.size(); ++t) {
      const absl::Span<const int64_t> ends =
          t == main_ ? absl::MakeConstSpan(profile_.step_ends_ns) : absl::Span<const int64_t>();
      threads_[t].points = PointsOfThread(profile_, t, records[t], ends, options_);
      step_ends_.emplace_back();
      if (IsReplica(t) && !threads_[t].points.empty()) {
        replicas_begin_ns_ = std::min(replicas_begin_ns_, threads_[t].points.front().ns);
      }
      for (const ThreadPoint& p : threads_[t].points) {
        if (p.kind == ThreadPoint::Kind::kCall && p.in_tool) of_tools_.push_back(p.index);
        if (EndsStep(p)) step_ends_.back().push_back(p.ns);
      }
    }
    std::sort(of_tools_.begin(), of_tools_.end());
    called_.assign(profile_.executions.size(), kUnknown);
    ended_.assign(profile_.executions.size(), kUnknown);
    run_of_.assign(profile_.executions.size(), -1);
    call_spans_.assign(profile_.executions.size(), ThreadPoint::kNone);
    start_.assign(profile_.events.size(), 0);
    end_.assign(profile_.events.size(), 0);
    for (size_t e = 0; e < profile_.executions.size(); ++e) {
      if (std::binary_search(of_tools_.begin(), of_tools_.end(), e)) continue;
      queues_[profile_.executions[e].device].executions.push_back(e);
      devices_of_[profile_.executions[e].thread].insert(profile_.executions[e].device);
    }
    for (size_t i = 0; i < profile_.events.size(); ++i) {
      for (const auto& [name, value] : profile_.events[i].stats) {
        if (name == "_p") produced_by_[value] = i;
      }
    }
    done_.assign(profile_.events.size(), false);
  }

  void Simulate() {
    for (;;) {
      bool progress = false;
      for (uint32_t t = 0; t < threads_.size(); ++t) {
        while (Step(t, /*force=*/false)) progress = true;
      }
      if (progress) continue;
      // Threads may begin later than the program's thread got so far. A profile whose waits cannot be satisfied was cut
      // off: the first thread continues.
      bool forced = false;
      for (uint32_t t = 0; t < threads_.size() && !forced; ++t) {
        forced = !threads_[t].begun && threads_[t].next < threads_[t].points.size() && Step(t, /*force=*/true);
      }
      for (uint32_t t = 0; t < threads_.size() && !forced; ++t) forced = Step(t, /*force=*/true);
      if (!forced) break;
    }
  }

  // Replays the next point of a thread. Returns false if there is none or it has to wait.
  bool Step(uint32_t t, bool force) {
    Thread& thread = threads_[t];
    if (thread.next >= thread.points.size()) return false;
    const ThreadPoint& p = thread.points[thread.next];
    if (!thread.begun && !Begin(t, p, force)) return false;
    const double at = thread.now + p.work;
    double until = at;
    switch (p.kind) {
      case ThreadPoint::Kind::kBegin: {
        const TraceEvent& e = profile_.events[p.index];
        if (!p.in_tool && !AwaitFlows(e, force, &until)) return false;
        const bool waits = !p.in_tool && IsWait(e.name) && thread.waiting == ThreadPoint::kNone;
        if (waits && IsDeviceWait(e.name) && !AwaitDevice(t, e, force, &until)) return false;
        if (t == main_) Record(p, at);
        start_[p.index] = waits ? at : until;
        if (waits) thread.waiting = p.index;
        break;
      }
      case ThreadPoint::Kind::kEnd:
        if (t == main_) Record(p, at);
        if (thread.waiting == p.index) thread.waiting = ThreadPoint::kNone;
        end_[p.index] = at;
        done_[p.index] = true;
        break;
      case ThreadPoint::Kind::kCall:
        if (t == main_) Record(p, at);
        if (!p.in_tool) {
          called_[p.index] = at;
          if (p.in != ThreadPoint::kNone) call_spans_[p.index] = p.in;
          RunQueues();
        }
        break;
      case ThreadPoint::Kind::kStepEnd:
        Record(p, at);
        break;
    }
    thread.now = until;
    if (t == main_) reached_.emplace_back(p.ns, until);
    ++thread.next;
    return true;
  }

  bool IsReplica(uint32_t t) const {
    return t < profile_.threads.size() && std::string_view(profile_.threads[t]).starts_with("replica ");
  }

  // A thread begins when the program's thread is where it was when the thread was first seen. Threads that stand for
  // the processes of one program begin together: which of them is scheduled first is up to the machine that records.
  bool Begin(uint32_t t, const ThreadPoint& first, bool force) {
    Thread& thread = threads_[t];
    const bool consumes = first.kind == ThreadPoint::Kind::kBegin && StatOf(profile_.events[first.index], "_c", 0) != 0;
    if (t != main_ && !consumes) {
      const Thread& main = threads_[main_];
      const int64_t seen_ns = IsReplica(t) ? std::min(first.ns, replicas_begin_ns_) : first.ns;
      const bool passed = main.next >= main.points.size() || main.points[main.next].ns >= seen_ns;
      if (!passed && !force) return false;
      // Times of recordings count from the start of the profile on all threads.
      if (options_.times != HostTimes::kRecorded) {
        const auto after = std::upper_bound(reached_.begin(), reached_.end(), seen_ns,
                                            [](int64_t ns, const auto& point) { return ns < point.first; });
        thread.now = after == reached_.begin() ? 0 : (after - 1)->second;
      }
    }
    thread.begun = true;
    return true;
  }

  // Sets `until` to the end of the flows that the span consumes. Returns false if one is not known yet.
  bool AwaitFlows(const TraceEvent& e, bool force, double* until) const {
    for (const auto& [name, value] : e.stats) {
      if (name != "_c") continue;
      const auto found = produced_by_.find(value);
      if (found == produced_by_.end()) continue;
      if (!done_[found->second] && !force) return false;
      if (done_[found->second]) *until = std::max(*until, end_[found->second]);
    }
    return true;
  }

  // Sets `until` to the end of all executions that were called before the wait, on the devices of this thread.
  bool AwaitDevice(uint32_t t, const TraceEvent& e, bool force, double* until) const {
    const auto own = devices_of_.find(t);
    for (const auto& [device, queue] : queues_) {
      if (own != devices_of_.end() && !own->second.contains(device)) {
        continue;
      }
      const auto after = std::partition_point(queue.executions.begin(), queue.executions.end(), [&](size_t execution) {
        return profile_.executions[execution].called_ns <= e.start_ns;
      });
      if (after == queue.executions.begin()) continue;
      const double end = ended_[*(after - 1)];
      if (end == kUnknown && !force) return false;
      *until = std::max(*until, end);
    }
    return true;
  }

  // Runs what can run on the devices.
  void RunQueues() {
    for (bool progress = true; progress;) {
      progress = false;
      for (auto& [device, queue] : queues_) {
        while (queue.next < queue.executions.size() && called_[queue.executions[queue.next]] != kUnknown) {
          const size_t e = queue.executions[queue.next];
          if (!(profile_.executions[e].collective ? RunTogether(options_.program_of[e]) : RunAlone(device, e))) break;
          progress = true;
        }
      }
    }
  }

  bool RunAlone(int device, size_t e) {
    Queue& queue = queues_[device];
    const double start = std::max(called_[e], queue.free);
    Finish(device, e, start, queues_.size() > 1 ? device : -1);
    return true;
  }

  // Runs a program with collectives on all devices that still have executions. Returns false if one is not there yet.
  bool RunTogether(size_t program) {
    double start = 0;
    for (const auto& [device, queue] : queues_) {
      if (queue.next >= queue.executions.size()) continue;
      const size_t e = queue.executions[queue.next];
      if (called_[e] == kUnknown || options_.program_of[e] != program || !profile_.executions[e].collective)
        return false;
      start = std::max({start, called_[e], queue.free});
    }
    const size_t run = result_.runs.size();
    for (auto& [device, queue] : queues_) {
      if (queue.next >= queue.executions.size()) continue;
      const size_t e = queue.executions[queue.next];
      Finish(device, e, start, -1);
      // One execution on all devices.
      result_.runs.resize(run + 1);
      run_of_[e] = static_cast<int64_t>(run);
    }
    return true;
  }

  void Finish(int device, size_t e, double start, int on) {
    Queue& queue = queues_[device];
    const size_t program = options_.program_of[e];
    run_of_[e] = static_cast<int64_t>(result_.runs.size());
    result_.runs.push_back({program, start, StepOfCall(e), on});
    started_[e] = start;
    ended_[e] = queue.free = start + options_.seconds_of[program];
    ++queue.next;
    if (device == queues_.begin()->first) recorder_.AddRun(program, StepOfCall(e));
  }

  bool EndsStep(const ThreadPoint& p) const {
    if (p.kind == ThreadPoint::Kind::kStepEnd) return true;
    if (p.kind != ThreadPoint::Kind::kEnd || p.in_tool || !profile_.step_ends_ns.empty()) return false;
    const TraceEvent& e = profile_.events[p.index];
    return roots_ ? StatOf(e, "_r", 0) != 0 : e.name == kStepMarker;
  }

  void Record(const ThreadPoint& p, double at) { recorder_.Add(p, at, EndsStep(p)); }

  // Returns the step of the plan to which a call belongs.
  int64_t StepOfCall(size_t execution) const {
    const runtime::ExecutionEvent& e = profile_.executions[execution];
    return StepOfTime(e.thread, e.called_ns);
  }

  // Returns the step of a thread at a recorded time, or that of the program's thread if its own has no steps.
  int64_t StepOfTime(uint32_t thread, int64_t ns) const {
    const std::vector<int64_t>& own = step_ends_[thread];
    const std::vector<int64_t>& ends = own.empty() ? step_ends_[main_] : own;
    return std::lower_bound(ends.begin(), ends.end(), ns) - ends.begin();
  }

  // Describes batches that other threads make: their mean times, divided among these threads.
  void FindLoader() {
    double input = 0;
    double transfer = 0;
    int64_t ahead = 0;  // 0: not known
    for (const TraceEvent& e : profile_.events) ahead = StatOf(e, "prefetch", ahead);
    size_t loaders = 0, links = 0;
    for (uint32_t t = 0; t < threads_.size(); ++t) {
      if (t == main_ || !step_ends_[t].empty()) continue;
      const double before = input, sent = transfer;
      for (const ThreadPoint& p : threads_[t].points) {
        if (p.in == ThreadPoint::kNone) continue;
        const HostPhase phase = PhaseOfSpan(profile_.events[p.in].name);
        if (phase == HostPhase::kInput) input += p.work;
        if (phase == HostPhase::kTransfer) transfer += p.work;
      }
      if (input > before) ++loaders;
      if (transfer > sent) ++links;
    }
    links = std::max<size_t>(links, 1);
    workers_ = std::max<size_t>(loaders / links, 1);
    // Of more workers than batches ahead some always wait.
    if (ahead > 0) workers_ = std::min(workers_, static_cast<size_t>(ahead));
    const double steps = static_cast<double>(std::max<size_t>(step_ends_[main_].size(), 1));
    if (input + transfer > 0) {
      // A loader that is two ahead makes the batch that is taken next and one more: the model counts those beyond it.
      const int64_t prefetch = std::max<int64_t>((ahead > 0 ? ahead : 2) - 1, 1);
      recorder_.SetLoader(input / steps / static_cast<double>(links * workers_),
                          transfer / steps / static_cast<double>(links), prefetch);
    }
  }

  // ---- threads of the written profile ----

  // Returns the program's number of a step of the plan.
  int64_t NumberOf(int64_t step) const {
    const std::vector<int64_t>& numbers = result_.step_numbers;
    if (step >= 0 && step < static_cast<int64_t>(numbers.size())) return numbers[static_cast<size_t>(step)];
    return numbers.empty() ? step : numbers.back() + 1 + (step - static_cast<int64_t>(numbers.size()));
  }

  void MakeThreads() {
    result_.threads.resize(profile_.threads.size());
    for (size_t t = 0; t < profile_.threads.size(); ++t) {
      result_.threads[t].name = profile_.threads[t];
      const auto devices = devices_of_.find(static_cast<uint32_t>(t));
      if (queues_.size() > 1 && devices != devices_of_.end() && devices->second.size() == 1) {
        result_.threads[t].device = *devices->second.begin();
      }
    }
    std::vector<bool> of_tools(profile_.events.size(), false);
    for (const Thread& thread : threads_) {
      for (const ThreadPoint& p : thread.points) {
        if (p.kind == ThreadPoint::Kind::kBegin) of_tools[p.index] = p.in_tool;
      }
    }
    std::vector<int64_t> step_of_call(profile_.events.size(), -1);
    for (size_t e = 0; e < profile_.executions.size(); ++e) {
      if (call_spans_[e] != ThreadPoint::kNone && ended_[e] != kUnknown) step_of_call[call_spans_[e]] = StepOfCall(e);
    }
    const size_t steps = result_.plan.steps.size();
    if (!roots_ && main_ < result_.threads.size()) {
      double begin = 0;
      for (size_t k = 0; k < steps; ++k) {
        const double end = recorder_.step_ends()[k];
        HostSpan root{"train", begin, end - begin, result_.step_numbers[k], true, -1, std::string()};
        root.opens_step = static_cast<int64_t>(k);
        result_.threads[main_].spans.push_back(std::move(root));
        begin = end;
      }
    }
    for (size_t i = 0; i < profile_.events.size(); ++i) {
      const TraceEvent& e = profile_.events[i];
      if (e.name == runtime::kToolSpan || of_tools[i]) continue;
      HostSpan span;
      span.name = e.name;
      span.start = start_[i];
      span.duration = std::max(end_[i] - start_[i], 0.0);
      span.source = e.source;
      span.root = StatOf(e, "_r", 0) != 0;
      if (e.thread == main_) {
        const int64_t step = recorder_.StepAt(start_[i]);
        if (step < static_cast<int64_t>(steps) || span.root) span.step = NumberOf(step);
      }
      if (const int64_t number = StatOf(e, "step_num", -1); span.root && number >= 0) span.step = number;
      if (span.root) (e.thread == main_ ? span.opens_step : span.in_step) = StepOfTime(e.thread, e.end_ns);
      span.framework_call = StatOf(e, "framework_call", 0);
      if (step_of_call[i] >= 0) {
        span.makes_call = static_cast<int64_t>(i);
        span.in_step = step_of_call[i];
      }
      std::vector<HostSpan>& spans = result_.threads[e.thread].spans;
      spans.push_back(span);
      if (e.name != kTransferSpan) continue;
      span.name = std::string(kTransferToServer);
      spans.push_back(std::move(span));
    }
    for (HostThread& thread : result_.threads) {
      std::stable_sort(thread.spans.begin(), thread.spans.end(), [](const HostSpan& a, const HostSpan& b) {
        return a.start != b.start ? a.start < b.start : a.duration > b.duration;
      });
    }
    // The order in which threads were first seen differs between runs.
    if (main_ < result_.threads.size()) std::swap(result_.threads[0], result_.threads[main_]);
    std::stable_sort(result_.threads.begin() + (result_.threads.empty() ? 0 : 1), result_.threads.end(),
                     [](const HostThread& a, const HostThread& b) { return NameBefore(a.name, b.name); });
    // Threads of which only a tool's spans were seen.
    std::erase_if(result_.threads, [](const HostThread& thread) { return thread.spans.empty(); });
    const std::map<int64_t, int64_t> calls = NumberCalls();
    for (const auto& [device, queue] : queues_) AddRuntimeThread(device, queue, calls);
    SetStepSeconds();
    for (ProgramExecution& run : result_.runs) run.step = NumberOf(run.step);
  }

  // Sets the mean time of a step in the steady state: between the ends of steps on the first device.
  void SetStepSeconds() {
    const size_t count = result_.plan.steps.size();
    size_t steady = SteadyFrom(result_.plan);
    if (queues_.empty() || steady == 0 || steady >= count) return;
    // Workers that take turns deliver as many batches as they are at about the same time: whole turns count.
    if (const size_t turns = (count - steady) / workers_; turns > 0) steady = count - turns * workers_;
    std::vector<double> ends(count, kUnknown);
    for (const size_t e : queues_.begin()->second.executions) {
      const int64_t step = StepOfCall(e);
      if (step < static_cast<int64_t>(count)) ends[static_cast<size_t>(step)] = ended_[e];
    }
    const double before = ends[steady - 1];
    if (before == kUnknown || ends.back() == kUnknown) return;
    result_.step_seconds = (ends.back() - before) / static_cast<double>(count - steady);
  }

  // Numbers the calls by thread: the order in which threads were recorded differs between runs. Returns the numbers by
  // event.
  std::map<int64_t, int64_t> NumberCalls() {
    std::map<int64_t, int64_t> numbers;
    for (HostThread& thread : result_.threads) {
      for (HostSpan& span : thread.spans) {
        if (span.makes_call < 0) continue;
        span.makes_call = numbers.insert({span.makes_call, static_cast<int64_t>(numbers.size())}).first->second;
      }
    }
    return numbers;
  }

  // Adds the runtime's thread of a device: each program from its call, or the end of the one before, until it has run.
  void AddRuntimeThread(int device, const Queue& queue, const std::map<int64_t, int64_t>& calls) {
    HostThread thread;
    thread.name = StrCat("TPU:", device, " runtime");
    thread.device = device;
    double free = 0;
    for (size_t e : queue.executions) {
      if (ended_[e] == kUnknown) continue;
      HostSpan span;
      span.name = std::string(kRunExecutable);
      span.start = std::max(called_[e], free);
      span.duration = ended_[e] - span.start;
      span.step = NumberOf(StepOfCall(e));
      HostSpan call = span;
      const auto number = calls.find(static_cast<int64_t>(call_spans_[e]));
      if (number != calls.end()) span.takes_call = number->second;
      span.in_step = StepOfCall(e);
      thread.spans.push_back(span);
      call.name = std::string(kTpuExecute);
      call.duration = std::max(started_[e] - span.start, 0.0);
      call.run = run_of_[e];
      thread.spans.push_back(std::move(call));
      free = ended_[e];
    }
    result_.threads.push_back(std::move(thread));
  }

  const Profile& profile_;
  const ReplayOptions& options_;
  HostPlanRecorder recorder_;
  uint32_t main_ = 0;
  int64_t replicas_begin_ns_ = std::numeric_limits<int64_t>::max();  // when the first of them was seen
  size_t workers_ = 1;  // batches that are made at the same time, for each device
  bool roots_ = false;  // the program's thread has spans of steps
  std::vector<Thread> threads_;
  std::vector<std::vector<int64_t>> step_ends_;  // by thread, as recorded
  std::vector<std::pair<int64_t, double>>
      reached_;                                   // recorded and replayed time of the program's thread, at its points
  std::map<int, Queue> queues_;                   // by device
  std::map<uint32_t, std::set<int>> devices_of_;  // by thread: of its calls
  std::map<int64_t, size_t> produced_by_;         // by flow: the event
  std::vector<bool> done_;                        // by event: its end is known
  std::vector<double> start_, end_;               // by event
  std::vector<double> called_, ended_;            // by execution
  std::map<size_t, double> started_;              // by execution
  std::vector<int64_t> run_of_;                   // by execution: index into result_.runs
  std::vector<size_t> call_spans_;                // by execution: the event in which it was called; kNone: no event
  std::vector<size_t> of_tools_;                  // executions within spans of tools
  Replay result_;
};

}  // namespace

Replay ReplayProfile(const Profile& profile, const ReplayOptions& options) { return Replayer(profile, options).Run(); }

}  // namespace hlokit::tpu

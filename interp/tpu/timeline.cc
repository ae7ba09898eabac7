#include "interp/tpu/timeline.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "ir/str_cat.h"

namespace hlokit::tpu {

namespace {

// A computation that is being walked.
struct Frame {
  size_t plan = 0;
  double base = 0;        // when the trip began
  size_t next = 0;        // place in the order of starts
  double trips_left = 0;  // after this one
  double trip_seconds = 0;
};

class Walker {
 public:
  Walker(const ReportInput& input, const KernelPlan& plan, size_t max_events,
         const std::function<void(const TimelineEvent&)>& event)
      : input_(input), plan_(plan), max_events_(max_events), event_(event), orders_(plan.computations().size()) {}

  void Run() {
    const int64_t entry = plan_.PlanOf(input_.module.entry().id());
    if (entry < 0) return;
    Emit({.line = TimelineLine::kSteps, .duration = input_.simulation.step_seconds});
    Emit({.line = TimelineLine::kModules, .duration = input_.simulation.device_seconds});
    std::vector<Frame> open = {{static_cast<size_t>(entry)}};
    while (!open.empty()) {
      Frame& frame = open.back();
      const std::vector<uint32_t>& order = OrderOf(frame.plan);
      if (frame.next == order.size()) {
        if (frame.trips_left < 1) {
          open.pop_back();
          continue;
        }
        frame.base += frame.trip_seconds;
        // Trips count too: a body may have no events.
        if (++events_ + order.size() > max_events_) {
          Emit({.start = frame.base,
                .duration = frame.trips_left * frame.trip_seconds,
                .skipped_trips = static_cast<int64_t>(std::min(frame.trips_left, 9e18))});
          open.pop_back();
          continue;
        }
        frame.trips_left -= 1;
        frame.next = 0;
        continue;
      }
      const Frame inner = WalkStep(frame, order[frame.next++]);
      if (inner.trip_seconds > 0) open.push_back(inner);
    }
  }

 private:
  void Emit(const TimelineEvent& event) { event_(event); }

  // Steps by start; computed when first walked.
  const std::vector<uint32_t>& OrderOf(size_t plan) {
    std::vector<uint32_t>& order = orders_[plan];
    const std::vector<StepTime>& steps = input_.simulation.computations[plan].steps;
    if (order.size() != steps.size()) {
      order.resize(steps.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](uint32_t a, uint32_t b) { return steps[a].start < steps[b].start; });
    }
    return order;
  }

  // Emits a step; gives the computation to walk inside it, if any (trip_seconds above 0).
  Frame WalkStep(const Frame& frame, uint32_t s) {
    ++events_;
    const Step& step = plan_.computations()[frame.plan].steps[s];
    const ComputationTime& times = input_.simulation.computations[frame.plan];
    const StepTime& time = times.steps[s];
    const double start = frame.base + time.start;
    if (time.waited > 0) {
      TimelineEvent wait{
          .line = TimelineLine::kWaits, .start = start - time.waited, .duration = time.waited, .name = step.name};
      double latest = -1;
      for (uint32_t input : step.inputs) {
        const double end = times.steps[input].start + times.steps[input].duration;
        if (end <= latest) continue;
        latest = end;
        wait.waited_for = plan_.computations()[frame.plan].steps[input].name;
      }
      Emit(wait);
    }
    if (time.duration <= 0) return {};
    Emit({.line = time.on_core ? TimelineLine::kOps : TimelineLine::kAsyncOps,
          .start = start,
          .duration = time.duration,
          .step = &time,
          .name = step.name});
    if ((step.kind != StepKind::kLoop && step.kind != StepKind::kCall) || events_ >= max_events_) return {};
    const Instruction i = input_.module.instruction(step.name);
    if (step.kind == StepKind::kLoop) {
      const int64_t body = PlanOf(i.computation_attr(Attr::kBody));
      const int64_t condition = PlanOf(i.computation_attr(Attr::kCondition));
      if (body < 0 || time.trips < 1) return {};
      const double before = condition < 0 ? 0 : input_.simulation.computations[condition].duration;
      Frame inner{static_cast<size_t>(body), start + before, 0, time.trips - 1, 0};
      inner.trip_seconds = before + input_.simulation.computations[body].duration;
      return inner;
    }
    // Of a conditional's branches the longest ran.
    int64_t longest = -1;
    for (Computation callee : i.called_computations()) {
      const int64_t at = PlanOf(callee);
      if (at < 0) continue;
      const std::vector<ComputationTime>& all = input_.simulation.computations;
      if (longest < 0 || all[at].duration > all[longest].duration) longest = at;
    }
    if (longest < 0) return {};
    return {static_cast<size_t>(longest), start, 0, 0, time.duration};
  }

  int64_t PlanOf(Computation computation) const { return computation.valid() ? plan_.PlanOf(computation.id()) : -1; }

  const ReportInput& input_;
  const KernelPlan& plan_;
  const size_t max_events_;
  const std::function<void(const TimelineEvent&)>& event_;
  size_t events_ = 0;  // and steps and trips that had none
  std::vector<std::vector<uint32_t>> orders_;
};

// Digits that keep a picosecond in an hour.
std::string Number(double value) {
  char buffer[64];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, 15).ptr);
}

std::string Quoted(std::string_view s) {
  return nlohmann::json(std::string(s)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

class ChromeWriter {
 public:
  ChromeWriter(const ReportInput& input, TextWriter* out) : input_(input), out_(*out) {}

  void Begin() {
    out_ << "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
    Meta("process_name", 0, "/device:TPU:0 (" + input_.options.machine.name + ")");
    for (TimelineLine line : {TimelineLine::kSteps, TimelineLine::kModules, TimelineLine::kOps, TimelineLine::kAsyncOps,
                              TimelineLine::kWaits}) {
      Meta("thread_name", static_cast<int>(line), NameOf(line));
    }
  }
  void End() { out_ << "\n]}\n"; }

  void Write(const TimelineEvent& e) {
    std::string name;
    if (e.skipped_trips > 0) {
      name = StrCat(e.skipped_trips, " more trips");
    } else if (e.line == TimelineLine::kSteps) {
      name = "step 0";
    } else if (e.line == TimelineLine::kModules) {
      name = std::string(input_.module.name());
    } else if (e.line == TimelineLine::kWaits) {
      name = "wait";
      if (e.waited_for.valid()) StrAppend(&name, " for ", input_.module.instruction(e.waited_for).name());
    } else {
      name = std::string(input_.module.instruction(e.name).name());
    }
    Separate();
    out_ << "{\"ph\": \"X\", \"pid\": 1, \"tid\": " << static_cast<int64_t>(e.line) << ", \"name\": " << Quoted(name)
         << ", \"ts\": " << Number(e.start * 1e6) << ", \"dur\": " << Number(e.duration * 1e6);
    if (e.step != nullptr) Arguments(e);
    out_ << "}";
  }

 private:
  void Arguments(const TimelineEvent& e) {
    const Instruction i = input_.module.instruction(e.name);
    out_ << ", \"args\": {\"opcode\": " << Quoted(i.opcode_text())
         << ", \"bound_by\": " << Quoted(NameOf(e.step->bound)) << ", \"flops\": " << Number(e.step->flops)
         << ", \"hbm_bytes\": " << Number(e.step->hbm_bytes);
    if (e.step->wire_bytes > 0) out_ << ", \"wire_bytes\": " << Number(e.step->wire_bytes);
    if (e.step->trips != 1) out_ << ", \"trips\": " << Number(e.step->trips);
    if (const std::string_view scope = ScopeOf(i); !scope.empty()) out_ << ", \"tf_op\": " << Quoted(scope);
    if (const std::string source = SourceOf(i); !source.empty()) out_ << ", \"source\": " << Quoted(source);
    out_ << "}";
  }
  void Meta(std::string_view what, int tid, std::string_view name) {
    Separate();
    out_ << "{\"ph\": \"M\", \"pid\": 1, \"tid\": " << tid << ", \"name\": " << Quoted(what)
         << ", \"args\": {\"name\": " << Quoted(name) << "}}";
  }
  void Separate() {
    if (!first_) out_ << ",\n";
    first_ = false;
  }

  const ReportInput& input_;
  TextWriter& out_;
  bool first_ = true;
};

}  // namespace

std::string_view NameOf(TimelineLine line) {
  switch (line) {
    case TimelineLine::kSteps:
      return "Steps";
    case TimelineLine::kModules:
      return "XLA Modules";
    case TimelineLine::kOps:
      return "XLA Ops";
    case TimelineLine::kAsyncOps:
      return "Async XLA Ops";
    case TimelineLine::kWaits:
      return "Core waits";
  }
  return "";
}

void WalkTimeline(const ReportInput& input, const KernelPlan& plan, size_t max_events,
                  const std::function<void(const TimelineEvent&)>& event) {
  Walker(input, plan, max_events, event).Run();
}

void WriteChromeTrace(const ReportInput& input, const KernelPlan& plan, size_t max_events, TextWriter* out) {
  ChromeWriter writer(input, out);
  writer.Begin();
  WalkTimeline(input, plan, max_events, [&](const TimelineEvent& e) { writer.Write(e); });
  writer.End();
}

}  // namespace hlokit::tpu

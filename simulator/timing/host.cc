// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/host.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <optional>
#include <utility>

#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"

namespace hlokit::tpu {

namespace {

constexpr int64_t kMaxHostSteps = 100000;
constexpr int64_t kMaxExecutions = 1000000;
constexpr size_t kWarmUpSteps = 3;  // steps that may compile before the steady state
// The loader's part of a step is in the steady state to this relative error, unless it takes more executions.
constexpr double kSettled = 1e-3;
constexpr int64_t kMaxSettlingExecutions = 50000;

struct Quantity {
  double value = 0;
  std::string_view unit;
};

std::optional<Quantity> ReadQuantity(std::string_view text) {
  Quantity q;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), q.value);
  if (error != std::errc() || !(q.value >= 0) || q.value > 1e18) return std::nullopt;
  q.unit = text.substr(static_cast<size_t>(end - text.data()));
  return q;
}

std::optional<double> UnitOf(std::string_view unit, absl::Span<const std::pair<std::string_view, double>> units) {
  for (const auto& [name, factor] : units) {
    if (name == unit) return factor;
  }
  return std::nullopt;
}

constexpr std::pair<std::string_view, double> kTimes[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
constexpr std::pair<std::string_view, double> kSizes[] = {
    {"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};

// Parsed values of the keys of ParseHostModel.
struct HostParameters {
  double input = 0, transfer = 0, trace = 0, marker = 0, compile = 0, execute = 0, fetch = 0, other = 0;
  int64_t steps = 5, compile_every = 0, graphs = 1, fetch_every = 0, prefetch = 2, in_flight = 32;
  bool captured = false;
};
struct TimeKey {
  std::string_view name;
  double HostParameters::*member;
};
constexpr TimeKey kTimeKeys[] = {{"input", &HostParameters::input},     {"transfer", &HostParameters::transfer},
                                 {"trace", &HostParameters::trace},     {"marker", &HostParameters::marker},
                                 {"compile", &HostParameters::compile}, {"execute", &HostParameters::execute},
                                 {"fetch", &HostParameters::fetch},     {"other", &HostParameters::other}};
struct CountKey {
  std::string_view name;
  int64_t HostParameters::*member;
  int64_t least;
  int64_t most;
};
constexpr CountKey kCountKeys[] = {{"steps", &HostParameters::steps, 1, kMaxHostSteps},
                                   {"compile_every", &HostParameters::compile_every, 0, kMaxHostSteps},
                                   {"graphs", &HostParameters::graphs, 1, 10000},
                                   {"fetch_every", &HostParameters::fetch_every, 0, kMaxHostSteps},
                                   {"prefetch", &HostParameters::prefetch, 0, 10000},
                                   {"in_flight", &HostParameters::in_flight, 1, 10000}};

absl::Status SetKey(std::string_view key, std::string_view text, double host_rate, HostParameters* parameters) {
  const auto bad = [&](std::string_view expected) {
    const std::string message = StrCat("`", key, "=", text, "`: expected ", expected);
    return absl::InvalidArgumentError(message);
  };
  for (const TimeKey& k : kTimeKeys) {
    if (k.name != key) continue;
    const std::optional<Quantity> q = ReadQuantity(text);
    if (!q) return bad("a time such as 12ms");
    if (const std::optional<double> unit = UnitOf(q->unit, kTimes)) {
      parameters->*k.member = q->value * *unit;
      return absl::OkStatus();
    }
    const std::optional<double> size = UnitOf(q->unit, kSizes);
    if (key == "transfer" && size && host_rate > 0) {
      parameters->*k.member = q->value * *size / host_rate;
      return absl::OkStatus();
    }
    if (q->value == 0 && q->unit.empty()) return absl::OkStatus();
    return bad(key == "transfer" ? "a time such as 3ms, or bytes such as 12MB" : "a time such as 12ms");
  }
  for (const CountKey& k : kCountKeys) {
    if (k.name != key) continue;
    const std::optional<Quantity> q = ReadQuantity(text);
    if (!q || !q->unit.empty() || q->value != std::floor(q->value) || q->value < static_cast<double>(k.least) ||
        q->value > static_cast<double>(k.most)) {
      return bad(StrCat("an integer from ", k.least, " to ", k.most));
    }
    parameters->*k.member = static_cast<int64_t>(q->value);
    return absl::OkStatus();
  }
  if (key == "mode") {
    if (text != "lazy" && text != "captured") return bad("lazy or captured");
    parameters->captured = text == "captured";
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat("unknown key `", key, "`", DidYouMeanSuffix(key, HostModelKeys())));
}

// Simulates the plan. Each track does one activity at a time.
class Host {
 public:
  // `steady_from`: the first step of the steady state.
  Host(const HostModel& plan, double device_seconds, size_t steady_from)
      : plan_(plan), device_seconds_(device_seconds), steady_from_(steady_from) {}

  HostTimeline Run() {
    for (size_t k = 0; k < plan_.steps.size(); ++k) PlayStep(plan_.steps[k], static_cast<int64_t>(k));
    ExplainGaps();
    Summarize();
    return std::move(result_);
  }

 private:
  static constexpr size_t kTracks = 4;

  // Adds an activity to a track after the track's last one and after `inputs`. Returns it, or the latest of those if it
  // takes no time.
  int64_t Do(Track lane, HostPhase phase, int64_t step, double seconds, std::initializer_list<int64_t> inputs,
             bool wait = false) {
    const size_t l = static_cast<size_t>(lane);
    int64_t after = last_[l];
    for (int64_t input : inputs) {
      if (input >= 0 && (after < 0 || EndOf(input) > EndOf(after))) after = input;
    }
    const double start = after < 0 ? 0 : EndOf(after);
    // A blocked thread: the time belongs to the activity of another track.
    if (wait) seconds = 0;
    if (seconds <= 0 && lane != Track::kDevice) {
      if (wait && last_[l] != after && last_[l] >= 0 && start > EndOf(last_[l])) {
        result_.spans.push_back({lane, phase, step, EndOf(last_[l]), start, after, true});
      }
      // The next activity of this track follows `after`.
      last_[l] = after;
      return after;
    }
    result_.spans.push_back({lane, phase, step, start, start + seconds, after, false});
    last_[l] = static_cast<int64_t>(result_.spans.size()) - 1;
    return last_[l];
  }
  double EndOf(int64_t activity) const { return result_.spans[activity].end; }

  // Returns the activity at whose end the batch is on the device.
  int64_t Batch(const HostStep& step, int64_t k) {
    if (plan_.prefetch == 0) {
      Do(Track::kProgram, HostPhase::kInput, k, step.input, {});
      return Do(Track::kProgram, HostPhase::kTransfer, k, step.transfer, {});
    }
    // A slot of the queue is free once the program has taken the previous batch.
    int64_t place = -1;
    if (k > plan_.prefetch) place = taken_[static_cast<size_t>(k - plan_.prefetch - 1)];
    const int64_t made = Do(Track::kLoader, HostPhase::kInput, k, step.input, {place});
    const int64_t sent = Do(Track::kLink, HostPhase::kTransfer, k, step.transfer, {made});
    // The program continues with a batch in transfer as soon as it is complete on the host.
    const int64_t taken = Do(Track::kProgram, HostPhase::kInput, k, 0, {made}, /*wait=*/true);
    taken_.push_back(taken);
    return sent;
  }

  void PlayStep(const HostStep& step, int64_t k) {
    const int64_t batch = Batch(step, k);
    Do(Track::kProgram, HostPhase::kOther, k, step.other, {});
    const double parts = static_cast<double>(std::max<int64_t>(step.graphs, 1));
    int64_t ran = -1;
    for (int64_t g = 0; g < std::max<int64_t>(step.graphs, 1); ++g) {
      Do(Track::kProgram, HostPhase::kTrace, k, step.trace / parts, {});
      Do(Track::kProgram, HostPhase::kMarker, k, step.marker / parts, {});
      Do(Track::kProgram, HostPhase::kCompile, k, step.compile / parts, {});
      if (running_.size() >= static_cast<size_t>(plan_.in_flight)) {
        Do(Track::kProgram, HostPhase::kExecute, k, 0, {running_.front()}, /*wait=*/true);
        running_.pop_front();
      }
      const int64_t call = Do(Track::kProgram, HostPhase::kExecute, k, step.execute, {});
      const double device = step.runs * device_seconds_ + step.other_device;
      ran = Do(Track::kDevice, HostPhase::kOther, k, device / parts, {call, batch});
      running_.push_back(ran);
    }
    if (step.waits) Do(Track::kProgram, HostPhase::kFetch, k, 0, {ran}, /*wait=*/true);
    Do(Track::kProgram, HostPhase::kFetch, k, step.fetch, {});
  }

  void ExplainGaps() {
    double free = 0;
    for (size_t a = 0; a < result_.spans.size(); ++a) {
      const TimelineSpan& run = result_.spans[a];
      if (run.track != Track::kDevice) continue;
      if (run.start > free) {
        DeviceGap gap;
        gap.start = free;
        gap.end = run.start;
        gap.before_step = run.step;
        double until = run.start;
        // Each activity of this chain began when the previous one ended.
        for (int64_t at = run.after; at >= 0 && until > free; at = result_.spans[at].after) {
          const TimelineSpan& cause = result_.spans[at];
          const double from = std::max(cause.start, free);
          if (cause.track == Track::kDevice) break;
          if (until > from) gap.parts.push_back({cause.phase, cause.step, until - from});
          until = std::min(until, from);
        }
        if (until > free) gap.parts.push_back({HostPhase::kOther, run.step, until - free});
        std::reverse(gap.parts.begin(), gap.parts.end());
        result_.gaps.push_back(std::move(gap));
      }
      free = run.end;
      result_.device_busy += run.end - run.start;
      result_.seconds = std::max(result_.seconds, run.end);
      const size_t step = static_cast<size_t>(run.step);
      if (ends_.size() <= step) ends_.resize(step + 1, 0);
      ends_[step] = run.end;
    }
  }

  // Computes the steady state, after the pipeline has filled and the first compilations.
  void Summarize() {
    result_.steps = ends_.size();
    if (ends_.empty()) return;
    result_.steady_from = std::min(steady_from_, ends_.size() - 1);
    const double before = result_.steady_from == 0 ? 0 : ends_[result_.steady_from - 1];
    const double count = static_cast<double>(ends_.size() - result_.steady_from);
    result_.step_seconds = result_.run_step_seconds = (ends_.back() - before) / count;
    for (const DeviceGap& gap : result_.gaps) {
      if (static_cast<size_t>(gap.before_step) < result_.steady_from) continue;
      for (const DeviceGap::Part& part : gap.parts) {
        result_.steady_gaps[static_cast<size_t>(part.phase)] += part.seconds / count;
      }
    }
  }

  const HostModel& plan_;
  const double device_seconds_;
  const size_t steady_from_;
  HostTimeline result_;
  int64_t last_[kTracks] = {-1, -1, -1, -1};
  std::vector<int64_t> taken_;   // by step: when the program received its batch
  std::deque<int64_t> running_;  // executions in flight, oldest first
  std::vector<double> ends_;     // by step: its end on the device
};

// Repeats the last steps until their time is that of a loader which is no longer ahead. A loader that is slower than
// the rest falls behind by a part of a step in each, so that the batches it had ready may last for many steps.
void Settle(const HostModel& plan, double device_seconds, HostTimeline* result) {
  if (plan.prefetch == 0 || !HasSteadyState(plan)) return;
  std::vector<HostStep> last;
  double input = 0, transfer = 0;
  int64_t executions = 0;
  for (size_t k = result->steady_from; k < plan.steps.size(); ++k) {
    HostStep step = plan.steps[k];
    step.scopes.clear();
    step.causes.clear();
    input += step.input;
    transfer += step.transfer;
    executions += std::max<int64_t>(step.graphs, 1);
    last.push_back(std::move(step));
  }
  // The loader and the link each do one batch at a time.
  const double least = std::max(input, transfer) / static_cast<double>(last.size()) * (1 - kSettled);
  HostModel longer;
  longer.steps = last;
  longer.prefetch = plan.prefetch;
  longer.in_flight = plan.in_flight;
  for (int64_t repeats = 1; result->step_seconds < least; repeats *= 2) {
    if (repeats > kMaxSettlingExecutions / executions) return;
    const size_t from = longer.steps.size();
    for (int64_t k = 0; k < repeats; ++k) longer.steps.insert(longer.steps.end(), last.begin(), last.end());
    const HostTimeline settled = Host(longer, device_seconds, from).Run();
    result->step_seconds = settled.step_seconds;
    std::copy(std::begin(settled.steady_gaps), std::end(settled.steady_gaps), std::begin(result->steady_gaps));
  }
}

}  // namespace

std::string_view ToString(HostPhase phase) {
  switch (phase) {
    case HostPhase::kInput:
      return "input pipeline";
    case HostPhase::kTransfer:
      return "transfer to device";
    case HostPhase::kTrace:
      return "IR generation";
    case HostPhase::kMarker:
      return "step marker";
    case HostPhase::kCompile:
      return "compile";
    case HostPhase::kExecute:
      return "execute call";
    case HostPhase::kFetch:
      return "fetch";
    case HostPhase::kOther:
      return "program";
  }
  return "";
}

HostPhase DeviceGap::Longest() const {
  double seconds[kHostPhaseCount] = {};
  for (const Part& part : parts) seconds[static_cast<size_t>(part.phase)] += part.seconds;
  return static_cast<HostPhase>(std::max_element(std::begin(seconds), std::end(seconds)) - std::begin(seconds));
}

double DeviceGap::SecondsOf(HostPhase phase) const {
  double sum = 0;
  for (const Part& part : parts) sum += part.phase == phase ? part.seconds : 0;
  return sum;
}

std::vector<std::string_view> HostModelKeys() {
  std::vector<std::string_view> names = {"mode"};
  for (const TimeKey& k : kTimeKeys) names.push_back(k.name);
  for (const CountKey& k : kCountKeys) names.push_back(k.name);
  return names;
}

absl::StatusOr<HostModel> ParseHostModel(std::string_view text, double call, double host_rate) {
  HostParameters parameters;
  parameters.execute = call;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t equal = item.find('=');
    if (equal == std::string_view::npos) {
      const std::string message = StrCat("expected KEY=VALUE, found `", item, "`");
      return absl::InvalidArgumentError(message);
    }
    if (absl::Status s = SetKey(item.substr(0, equal), item.substr(equal + 1), host_rate, &parameters); !s.ok())
      return s;
  }
  if (parameters.steps * parameters.graphs > kMaxExecutions) {
    const std::string message = StrCat("steps times graphs exceeds the limit of ", kMaxExecutions);
    return absl::InvalidArgumentError(message);
  }
  HostModel plan;
  plan.prefetch = parameters.prefetch;
  plan.in_flight = parameters.in_flight;
  plan.source = "parameters";
  for (int64_t k = 0; k < parameters.steps; ++k) {
    const bool again = parameters.compile_every > 0 && k % parameters.compile_every == 0;
    const bool records = !parameters.captured || k == 0 || again;
    HostStep step;
    step.input = parameters.input;
    step.transfer = parameters.transfer;
    step.trace = records ? parameters.trace : 0;
    step.marker = records ? parameters.marker : 0;
    step.compile = k == 0 || again ? parameters.compile : 0;
    step.execute = parameters.execute;
    step.waits = parameters.fetch_every > 0 && (k + 1) % parameters.fetch_every == 0;
    step.fetch = step.waits ? parameters.fetch : 0;
    step.other = parameters.other;
    step.graphs = parameters.graphs;
    plan.steps.push_back(std::move(step));
  }
  return plan;
}

size_t SteadyFrom(const HostModel& plan) {
  const size_t steps = plan.steps.size();
  if (steps <= 1) return 0;
  size_t from = std::max<size_t>(1, steps / 2);
  // A second compilation follows where the optimizer's state becomes an input.
  while (from < kWarmUpSteps && from + 1 < steps && plan.steps[from].compile > 0) ++from;
  return from;
}

bool HasSteadyState(const HostModel& plan) {
  const size_t from = SteadyFrom(plan);
  return from < plan.steps.size() && (from >= kWarmUpSteps || plan.steps[from].compile == 0);
}

HostTimeline SimulateHost(const HostModel& plan, double device_seconds) {
  HostTimeline result = Host(plan, device_seconds, SteadyFrom(plan)).Run();
  Settle(plan, device_seconds, &result);
  return result;
}

}  // namespace hlokit::tpu

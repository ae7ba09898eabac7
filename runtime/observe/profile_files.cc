// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/profile_files.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "ir/core/double_text.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "runtime/observe/trace_lanes.h"
#include "runtime/observe/xplane.pb.h"

namespace hlokit::runtime {

namespace {

namespace proto = ::tensorflow::profiler;

std::string EventName(const proto::XPlane& plane, const proto::XEvent& event) {
  const auto found = plane.event_metadata().find(event.metadata_id());
  if (found == plane.event_metadata().end()) return StrCat("event ", event.metadata_id());
  return found->second.display_name().empty() ? found->second.name() : found->second.display_name();
}

constexpr int kDigits = 15;  // significant digits of values
// Line of counters: each event sets a value. XProf's name.
constexpr std::string_view kCounters = "_counters_";
// Numbers of lines that the file does not have follow these.
constexpr int64_t kFrameworkLines = 100;
constexpr int64_t kFurtherLanes = 1000;
// Context type of links that only group events by step, as tsl's ContextType numbers it.
constexpr int64_t kGenericContext = 0;
constexpr int64_t kCallContext = 5;
constexpr size_t kMaxScopeDepth = 32;  // scopes inside of it are not shown

class TraceWriter {
 public:
  TraceWriter(const proto::XSpace& space, TextWriter* out)
      : space_(space), out_(*out), json_(out, JsonLayout::kSpaced) {}

  void Write(size_t max_events) {
    ComputeStart();
    ComputeEnd(max_events);
    json_.BeginObject().Member("displayTimeUnit", "ns");
    json_.Key("metadata").BeginObject().Member("highres-ticks", true).EndObject();
    json_.Key("traceEvents").BeginArray();
    int64_t process = 0;
    for (const proto::XPlane& plane : space_.planes()) {
      ++process;
      if (plane.lines_size() == 0) continue;
      BeginEvent("M").Member("pid", process).Member("name", "process_name");
      json_.Key("args").BeginObject().Member("name", plane.name()).EndObject().EndObject();
      BeginEvent("M").Member("pid", process).Member("name", "process_sort_index");
      json_.Key("args").BeginObject().Member("sort_index", plane.id()).EndObject().EndObject();
      lanes_.clear();
      for (const proto::XLine& line : plane.lines()) lanes_.insert(line.id());
      for (const proto::XLine& line : plane.lines()) WriteLine(plane, process, line);
      WriteFrameworkLines(plane, process);
    }
    json_.EndArray("\n").EndObject();
    out_ << '\n';
  }

 private:
  // An interval of a derived line, in nanoseconds.
  struct Derived {
    std::string name;
    int64_t start;
    int64_t end;
  };

  void WriteLine(const proto::XPlane& plane, int64_t process, const proto::XLine& line) {
    if (line.name() == kCounters) {
      WriteLineName(process, line.id(), line.name());
      for (const proto::XEvent& event : line.events()) {
        if (const int64_t start = StartOf(line, event); start <= last_) WriteCounter(plane, process, event, start);
      }
      return;
    }
    std::vector<TraceSlice> slices;
    for (int k = 0; k < line.events_size(); ++k) {
      const int64_t start = StartOf(line, line.events(k));
      if (start <= last_) slices.push_back({start, EndOf(line, line.events(k)), static_cast<size_t>(k)});
    }
    const std::vector<int64_t> lanes = WriteLanes(process, line.id(), line.name(), &slices);
    for (const TraceSlice& slice : slices) {
      WriteEvent(plane, process, lanes[slice.lane], line.events(static_cast<int>(slice.event)), slice);
    }
  }

  // Assigns the slices to lanes and names these. Returns their numbers.
  std::vector<int64_t> WriteLanes(int64_t process, int64_t id, std::string_view name, std::vector<TraceSlice>* slices) {
    std::vector<int64_t> lanes(AssignLanes(slices), id);
    int64_t next = kFurtherLanes;
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      if (lane > 0) {
        while (!lanes_.insert(++next).second) {
        }
        lanes[lane] = next;
      }
      WriteLineName(process, lanes[lane], lane == 0 ? std::string(name) : StrCat(name, " (", lane + 1, ")"));
    }
    return lanes;
  }

  void WriteLineName(int64_t process, int64_t id, std::string_view name) {
    BeginEvent("M").Member("pid", process).Member("tid", id).Member("name", "thread_name");
    json_.Key("args").BeginObject().Member("name", name).EndObject().EndObject();
  }

  // Writes the lines that XProf derives from the operations of a device: the scopes of the program, nested, and its
  // ops.
  void WriteFrameworkLines(const proto::XPlane& plane, int64_t process) {
    std::vector<Derived> scopes, ops;
    for (const proto::XLine& line : plane.lines()) {
      if (line.name() == "XLA Ops") DeriveFrameworkLines(plane, line, &scopes, &ops);
    }
    if (ops.empty()) return;
    const std::pair<std::string_view, const std::vector<Derived>*> lines[] = {{"Framework Name Scope", &scopes},
                                                                              {"Framework Ops", &ops}};
    int64_t id = kFrameworkLines;
    for (const auto& [name, events] : lines) {
      std::vector<TraceSlice> slices;
      for (size_t k = 0; k < events->size(); ++k) {
        const Derived& e = (*events)[k];
        if (e.start <= last_) slices.push_back({e.start, e.end, k});
      }
      const std::vector<int64_t> lanes = WriteLanes(process, ++id, name, &slices);
      for (const TraceSlice& slice : slices) {
        BeginEvent("X");
        WriteTimes(process, lanes[slice.lane], slice);
        json_.Member("name", (*events)[slice.event].name).EndObject();
      }
    }
  }

  // Splits the scopes of the operations that contain no others. Neighbors in one scope of one execution share its
  // event.
  void DeriveFrameworkLines(const proto::XPlane& plane, const proto::XLine& line, std::vector<Derived>* scopes,
                            std::vector<Derived>* ops) const {
    // The next event that takes time; starts of asynchronous operations take none.
    std::vector<int> next(static_cast<size_t>(line.events_size()), line.events_size());
    for (int k = line.events_size() - 2; k >= 0; --k) {
      next[static_cast<size_t>(k)] = line.events(k + 1).duration_ps() > 0 ? k + 1 : next[static_cast<size_t>(k) + 1];
    }
    std::vector<size_t> open;  // indices into *scopes, outermost first
    std::string open_run;
    for (int k = 0; k < line.events_size(); ++k) {
      const proto::XEvent& event = line.events(k);
      const int after = next[static_cast<size_t>(k)];
      // Times in a file are arbitrary: sums of doubles do not overflow.
      const bool contains = after < line.events_size() &&
                            static_cast<double>(line.events(after).offset_ps()) <
                                static_cast<double>(event.offset_ps()) + static_cast<double>(event.duration_ps());
      if (contains || event.duration_ps() == 0) continue;
      std::string path = StatText(plane, event, "tf_op");
      if (!path.empty() && path.back() == ':') path.pop_back();
      if (path.empty()) continue;
      const std::string run = StatText(plane, event, "run_id");
      const int64_t start = StartOf(line, event);
      const int64_t end = EndOf(line, event);
      std::vector<std::string> names = absl::StrSplit(path, '/');
      ops->push_back({std::string(names.back()), start, end});
      names.pop_back();
      if (names.size() > kMaxScopeDepth) names.resize(kMaxScopeDepth);
      if (run != open_run) open.clear();
      open_run = run;
      size_t same = 0;
      while (same < open.size() && same < names.size() && (*scopes)[open[same]].name == names[same]) ++same;
      open.resize(same);
      for (size_t index : open) (*scopes)[index].end = std::max((*scopes)[index].end, end);
      for (size_t depth = same; depth < names.size(); ++depth) {
        open.push_back(scopes->size());
        scopes->push_back({std::string(names[depth]), start, end});
      }
    }
  }

  // Returns a stat of an event or of its metadata as text, or "".
  static std::string StatText(const proto::XPlane& plane, const proto::XEvent& event, std::string_view name) {
    const auto text = [&](const auto& stats) -> std::string {
      for (const proto::XStat& stat : stats) {
        const auto found = plane.stat_metadata().find(stat.metadata_id());
        if (found == plane.stat_metadata().end() || found->second.name() != name) continue;
        if (stat.value_case() == proto::XStat::kStrValue) return stat.str_value();
        if (stat.value_case() == proto::XStat::kInt64Value) return StrCat(stat.int64_value());
      }
      return "";
    };
    std::string own = text(event.stats());
    if (!own.empty()) return own;
    const auto found = plane.event_metadata().find(event.metadata_id());
    return found == plane.event_metadata().end() ? own : text(found->second.stats());
  }

  void WriteCounter(const proto::XPlane& plane, int64_t process, const proto::XEvent& event, int64_t start) {
    BeginEvent("C").Member("pid", process).Key("ts").Value(TraceMicroseconds(start));
    json_.Member("name", EventName(plane, event)).Key("args").BeginObject();
    for (const proto::XStat& stat : event.stats()) {
      json_.Key("value");
      WriteValue(plane, stat);
      break;
    }
    json_.EndObject().EndObject();
  }

  void ComputeStart() {
    bool first = true;
    for (const proto::XPlane& plane : space_.planes()) {
      for (const proto::XLine& line : plane.lines()) {
        if (first || line.timestamp_ns() < start_ns_) start_ns_ = line.timestamp_ns();
        first = false;
      }
    }
  }

  // Returns the start in nanoseconds since that of the profile.
  int64_t StartOf(const proto::XLine& line, const proto::XEvent& event) const {
    return SinceStart(line, NanosecondOf(event.offset_ps()));
  }
  int64_t EndOf(const proto::XLine& line, const proto::XEvent& event) const {
    const int64_t offset = event.offset_ps();
    const int64_t duration = std::max<int64_t>(event.duration_ps(), 0);
    const int64_t end = offset > std::numeric_limits<int64_t>::max() - duration ? std::numeric_limits<int64_t>::max()
                                                                                : offset + duration;
    return std::max(StartOf(line, event), SinceStart(line, NanosecondOf(end)));
  }
  int64_t SinceStart(const proto::XLine& line, int64_t offset_ns) const {
    // Times in a file are arbitrary: unsigned sums wrap without overflow.
    return static_cast<int64_t>(static_cast<uint64_t>(line.timestamp_ns()) - static_cast<uint64_t>(start_ns_) +
                                static_cast<uint64_t>(offset_ns));
  }

  // Computes the start of the last event to write.
  void ComputeEnd(size_t max_events) {
    size_t count = 0;
    for (const proto::XPlane& plane : space_.planes()) {
      for (const proto::XLine& line : plane.lines()) count += static_cast<size_t>(line.events_size());
    }
    if (count <= max_events) return;
    std::vector<int64_t> starts;
    starts.reserve(count);
    for (const proto::XPlane& plane : space_.planes()) {
      for (const proto::XLine& line : plane.lines()) {
        for (const proto::XEvent& event : line.events()) starts.push_back(StartOf(line, event));
      }
    }
    // Drops all events that start with the first dropped one, so that devices end alike.
    const auto first_out = starts.begin() + static_cast<std::ptrdiff_t>(max_events);
    std::nth_element(starts.begin(), first_out, starts.end());
    last_ = *first_out == std::numeric_limits<int64_t>::min() ? *first_out : *first_out - 1;
  }

  void WriteEvent(const proto::XPlane& plane, int64_t process, int64_t lane, const proto::XEvent& event,
                  const TraceSlice& slice) {
    BeginEvent("X");
    WriteTimes(process, lane, slice);
    json_.Member("name", EventName(plane, event)).Key("args").BeginObject();
    int64_t producer = 0, producer_context = kGenericContext;
    int64_t consumer = 0, consumer_context = kGenericContext;
    const auto write = [&](const proto::XStat& stat) {
      const auto found = plane.stat_metadata().find(stat.metadata_id());
      if (found == plane.stat_metadata().end() || stat.value_case() == proto::XStat::kBytesValue) return;
      const std::string_view name = found->second.name();
      if (name == "_p") producer = stat.int64_value();
      if (name == "_pt") producer_context = stat.int64_value();
      if (name == "_c") consumer = stat.int64_value();
      if (name == "_ct") consumer_context = stat.int64_value();
      json_.Key(found->second.name());
      WriteValue(plane, stat);
    };
    for (const proto::XStat& stat : event.stats()) write(stat);
    if (const auto found = plane.event_metadata().find(event.metadata_id()); found != plane.event_metadata().end()) {
      for (const proto::XStat& stat : found->second.stats()) write(stat);
    }
    json_.EndObject().EndObject();
    const std::tuple<std::string_view, int64_t, int64_t> flows[] = {{"s", producer_context, producer},
                                                                    {"f", consumer_context, consumer}};
    for (const auto& [phase, context, id] : flows) {
      if (id == 0 || context == kGenericContext) continue;
      const std::string_view name = context == kCallContext ? "call" : "execute";
      BeginEvent(phase).Member("bp", "e").Member("cat", name).Member("name", name).Member("id", id);
      json_.Member("pid", process).Member("tid", lane).Key("ts").Value(TraceMicroseconds(slice.start)).EndObject();
    }
  }

  void WriteValue(const proto::XPlane& plane, const proto::XStat& stat) {
    switch (stat.value_case()) {
      case proto::XStat::kDoubleValue:
        json_.Rounded(stat.double_value(), kDigits);
        return;
      case proto::XStat::kUint64Value:
        json_.Value(stat.uint64_value());
        return;
      case proto::XStat::kInt64Value:
        json_.Value(stat.int64_value());
        return;
      case proto::XStat::kStrValue:
        json_.Value(stat.str_value());
        return;
      case proto::XStat::kRefValue: {
        const auto found = plane.stat_metadata().find(static_cast<int64_t>(stat.ref_value()));
        json_.Value(found == plane.stat_metadata().end() ? std::string_view() : std::string_view(found->second.name()));
        return;
      }
      case proto::XStat::kBytesValue:
      case proto::XStat::VALUE_NOT_SET:
        break;
    }
    json_.Null();
  }

  JsonWriter& BeginEvent(std::string_view phase) { return json_.Line("\n").BeginObject().Member("ph", phase); }
  void WriteTimes(int64_t process, int64_t lane, const TraceSlice& slice) {
    json_.Member("pid", process).Member("tid", lane).Key("ts").Value(TraceMicroseconds(slice.start));
    json_.Key("dur").Value(TraceMicroseconds(slice.end - slice.start));
  }

  const proto::XSpace& space_;
  TextWriter& out_;
  JsonWriter json_;
  int64_t start_ns_ = 0;
  int64_t last_ = std::numeric_limits<int64_t>::max();  // start of the last event to write
  std::set<int64_t> lanes_;                             // numbers of the lines and lanes of the plane
};

}  // namespace

absl::Status ParseProfile(std::string_view bytes, proto::XSpace* space) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !space->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("not a profile: expected a serialized XSpace");
  }
  // Arbitrary bytes may parse as unknown fields.
  if (space->planes_size() == 0) return absl::InvalidArgumentError("not a profile: it has no planes");
  return absl::OkStatus();
}

absl::Status PrintProfile(std::string_view xspace, size_t top, TextWriter* out) {
  proto::XSpace space;
  if (absl::Status s = ParseProfile(xspace, &space); !s.ok()) return s;
  for (const std::string& host : space.hostnames()) *out << "host " << host << "\n";
  for (const proto::XPlane& plane : space.planes()) {
    *out << plane.name() << "\n";
    for (const proto::XLine& line : plane.lines()) {
      std::map<std::string, std::pair<int64_t, double>> sums;
      double end = 0;
      for (const proto::XEvent& event : line.events()) {
        std::pair<int64_t, double>& sum = sums[EventName(plane, event)];
        sum.first += 1;
        sum.second += static_cast<double>(event.duration_ps()) * 1e-6;
        end = std::max(end,
                       static_cast<double>(event.offset_ps()) * 1e-6 + static_cast<double>(event.duration_ps()) * 1e-6);
      }
      *out << "  " << line.name() << ": " << line.events_size() << " events, until " << FormatFixed(end, 1) << " us\n";
      std::vector<std::pair<std::string, std::pair<int64_t, double>>> order(sums.begin(), sums.end());
      std::stable_sort(order.begin(), order.end(),
                       [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
      for (size_t k = 0; k < std::min(order.size(), top); ++k) {
        const std::string us = FormatFixed(order[k].second.second, 2);
        const std::string times = StrCat(order[k].second.first);
        *out << std::string(us.size() < 16 ? 16 - us.size() : 1, ' ') << us << " us"
             << std::string(times.size() < 9 ? 9 - times.size() : 1, ' ') << times << " times  " << order[k].first
             << "\n";
      }
    }
    if (plane.lines_size() == 0) {
      for (const auto& metadata :
           std::map<int64_t, proto::XEventMetadata>(plane.event_metadata().begin(), plane.event_metadata().end())) {
        *out << "  " << metadata.second.name() << "\n";
      }
    }
  }
  return absl::OkStatus();
}

absl::Status WriteProfileTrace(std::string_view xspace, size_t max_events, TextWriter* out) {
  proto::XSpace space;
  if (absl::Status s = ParseProfile(xspace, &space); !s.ok()) return s;
  TraceWriter(space, out).Write(max_events);
  return absl::OkStatus();
}

}  // namespace hlokit::runtime

// SPDX-License-Identifier: Apache-2.0
#include "interp/runtime/observe/profile_files.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "interp/runtime/observe/xplane.pb.h"
#include "ir/core/double_text.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"

namespace hlokit::runtime {

namespace {

namespace proto = ::tensorflow::profiler;

std::string EventName(const proto::XPlane& plane, const proto::XEvent& event) {
  const auto found = plane.event_metadata().find(event.metadata_id());
  if (found == plane.event_metadata().end()) return StrCat("event ", event.metadata_id());
  return found->second.display_name().empty() ? found->second.name() : found->second.display_name();
}

// Significant digits of times and values: they keep a picosecond in an hour.
constexpr int kDigits = 15;
// Line of counters: each event sets a value. XProf's name.
constexpr std::string_view kCounters = "_counters_";
// Derived lines follow those of the file.
constexpr int64_t kFrameworkLines = 100;
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
      for (const proto::XLine& line : plane.lines()) {
        BeginEvent("M").Member("pid", process).Member("tid", line.id()).Member("name", "thread_name");
        json_.Key("args").BeginObject().Member("name", line.name()).EndObject().EndObject();
        for (const proto::XEvent& event : line.events()) {
          const double start = StartOf(line, event);
          if (start > last_) continue;
          if (line.name() == kCounters) {
            WriteCounter(plane, process, event, start);
          } else {
            WriteEvent(plane, process, line, event, start);
          }
        }
      }
      WriteFrameworkLines(plane, process);
    }
    json_.EndArray("\n").EndObject();
    out_ << '\n';
  }

 private:
  // An interval of a derived line.
  struct Derived {
    std::string name;
    double start;
    double end;
  };

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
      BeginEvent("M").Member("pid", process).Member("tid", ++id).Member("name", "thread_name");
      json_.Key("args").BeginObject().Member("name", name).EndObject().EndObject();
      for (const Derived& e : *events) {
        if (e.start > last_) continue;
        BeginEvent("X").Member("pid", process).Member("tid", id).Key("ts").Rounded(e.start, kDigits);
        json_.Key("dur").Rounded(e.end - e.start, kDigits).Member("name", e.name).EndObject();
      }
    }
  }

  // Splits the scopes of the operations that contain no others. Neighbors in one scope of one step share its event.
  void DeriveFrameworkLines(const proto::XPlane& plane, const proto::XLine& line, std::vector<Derived>* scopes,
                            std::vector<Derived>* ops) const {
    std::vector<size_t> open;  // indices into *scopes, outermost first
    std::string open_step;
    for (int k = 0; k < line.events_size(); ++k) {
      const proto::XEvent& event = line.events(k);
      // Times in a file are arbitrary: sums of doubles do not overflow.
      const bool contains = k + 1 < line.events_size() && line.events(k + 1).duration_ps() > 0 &&
                            static_cast<double>(line.events(k + 1).offset_ps()) <
                                static_cast<double>(event.offset_ps()) + static_cast<double>(event.duration_ps());
      if (contains || event.duration_ps() == 0) continue;
      const std::string path = StatText(plane, event, "tf_op");
      if (path.empty()) continue;
      const std::string step = StatText(plane, event, "group_id");
      const double start = StartOf(line, event);
      const double end = start + static_cast<double>(event.duration_ps()) * 1e-6;
      std::vector<std::string> names = absl::StrSplit(path, '/');
      ops->push_back({std::string(names.back()), start, end});
      names.pop_back();
      if (names.size() > kMaxScopeDepth) names.resize(kMaxScopeDepth);
      if (step != open_step) open.clear();
      open_step = step;
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

  void WriteCounter(const proto::XPlane& plane, int64_t process, const proto::XEvent& event, double start) {
    BeginEvent("C").Member("pid", process).Key("ts").Rounded(start, kDigits);
    json_.Member("name", EventName(plane, event)).Key("args").BeginObject();
    for (const proto::XStat& stat : event.stats()) {
      json_.Key("value");
      WriteValue(plane, stat);
      break;
    }
    json_.EndObject().EndObject();
  }

  void ComputeStart() {
    for (const proto::XPlane& plane : space_.planes()) {
      for (const proto::XLine& line : plane.lines()) {
        if (start_ns_ == 0 || line.timestamp_ns() < start_ns_) start_ns_ = line.timestamp_ns();
      }
    }
  }

  // Returns the start in microseconds.
  double StartOf(const proto::XLine& line, const proto::XEvent& event) const {
    // Times in a file are arbitrary: unsigned differences wrap without overflow.
    const uint64_t since = static_cast<uint64_t>(line.timestamp_ns()) - static_cast<uint64_t>(start_ns_);
    return static_cast<double>(static_cast<int64_t>(since)) * 1e-3 + static_cast<double>(event.offset_ps()) * 1e-6;
  }

  // Computes the start of the last event to write.
  void ComputeEnd(size_t max_events) {
    size_t count = 0;
    for (const proto::XPlane& plane : space_.planes()) {
      for (const proto::XLine& line : plane.lines()) count += static_cast<size_t>(line.events_size());
    }
    if (count <= max_events) return;
    std::vector<double> starts;
    starts.reserve(count);
    for (const proto::XPlane& plane : space_.planes()) {
      for (const proto::XLine& line : plane.lines()) {
        for (const proto::XEvent& event : line.events()) starts.push_back(StartOf(line, event));
      }
    }
    // Drops all events that start with the first dropped one, so that devices end alike.
    const auto first_out = starts.begin() + static_cast<std::ptrdiff_t>(max_events);
    std::nth_element(starts.begin(), first_out, starts.end());
    last_ = std::nextafter(*first_out, -std::numeric_limits<double>::infinity());
  }

  void WriteEvent(const proto::XPlane& plane, int64_t process, const proto::XLine& line, const proto::XEvent& event,
                  double start) {
    BeginEvent("X");
    WriteLocation(process, line, start);
    json_.Key("dur").Rounded(static_cast<double>(event.duration_ps()) * 1e-6, kDigits);
    json_.Member("name", EventName(plane, event)).Key("args").BeginObject();
    int64_t producer = 0;
    int64_t consumer = 0;
    const auto write = [&](const proto::XStat& stat) {
      const auto found = plane.stat_metadata().find(stat.metadata_id());
      if (found == plane.stat_metadata().end() || stat.value_case() == proto::XStat::kBytesValue) return;
      if (found->second.name() == "_p") producer = stat.int64_value();
      if (found->second.name() == "_c") consumer = stat.int64_value();
      json_.Key(found->second.name());
      WriteValue(plane, stat);
    };
    for (const proto::XStat& stat : event.stats()) write(stat);
    if (const auto found = plane.event_metadata().find(event.metadata_id()); found != plane.event_metadata().end()) {
      for (const proto::XStat& stat : found->second.stats()) write(stat);
    }
    json_.EndObject().EndObject();
    for (const auto& [id, phase] : {std::pair(producer, "s"), std::pair(consumer, "f")}) {
      if (id == 0) continue;
      BeginEvent(phase).Member("bp", "e").Member("cat", "execute").Member("name", "execute").Member("id", id);
      WriteLocation(process, line, start);
      json_.EndObject();
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
  void WriteLocation(int64_t process, const proto::XLine& line, double start) {
    json_.Member("pid", process).Member("tid", line.id()).Key("ts").Rounded(start, kDigits);
  }

  const proto::XSpace& space_;
  TextWriter& out_;
  JsonWriter json_;
  int64_t start_ns_ = 0;
  double last_ = std::numeric_limits<double>::infinity();
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

// SPDX-License-Identifier: Apache-2.0
// Writes a plane of an XSpace. Events and stats refer to metadata by id; metadata is created on first use.
#ifndef HLOKIT_SIMULATOR_EXPORT_PLANE_WRITER_H_
#define HLOKIT_SIMULATOR_EXPORT_PLANE_WRITER_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/observe/xplane.pb.h"

namespace hlokit::tpu {

inline int64_t Picoseconds(double seconds) { return std::llround(std::min(seconds * 1e12, 9e18)); }

// Nests the events of a line, given in order of their starts. An event that overlaps its neighbor or parent within the
// rounding error of summed seconds is moved, since viewers draw overlapping events on separate rows.
class Nesting {
 public:
  struct Span {
    int64_t start;
    int64_t end;
  };
  Span Place(Span span) {
    while (!ends_.empty() && ends_.back() <= span.start + kRounding) {
      last_ = ends_.back();
      ends_.pop_back();
    }
    span.start = std::max(span.start, std::min(last_, span.start + kRounding));
    span.end = std::max(span.end, span.start);
    if (!ends_.empty() && span.end > ends_.back()) span.end = ends_.back();
    ends_.push_back(span.end);
    return span;
  }

 private:
  static constexpr int64_t kRounding = 1000;  // picoseconds
  std::vector<int64_t> ends_;                 // ends of open events, innermost last
  int64_t last_ = 0;                          // end of the last closed event
};

class PlaneWriter {
 public:
  PlaneWriter(tensorflow::profiler::XSpace* space, int64_t id, std::string name) : plane_(*space->add_planes()) {
    plane_.set_id(id);
    plane_.set_name(std::move(name));
  }
  tensorflow::profiler::XPlane& plane() { return plane_; }

  template <typename Owner>
  void Stat(Owner* owner, const std::string& name, double value) {
    Add(owner, name)->set_double_value(value);
  }
  template <typename Owner>
  void Stat(Owner* owner, const std::string& name, int64_t value) {
    Add(owner, name)->set_int64_value(value);
  }
  template <typename Owner>
  void Stat(Owner* owner, const std::string& name, std::string value) {
    Add(owner, name)->set_str_value(std::move(value));
  }
  template <typename Owner>
  tensorflow::profiler::XStat* Add(Owner* owner, const std::string& name) {
    const auto [place, fresh] = stats_.insert({name, static_cast<int64_t>(stats_.size()) + 1});
    if (fresh) {
      tensorflow::profiler::XStatMetadata& metadata = (*plane_.mutable_stat_metadata())[place->second];
      metadata.set_id(place->second);
      metadata.set_name(name);
    }
    tensorflow::profiler::XStat* stat = owner->add_stats();
    stat->set_metadata_id(place->second);
    return stat;
  }

  // Finds or adds the metadata of an event. Returns true if it is new.
  bool Event(int64_t id, const std::string& name, tensorflow::profiler::XEventMetadata** metadata) {
    tensorflow::profiler::XEventMetadata& m = (*plane_.mutable_event_metadata())[id];
    *metadata = &m;
    if (m.id() != 0) return false;
    m.set_id(id);
    m.set_name(name);
    return true;
  }

  // Returns the metadata id of events with only a name.
  int64_t EventNamed(const std::string& name) {
    const auto [place, fresh] = names_.insert({name, static_cast<int64_t>(names_.size()) + 1});
    tensorflow::profiler::XEventMetadata* metadata = nullptr;
    if (fresh) Event(place->second, name, &metadata);
    return place->second;
  }

  tensorflow::profiler::XLine* Line(int64_t id, std::string_view name) {
    tensorflow::profiler::XLine* line = plane_.add_lines();
    line->set_id(id);
    line->set_display_id(id);
    line->set_name(std::string(name));
    return line;
  }

 private:
  tensorflow::profiler::XPlane& plane_;
  std::map<std::string, int64_t> stats_;
  std::map<std::string, int64_t> names_;
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_PLANE_WRITER_H_

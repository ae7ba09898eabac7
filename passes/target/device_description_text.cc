// SPDX-License-Identifier: Apache-2.0
// Parses and prints device descriptions, line by line.
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "passes/target/device_description.h"

namespace hlokit::tpu {

namespace {

struct Unit {
  std::string_view text;
  UnitKind dimension;
  double factor;
};
// Largest first within a unit kind: printing uses the first one that yields at least 1.
constexpr Unit kUnits[] = {
    {"GHz", UnitKind::kFrequency, 1e9}, {"MHz", UnitKind::kFrequency, 1e6}, {"Hz", UnitKind::kFrequency, 1},
    {"s", UnitKind::kTime, 1},          {"ms", UnitKind::kTime, 1e-3},      {"us", UnitKind::kTime, 1e-6},
    {"ns", UnitKind::kTime, 1e-9},      {"GiB", UnitKind::kBytes, 1 << 30}, {"MiB", UnitKind::kBytes, 1 << 20},
    {"KiB", UnitKind::kBytes, 1 << 10}, {"GB", UnitKind::kBytes, 1e9},      {"MB", UnitKind::kBytes, 1e6},
    {"B", UnitKind::kBytes, 1},         {"TB/s", UnitKind::kRate, 1e12},    {"GB/s", UnitKind::kRate, 1e9},
    {"MB/s", UnitKind::kRate, 1e6},     {"B/s", UnitKind::kRate, 1},
};

// Older names of keys, still accepted.
constexpr std::pair<std::string_view, std::string_view> kOldKeys[] = {
    {"mxu_batch_step", "mxu_batch_overhead"},
    {"gather_row", "gather_row_overhead"},
    {"scalar_op", "scalar_op_latency"},
    {"attention_call", "attention_launch_overhead"},
    {"attention_sequence", "attention_block_overhead"},
    {"ici_start", "ici_launch_overhead"},
    {"ici_hop", "ici_hop_latency"},
    {"xlu_overhead", "xlu_drain_latency"},
    {"dispatch_blocking", "blocking_dispatch_latency"},
    {"dispatch_queued", "queued_dispatch_latency"},
};

std::string_view CurrentKey(std::string_view key) {
  for (const auto& [from, to] : kOldKeys) {
    if (key == from) return to;
  }
  return key;
}

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view Strip(std::string_view s) {
  while (!s.empty() && IsSpace(s.front())) s.remove_prefix(1);
  while (!s.empty() && IsSpace(s.back())) s.remove_suffix(1);
  return s;
}

// Removes and returns the first word of `line`.
std::string_view TakeWord(std::string_view* line) {
  while (!line->empty() && IsSpace(line->front())) line->remove_prefix(1);
  size_t size = 0;
  while (size < line->size() && !IsSpace((*line)[size])) ++size;
  const std::string_view word = line->substr(0, size);
  line->remove_prefix(size);
  return word;
}

std::string UnitsOf(UnitKind dimension) {
  std::string list;
  for (const Unit& unit : kUnits) {
    if (unit.dimension == dimension) {
      if (!list.empty()) list.append(", ");
      list.append(unit.text);
    }
  }
  return list;
}

class DeviceDescriptionReader {
 public:
  DeviceDescriptionReader(const SourceBuffer& source, DiagnosticSink* sink) : text_(source.text()), sink_(*sink) {}

  std::optional<DeviceDescription> Read() {
    machine_.sources.resize(DeviceDescriptionFields().size());
    machine_.errors.resize(DeviceDescriptionFields().size());
    seen_.resize(DeviceDescriptionFields().size());
    size_t at = 0;
    while (at < text_.size() && !sink_.limit_reached()) {
      const size_t end = std::min(text_.find('\n', at), text_.size());
      ReadLine(text_.substr(at, end - at));
      at = end + 1;
    }
    if (machine_.name.empty() && !sink_.has_errors()) {
      sink_.Error(DiagnosticKind::kUnexpectedToken, {0, 0}, "expected `tpu NAME`, found an empty description");
    }
    if (!derived_ && !sink_.has_errors()) {
      for (size_t i = 0; i < seen_.size(); ++i) {
        if (seen_[i]) continue;
        sink_.Error(DiagnosticKind::kMissingAttribute, name_range_,
                    StrCat("missing parameter `", DeviceDescriptionFields()[i].name,
                           "`: ", DeviceDescriptionFields()[i].meaning),
                    "derive the target from an installed one with `like NAME`, and specify only what differs");
      }
    }
    if (sink_.has_errors()) return std::nullopt;
    return std::move(machine_);
  }

 private:
  SourceRange RangeOf(std::string_view piece) const {
    return {static_cast<uint32_t>(piece.data() - text_.data()), static_cast<uint32_t>(piece.size())};
  }

  void ReadLine(std::string_view line) {
    std::string_view comment;
    if (const size_t hash = line.find('#'); hash != std::string_view::npos) {
      comment = Strip(line.substr(hash + 1));
      line = line.substr(0, hash);
    }
    const std::string_view key = TakeWord(&line);
    if (key.empty()) return;
    if (machine_.name.empty()) {
      const std::string_view name = TakeWord(&line);
      if (key != "tpu" || name.empty()) {
        sink_.Error(DiagnosticKind::kUnexpectedToken, RangeOf(key), "expected `tpu NAME` before the parameters");
        machine_.name = std::string(key);
        return;
      }
      machine_.name = std::string(name);
      name_range_ = RangeOf(name);
    } else if (key == "like") {
      ReadLike(key, TakeWord(&line));
    } else {
      ReadParameter(key, &line, comment);
    }
    if (const std::string_view rest = TakeWord(&line); !rest.empty() && !sink_.has_errors()) {
      sink_.Error(DiagnosticKind::kUnexpectedToken, RangeOf(rest), "expected the end of the line",
                  "write sources after #");
    }
  }

  void ReadLike(std::string_view key, std::string_view name) {
    std::optional<DeviceDescription> base = BuiltinDeviceDescription(name);
    if (!base) {
      sink_.Error(DiagnosticKind::kUnknownAttribute, RangeOf(name.empty() ? key : name),
                  name.empty() ? std::string("expected the name of an installed target")
                               : StrCat("unknown target `", name, "`"),
                  DidYouMean(name, BuiltinDeviceDescriptions()));
      return;
    }
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (!seen_[i]) continue;
      sink_.Error(DiagnosticKind::kUnexpectedToken, RangeOf(key), "expected `like` before the parameters");
      return;
    }
    base->name = machine_.name;
    machine_ = std::move(*base);
    derived_ = true;
  }

  void ReadParameter(std::string_view key, std::string_view* line, std::string_view comment) {
    const DeviceDescriptionField* field = FindDeviceDescriptionField(CurrentKey(key));
    if (field == nullptr) {
      std::vector<std::string_view> names;
      for (const DeviceDescriptionField& f : DeviceDescriptionFields()) names.push_back(f.name);
      sink_.Error(DiagnosticKind::kUnknownAttribute, RangeOf(key), StrCat("unknown parameter `", key, "`"),
                  DidYouMean(key, names));
      *line = {};
      return;
    }
    const size_t row = static_cast<size_t>(field - DeviceDescriptionFields().data());
    if (seen_[row])
      sink_.Error(DiagnosticKind::kDuplicateAttribute, RangeOf(key), StrCat("duplicate parameter `", key, "`"));
    seen_[row] = true;
    const std::string_view number = TakeWord(line);
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (number.empty() || error != std::errc() || end != number.data() + number.size() || !std::isfinite(value)) {
      sink_.Error(DiagnosticKind::kUnexpectedToken, RangeOf(number.empty() ? key : number),
                  StrCat("expected a number for `", key, "`"));
      *line = {};
      return;
    }
    if (field->unit != UnitKind::kCount && field->unit != UnitKind::kFraction) {
      const std::string_view word = TakeWord(line);
      const Unit* unit = nullptr;
      for (const Unit& u : kUnits) {
        if (u.text == word && u.dimension == field->unit) unit = &u;
      }
      if (unit == nullptr) {
        sink_.Error(DiagnosticKind::kUnexpectedToken, RangeOf(word.empty() ? number : word),
                    StrCat("expected a unit for `", key, "` after the number"),
                    StrCat("expected one of ", UnitsOf(field->unit)));
        return;
      }
      value *= unit->factor;
    }
    if (value < field->minimum || value > field->maximum) {
      sink_.Error(
          DiagnosticKind::kNumberOutOfRange, RangeOf(number),
          StrCat("`", key, "` must be between ", FormatDouble(field->minimum), " and ", FormatDouble(field->maximum),
                 field->unit == UnitKind::kCount || field->unit == UnitKind::kFraction
                     ? std::string_view()
                     : std::string_view(" in SI units")));
      return;
    }
    machine_.*field->member = value;
    machine_.sources[row] = std::string(comment);
    machine_.errors[row] = 0;
    ReadErrorBar(row, line);
  }

  // Reads "+-5%" if it follows.
  void ReadErrorBar(size_t row, std::string_view* line) {
    std::string_view rest = *line;
    const std::string_view bar = TakeWord(&rest);
    if (bar.substr(0, 2) != "+-") return;
    *line = rest;
    double percent = 0;
    const char* last = bar.data() + bar.size();
    const auto [end, error] = std::from_chars(bar.data() + 2, last, percent);
    if (error != std::errc() || end + 1 != last || *end != '%' || !(percent >= 0 && percent <= 1000)) {
      sink_.Error(DiagnosticKind::kUnexpectedToken, RangeOf(bar), "expected an error bar between +-0% and +-1000%");
      return;
    }
    machine_.errors[row] = percent / 100;
  }

  const std::string_view text_;
  DiagnosticSink& sink_;
  DeviceDescription machine_;
  SourceRange name_range_;
  std::vector<bool> seen_;
  bool derived_ = false;
};

// Returns a number and unit whose product is `value` again, bit for bit if a unit other than the smallest allows it:
// the shortest such number, of at least 1 if others are not shorter.
std::string ParameterText(double value, UnitKind dimension) {
  constexpr double kLeast = 0.1;
  const Unit* smallest = nullptr;
  std::string best;
  bool best_is_fraction = false;
  for (const Unit& unit : kUnits) {
    if (unit.dimension != dimension) continue;
    smallest = &unit;
    const double scaled = value / unit.factor;
    if (!(scaled >= kLeast) || scaled * unit.factor != value) continue;
    std::string text = StrCat(FormatDouble(scaled), " ", unit.text);
    if (best.empty() || text.size() < best.size() || (best_is_fraction && text.size() == best.size())) {
      best = std::move(text);
      best_is_fraction = scaled < 1;
    }
  }
  if (!best.empty()) return best;
  if (smallest == nullptr) return FormatDouble(value);
  if (dimension == UnitKind::kTime) return StrCat(FormatDouble(value), " s");
  return StrCat(FormatDouble(value / smallest->factor), " ", smallest->text);
}

}  // namespace

std::optional<DeviceDescription> ParseDeviceDescription(const SourceBuffer& source, DiagnosticSink* sink) {
  if (source.text().size() > (size_t{1} << 20)) {
    sink->Error(DiagnosticKind::kTooLarge, {0, 0}, "the description of a target exceeds the limit of 1 MiB");
    return std::nullopt;
  }
  return DeviceDescriptionReader(source, sink).Read();
}

std::string ToString(const DeviceDescription& machine) {
  std::string out = StrCat("tpu ", machine.name, "\n");
  for (size_t i = 0; i < DeviceDescriptionFields().size(); ++i) {
    const DeviceDescriptionField& field = DeviceDescriptionFields()[i];
    std::string line = StrCat("  ", field.name);
    line.resize(std::max<size_t>(line.size() + 1, 32), ' ');
    line += ParameterText(machine.*field.member, field.unit);
    if (i < machine.errors.size() && machine.errors[i] > 0) {
      // Rounded, since the fraction of a percentage is rarely exact.
      StrAppend(&line, " +-", FormatDouble(std::round(machine.errors[i] * 1e8) / 1e6), "%");
    }
    if (i < machine.sources.size() && !machine.sources[i].empty()) {
      line.resize(std::max<size_t>(line.size() + 1, 49), ' ');
      StrAppend(&line, "# ", machine.sources[i]);
    }
    StrAppend(&out, line, "\n");
  }
  return out;
}

}  // namespace hlokit::tpu

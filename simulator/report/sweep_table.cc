// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/sweep_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/core/text_writer.h"
#include "simulator/report/device_report.h"
#include "simulator/report/number_text.h"
#include "simulator/report/simulated_module.h"
#include "simulator/timing/device_selection.h"

namespace hlokit::tpu {

absl::StatusOr<SweepValues> ParseSweep(std::string_view text, bool any) {
  const size_t equal = text.find('=');
  if (equal == std::string_view::npos || equal == 0 || equal + 1 == text.size()) {
    return absl::InvalidArgumentError(StrCat("expected WHAT=VALUE,VALUE,..., found `", text, "`"));
  }
  SweepValues sweep;
  sweep.what = std::string(text.substr(0, equal));
  std::vector<std::string_view> names = {"device", "chips", "dtype", "batch", "seq"};
  for (std::string_view parameter : ScalableParameters()) names.push_back(parameter);
  if (!any && std::find(names.begin(), names.end(), sweep.what) == names.end()) {
    const std::string near = DidYouMeanSuffix(sweep.what, names);
    return absl::InvalidArgumentError(
        StrCat("cannot sweep `", sweep.what, "`",
               near.empty() ? "; expected device, chips, dtype, batch, seq or a parameter of the target as in --scale"
                            : near));
  }
  for (size_t at = equal + 1; at <= text.size(); at += sweep.values.back().size() + 1) {
    sweep.values.emplace_back(text.substr(at, text.find(',', at) - at));
  }
  if (std::find(sweep.values.begin(), sweep.values.end(), "") != sweep.values.end()) {
    return absl::InvalidArgumentError(StrCat("expected a value before and after each comma, found `", text, "`"));
  }
  return sweep;
}

SweepRow SimulateSweepRow(const std::string& value, const SimulationOptions& options, const Module& module) {
  const SimulatedModule simulated(module, options);
  const Simulation& simulation = simulated.simulation;
  const DeviceUse use = DeviceUseOf(options, simulation);
  return {value,
          ToMicroseconds(simulation.step_seconds),
          ToMicroseconds(simulation.device_seconds),
          Share(simulation.core_busy, simulation.device_seconds),
          simulated.memory.peak_bytes,
          simulation.flops,
          use.used_devices,
          use.devices,
          simulated.memory.fits(),
          std::string(ToString(simulation.bound))};
}

namespace {

// A row without its texts, which follow.
struct RowNumbers {
  double step_us = 0, device_us = 0, busy = 0, flops = 0;
  int64_t peak_bytes = 0, used_devices = 1, devices = 1;
  uint64_t fits = 0;
  uint64_t value_bytes = 0;
};

}  // namespace

std::string EncodeSweepRow(const SweepRow& row) {
  const RowNumbers numbers = {row.step_us,      row.device_us, row.busy,           row.flops,       row.peak_bytes,
                              row.used_devices, row.devices,   row.fits ? 1u : 0u, row.value.size()};
  return StrCat(std::string_view(reinterpret_cast<const char*>(&numbers), sizeof(numbers)), row.value, row.bound);
}

void DecodeSweepRow(std::string_view bytes, SweepRow* row) {
  RowNumbers n;
  if (bytes.size() < sizeof(n)) return;
  std::memcpy(&n, bytes.data(), sizeof(n));
  bytes.remove_prefix(sizeof(n));
  if (n.value_bytes > bytes.size()) return;
  *row = {std::string(bytes.substr(0, n.value_bytes)),
          n.step_us,
          n.device_us,
          n.busy,
          n.peak_bytes,
          n.flops,
          n.used_devices,
          n.devices,
          n.fits != 0,
          std::string(bytes.substr(n.value_bytes))};
}

std::string SweepTable(const std::string& what, const std::vector<SweepRow>& rows) {
  constexpr size_t kPlotWidth = 48;
  std::string out;
  TextWriter writer(&out);
  const bool each = what == "batch";
  for (std::string_view head : {"step", "device"}) PrintCell(head, 15, &writer);
  if (each) PrintCell("an example", 13, &writer);
  for (std::string_view head : {"busy %", "HBM GiB", "fits"}) PrintCell(head, 8, &writer);
  PrintCell("GFLOP", 12, &writer);
  writer << "bound by        " << what << "\n";
  double longest = 0;
  for (const SweepRow& row : rows) {
    longest = std::max(longest, row.step_us);
    PrintCell(FormatSeconds(row.step_us * 1e-6), 15, &writer);
    PrintCell(FormatSeconds(row.device_us * 1e-6), 15, &writer);
    if (each) {
      const double examples = std::strtod(row.value.c_str(), nullptr);
      PrintCell(examples > 0 ? FormatSeconds(row.step_us * 1e-6 / examples) : std::string("-"), 13, &writer);
    }
    PrintCell(FormatFixed(100 * row.busy, 1), 8, &writer);
    PrintCell(FormatFixed(static_cast<double>(row.peak_bytes) / (1 << 30), 2), 8, &writer);
    PrintCell(row.fits ? "yes" : "no", 8, &writer);
    PrintCell(FormatFixed(row.flops * 1e-9, 3), 12, &writer);
    std::string bound = row.bound;
    bound.resize(std::max<size_t>(bound.size(), 14), ' ');
    writer << bound << "  " << row.value;
    if (row.used_devices < row.devices) writer << "  (" << row.used_devices << " of " << row.devices << " devices)";
    writer << "\n";
  }
  if (std::any_of(rows.begin(), rows.end(), [](const SweepRow& row) { return row.used_devices < row.devices; })) {
    writer << "Other devices are idle: the program is not for as many. Trace it again for each number of devices.\n";
  }
  size_t width = 0;
  for (const SweepRow& row : rows) width = std::max(width, row.value.size());
  writer << "\nstep time\n";
  for (const SweepRow& row : rows) {
    PrintCell(row.value, width, &writer);
    const double part = longest > 0 ? row.step_us / longest : 0;
    writer << "|" << std::string(static_cast<size_t>(std::lround(part * static_cast<double>(kPlotWidth))), '#') << " "
           << FormatSeconds(row.step_us * 1e-6) << (row.fits ? "" : "  does not fit") << "\n";
  }
  writer.Flush();
  return out;
}

std::string SweepJson(const std::string& what, const std::vector<SweepRow>& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const SweepRow& row : rows) {
    json.push_back({{what, row.value},
                    {"step_time_us", row.step_us},
                    {"device_time_us", row.device_us},
                    {"core_busy", row.busy},
                    {"peak_bytes", row.peak_bytes},
                    {"flops", row.flops},
                    {"devices", row.devices},
                    {"used_devices", row.used_devices},
                    {"fits", row.fits},
                    {"bound_by", row.bound}});
  }
  return json.dump(1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace hlokit::tpu

// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/device_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "simulator/report/number_text.h"

namespace hlokit::tpu {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kListedDevices = 8;
constexpr size_t kWidth = 10;

void PrintDevice(const DeviceTimelines& devices, const DeviceTimeBreakdown& share, const std::string& name,
                 TextWriter* out) {
  for (double part : {share.compute, share.exposed, share.sync, share.other, share.idle, share.communication}) {
    PrintCell(Percent(part, devices.seconds), kWidth, out);
  }
  PrintCell(Percent(share.hidden(), share.communication), kWidth, out);
  *out << name << "\n";
}

}  // namespace

DeviceUse DeviceUseOf(const SimulationOptions& options, const Simulation& simulation) {
  const int64_t per_chip = std::max<int64_t>(options.machine.devices_per_chip(), 1);
  DeviceUse use;
  use.chips = options.topology.Chips();
  use.devices = use.chips * per_chip;
  use.used_devices = std::clamp<int64_t>(simulation.devices.devices, 1, use.devices);
  use.used_chips = (use.used_devices + per_chip - 1) / per_chip;
  return use;
}

std::string ToString(const DeviceUse& use) {
  const auto part = [](int64_t used, int64_t all, std::string_view noun) {
    return StrCat(used < all ? StrCat(used, " of ") : std::string(), Counted(all, noun));
  };
  return StrCat(part(use.used_chips, use.chips, "chip"), ", ", part(use.used_devices, use.devices, "device"));
}

std::string IdleNote(const DeviceUse& use) {
  if (!use.has_idle()) return "";
  const int64_t idle = use.devices - use.used_devices;
  return StrCat("The program is for ", Counted(use.used_devices, "device: ", "devices: "), Counted(idle, "is", "are"),
                " idle. For ", use.devices,
                " devices trace it again, with their mesh (ir-dump: --mesh or --replicas).");
}

void PrintDevices(const DeviceTimelines& devices, TextWriter* out) {
  if (devices.devices < 2) return;
  *out << "\n";
  for (std::string_view head : {"compute %", "exposed %", "sync %", "other %", "idle %", "comm %", "hidden %"}) {
    PrintCell(head, kWidth, out);
  }
  *out << "device\n";
  const std::vector<DeviceTimeBreakdown>& shares = devices.shares;
  if (shares.size() == 1) {
    PrintDevice(devices, shares[0], StrCat("each of ", devices.devices), out);
    return;
  }
  const std::vector<int64_t> stragglers = StragglersOf(devices);
  // With many devices lists those with the most compute time.
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (shares.size() > kListedDevices) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return shares[a].compute > shares[b].compute; });
    order.resize(kListedDevices);
  }
  for (size_t d : order) {
    const bool slow = std::find(stragglers.begin(), stragglers.end(), static_cast<int64_t>(d)) != stragglers.end();
    PrintDevice(devices, shares[d], StrCat(d, slow ? "  straggler" : ""), out);
  }
  DeviceTimeBreakdown mean;
  for (const DeviceTimeBreakdown& share : shares) {
    const double n = static_cast<double>(shares.size());
    mean.compute += share.compute / n;
    mean.exposed += share.exposed / n;
    mean.sync += share.sync / n;
    mean.other += share.other / n;
    mean.idle += share.idle / n;
    mean.communication += share.communication / n;
  }
  if (shares.size() > order.size()) *out << "... " << static_cast<int64_t>(shares.size() - order.size()) << " more\n";
  PrintDevice(devices, mean, "mean", out);
  if (devices.scaled) *out << "Long loops are extrapolated from some of their iterations.\n";
}

void PrintCollectives(const DeviceTimelines& devices, TextWriter* out) {
  if (devices.collectives.empty()) return;
  *out << "\n";
  for (std::string_view head : {"time", "runs", "MB", "GB/s", "efficiency", "exposed", "sync"}) {
    PrintCell(head, kWidth, out);
  }
  *out << "collective\n";
  for (const CollectiveTotals& t : devices.collectives) {
    PrintCell(FormatSeconds(t.seconds), kWidth, out);
    PrintCell(FormatFixed(t.runs, 0), kWidth, out);
    PrintCell(FormatSignificant(t.bytes / 1e6), kWidth, out);
    PrintCell(FormatSignificant(Share(t.bytes, t.seconds) / 1e9), kWidth, out);
    PrintCell(Percent(t.ideal, t.seconds) + " %", kWidth, out);
    PrintCell(FormatSeconds(t.exposed), kWidth, out);
    PrintCell(FormatSeconds(t.sync), kWidth, out);
    *out << t.kind << "\n";
  }
}

void AddDevicesJson(const DeviceTimelines& devices, Json* json) {
  Json workers = Json::object();
  workers["count"] = devices.devices;
  workers["homogeneous"] = devices.shares.size() == 1;
  workers["scaled"] = devices.scaled;
  workers["events"] = devices.events;
  workers["stragglers"] = StragglersOf(devices);
  Json rows = Json::array();
  for (size_t d = 0; d < devices.shares.size(); ++d) {
    const DeviceTimeBreakdown& share = devices.shares[d];
    rows.push_back({{"device", d},
                    {"compute_us", ToMicroseconds(share.compute)},
                    {"exposed_communication_us", ToMicroseconds(share.exposed)},
                    {"sync_wait_us", ToMicroseconds(share.sync)},
                    {"other_wait_us", ToMicroseconds(share.other)},
                    {"idle_us", ToMicroseconds(share.idle)},
                    {"communication_us", ToMicroseconds(share.communication)},
                    {"hidden_communication_us", ToMicroseconds(share.hidden())}});
    if (share.sync_for.empty()) continue;
    Json waited = Json::array();
    for (const auto& [device, seconds] : share.sync_for) {
      waited.push_back({{"device", device}, {"time_us", ToMicroseconds(seconds)}});
    }
    rows.back()["waited_for"] = std::move(waited);
  }
  workers["devices"] = std::move(rows);
  (*json)["workers"] = std::move(workers);
  Json collectives = Json::array();
  for (const CollectiveTotals& t : devices.collectives) {
    collectives.push_back({{"kind", std::string(t.kind)},
                           {"runs", t.runs},
                           {"bytes", t.bytes},
                           {"time_us", ToMicroseconds(t.seconds)},
                           {"bytes_per_second", Share(t.bytes, t.seconds)},
                           {"efficiency", Share(t.ideal, t.seconds)},
                           {"exposed_us", ToMicroseconds(t.exposed)},
                           {"sync_wait_us", ToMicroseconds(t.sync)}});
  }
  (*json)["collectives"] = std::move(collectives);
}

}  // namespace hlokit::tpu

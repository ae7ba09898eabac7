// SPDX-License-Identifier: Apache-2.0
// Devices of a run as text and as JSON: time shares of each worker, stragglers, collectives by kind.
#ifndef HLOKIT_SIMULATOR_REPORT_DEVICE_REPORT_H_
#define HLOKIT_SIMULATOR_REPORT_DEVICE_REPORT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ir/core/text_writer.h"
#include "simulator/timing/device_timelines.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

// How many chips and devices a target has, and on how many of them the program runs.
struct DeviceUse {
  int64_t chips = 1;
  int64_t devices = 1;
  int64_t used_chips = 1;
  int64_t used_devices = 1;
  bool has_idle() const { return used_devices < devices; }
};
DeviceUse DeviceUseOf(const SimulationOptions& options, const Simulation& simulation);
// Returns "64 chips, 64 devices", or "8 of 64 chips, 8 of 64 devices".
std::string ToString(const DeviceUse& use);
// Returns a sentence on idle devices; empty if there are none.
std::string IdleNote(const DeviceUse& use);

// Prints nothing for one device without collectives.
void PrintDevices(const DeviceTimelines& devices, TextWriter* out);
void PrintCollectives(const DeviceTimelines& devices, TextWriter* out);
// Adds the keys `workers` and `collectives`.
void AddDevicesJson(const DeviceTimelines& devices, nlohmann::ordered_json* json);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_DEVICE_REPORT_H_

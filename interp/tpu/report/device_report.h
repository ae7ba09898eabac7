// SPDX-License-Identifier: Apache-2.0
// Devices of a run as text and as JSON: time shares of each worker, stragglers, collectives by kind.
#ifndef HLOKIT_INTERP_TPU_REPORT_DEVICE_REPORT_H_
#define HLOKIT_INTERP_TPU_REPORT_DEVICE_REPORT_H_

#include <nlohmann/json_fwd.hpp>

#include "interp/tpu/timing/device_timelines.h"
#include "ir/core/text_writer.h"

namespace hlokit::tpu {

// Prints nothing for one device without collectives.
void PrintDevices(const DeviceTimelines& devices, TextWriter* out);
void PrintCollectives(const DeviceTimelines& devices, TextWriter* out);
// Adds the keys `workers` and `collectives`.
void AddDevicesJson(const DeviceTimelines& devices, nlohmann::ordered_json* json);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_REPORT_DEVICE_REPORT_H_

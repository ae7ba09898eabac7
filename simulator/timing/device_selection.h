// SPDX-License-Identifier: Apache-2.0
// Simulated devices by name: "v5p", "v5p:4x4x4".
#ifndef HLOKIT_SIMULATOR_TIMING_DEVICE_SELECTION_H_
#define HLOKIT_SIMULATOR_TIMING_DEVICE_SELECTION_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/target/device_description.h"
#include "passes/target/topology.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

// Returns a built-in description. The error names those that exist, and the nearest one.
absl::StatusOr<DeviceDescription> NamedDevice(std::string_view name);

// Returns the names that ScaleParameter takes: short ones of frequent parameters, and those of all fields.
std::vector<std::string_view> ScalableParameters();

// Multiplies a parameter, such as "hbm" or "hbm_rate", by a factor, to see what bounds next. Returns InvalidArgument
// for unknown names, with the nearest one, factors that are not positive, and results out of range; changes nothing
// then.
absl::Status ScaleParameter(std::string_view name, double factor, DeviceDescription* machine);
// The same of "PARAMETER=FACTOR".
absl::Status ApplyScale(std::string_view text, DeviceDescription* machine);

// Parses "3:1.5" or "any:1.5", a device and its factor.
absl::StatusOr<Straggler> ParseStraggler(std::string_view text);
// Returns an error (out of range) for a straggler that is none of the devices.
absl::Status CheckStragglers(const SimulationOptions& options);

// Splits "v5p:4x4x4" into "v5p" and "4x4x4", and the accelerator type "v5p-128", of 128 cores, into "v5p" and "64".
std::pair<std::string, std::string> SplitDeviceName(std::string_view device);

// Returns the topology in `text`; empty: as many chips as the module requires. Returns an error for an invalid topology
// (invalid argument), or fewer devices than the module requires (failed precondition). `device`: the word for the
// device in messages.
absl::StatusOr<Topology> TopologyFor(const DeviceDescription& machine, std::string_view text, const Module& module,
                                     std::string_view device);

// Returns options for the module on a device such as "v5p:4x4x4", with default values for all else.
absl::StatusOr<SimulationOptions> OptionsForDevice(std::string_view device, const Module& module);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_DEVICE_SELECTION_H_

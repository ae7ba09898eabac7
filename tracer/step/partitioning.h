// SPDX-License-Identifier: Apache-2.0
// Programs of a virtual device, which stands for the devices that the shardings of its tensors name (ops/sharding.h):
// its values are whole, and its programs run divided.
#ifndef HLOKIT_TRACER_STEP_PARTITIONING_H_
#define HLOKIT_TRACER_STEP_PARTITIONING_H_

#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ir/graph/module.h"
#include "tracer/graph/tiling.h"

namespace hlokit::lazy {

// ClientOptions::platform of the session: the device is "SPMD:0".
inline constexpr std::string_view kSpmdPlatform = "SPMD";

// Makes a module with shardings one for the devices that they name, and sets the sharding of its result to what
// propagation finds.
absl::Status SetPartitions(Module* module);
// Returns the distribution of each array that a lowered program returns, as SetPartitions set it; nullopt of those that
// are not tiled.
std::vector<std::optional<Tiling>> ResultShardings(const Module& lowered);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_PARTITIONING_H_

// SPDX-License-Identifier: Apache-2.0
// The graphs of the programs of a profile, for its page.
#ifndef HLOKIT_SIMULATOR_EXPORT_PROFILE_GRAPHS_H_
#define HLOKIT_SIMULATOR_EXPORT_PROFILE_GRAPHS_H_

#include <string>

#include "simulator/export/profile_simulation.h"

namespace hlokit::tpu {

// Returns the data of the graphs (GraphsJson) with simulated times: that of the report first, the others in the order
// of their first calls, as many as there is room for. `device`: its name in the page.
std::string ProfileGraphs(const ProfileSimulation& simulated, const std::string& device);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_PROFILE_GRAPHS_H_

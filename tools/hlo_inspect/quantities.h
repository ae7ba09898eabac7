// SPDX-License-Identifier: Apache-2.0
// Quantities for people; the JSON has them exactly.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_QUANTITIES_H_
#define HLOKIT_TOOLS_HLO_INSPECT_QUANTITIES_H_

#include <string>

namespace hlokit::cli {

// Returns "11724" below 100,000, above "447.3 G", with the prefixes of SI.
std::string HumanCount(double count);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_QUANTITIES_H_

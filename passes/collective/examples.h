// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_COLLECTIVE_EXAMPLES_H_
#define HLOKIT_PASSES_COLLECTIVE_EXAMPLES_H_

#include <string_view>

namespace hlokit {

// Returns HLO text that shows a pass on collectives at work, or "".
std::string_view CollectiveExample(std::string_view pass);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_COLLECTIVE_EXAMPLES_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_EXAMPLES_H_
#define HLOKIT_PASSES_SIMPLIFY_EXAMPLES_H_

#include <string_view>

namespace hlokit {

// HLO text that shows a pass of this room at work; "" if there is none.
std::string_view SimplifyExample(std::string_view pass);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_EXAMPLES_H_

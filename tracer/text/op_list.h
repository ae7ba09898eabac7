// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_TRACER_TEXT_OP_LIST_H_
#define HLOKIT_TRACER_TEXT_OP_LIST_H_

#include <string>

namespace hlokit::lazy {

// Returns the schemas of the ops that programs may call, one a line.
std::string OpList();

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_OP_LIST_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_IR_VERIFY_ELIDED_CONSTANTS_H_
#define HLOKIT_IR_VERIFY_ELIDED_CONSTANTS_H_

#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit {

// Warns, once for all, of constants whose values the text does not have ("{...}"): the program is another one without
// them.
void WarnOfElidedConstants(const Module& module, DiagnosticSink* sink);

}  // namespace hlokit

#endif  // HLOKIT_IR_VERIFY_ELIDED_CONSTANTS_H_

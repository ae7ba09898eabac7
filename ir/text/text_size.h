// SPDX-License-Identifier: Apache-2.0
// Size of the text forms that print called computations in place (canonical, fingerprint): a computation that several
// instructions call is printed for each, and so are those it calls, so that a small module can have an endless text.
#ifndef HLOKIT_IR_TEXT_TEXT_SIZE_H_
#define HLOKIT_IR_TEXT_TEXT_SIZE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ir/graph/module_fwd.h"
#include "ir/text/printer.h"

namespace hlokit {

// Returns an error if the text in this form has more than 20 million instructions. Linear in the module.
absl::Status CheckTextSize(const Module& module, const PrintOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_TEXT_SIZE_H_

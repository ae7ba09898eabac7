// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_INSTRUMENTATION_DEPENDENT_RESULTS_H_
#define HLOKIT_PASSES_INSTRUMENTATION_DEPENDENT_RESULTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module_fwd.h"
#include "ir/ops/opcode.h"

namespace hlokit {

// Returns for each result leaf of the entry 1 if it depends on an instruction of one of these opcodes.
std::vector<uint8_t> DependentResults(const Module& module, absl::Span<const Opcode> opcodes);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_INSTRUMENTATION_DEPENDENT_RESULTS_H_

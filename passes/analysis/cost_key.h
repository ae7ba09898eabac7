// SPDX-License-Identifier: Apache-2.0
// What tables by instruction, opcode, computation, source line or scope count an instruction under.
#ifndef HLOKIT_PASSES_ANALYSIS_COST_KEY_H_
#define HLOKIT_PASSES_ANALYSIS_COST_KEY_H_

#include <string>

#include "passes/analysis/cost.h"

namespace hlokit {

// Its name, opcode, computation, "file:line" or path of scopes; "(none)" without metadata.
std::string KeyOf(Instruction i, CostKey key);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_COST_KEY_H_

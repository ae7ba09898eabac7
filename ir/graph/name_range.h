// SPDX-License-Identifier: Apache-2.0
// Where diagnostics about an instruction point: at its name in the source text.
#ifndef HLOKIT_IR_GRAPH_NAME_RANGE_H_
#define HLOKIT_IR_GRAPH_NAME_RANGE_H_

#include <cstdint>

#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit {

// Empty for an instruction that is in no source text, and for an invalid one.
inline SourceRange NameRange(Instruction at) {
  if (!at.valid() || at.record().source_offset == InstructionRecord::kNoSourceOffset) return {};
  return {at.record().source_offset, static_cast<uint32_t>(at.name().size())};
}

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_NAME_RANGE_H_

// SPDX-License-Identifier: Apache-2.0
// Hashes of instructions for the matching of two modules: of an instruction by itself, from all contents to its opcode
// alone, and with everything upstream or downstream of it in its computation.
#ifndef HLOKIT_PASSES_DIFF_INSTRUCTION_LABELS_H_
#define HLOKIT_PASSES_DIFF_INSTRUCTION_LABELS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

// What a label covers.
enum class LabelLevel : uint8_t {
  kContents,   // opcode, shape, all attributes but annotations, the contents of callees
  kOperation,  // opcode, shape without layout, semantic attributes without callees
  kKind,       // opcode, element type, rank or size of the tuple
  kOpcode,
};
inline constexpr size_t kLabelLevels = 4;

struct InstructionLabels {
  // All indexed by instruction id.
  std::array<std::vector<uint64_t>, kLabelLevels> by_level;
  std::vector<uint64_t> upstream;  // kContents of the instruction and of everything that it depends on
  std::vector<uint64_t>
      downstream;  // kContents of the instruction and of everything that depends on it, by operand index
  // By computation id: the instructions, operands first, and a hash of them.
  std::vector<std::vector<InstructionId>> order;
  std::vector<uint64_t> computations;

  uint64_t of(LabelLevel level, InstructionId id) const { return by_level[static_cast<size_t>(level)][id.value]; }
};

// Hashes are of ids of the context: labels of modules with the same context are comparable. Linear time.
InstructionLabels LabelInstructions(const Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_DIFF_INSTRUCTION_LABELS_H_

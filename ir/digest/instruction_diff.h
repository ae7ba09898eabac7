// SPDX-License-Identifier: Apache-2.0
// Differences of two instructions by themselves, as text.
#ifndef HLOKIT_IR_DIGEST_INSTRUCTION_DIFF_H_
#define HLOKIT_IR_DIGEST_INSTRUCTION_DIFF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/digest/fingerprint.h"
#include "ir/graph/module.h"

namespace hlokit {

struct InstructionDifference {
  enum class Kind : uint8_t {
    kOpcode,
    kShape,
    kLayout,  // of shapes that are equal otherwise
    kOperandCount,
    kAttribute,  // semantic, annotations too
    kSharding,
    kFrontendAttributes,
    kValue,  // of a constant; the number of a parameter
    kMetadata,
  };
  Kind kind;
  std::string text;  // "attribute dimensions: {0} vs {1}"; long values are shortened in the middle
};

// Returns the differences that `options` include. Which instructions the operands are, and the contents of callees, do
// not count. Of different opcodes, only those and the shapes are compared.
std::vector<InstructionDifference> InstructionDifferences(Instruction a, Instruction b,
                                                          const FingerprintOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_IR_DIGEST_INSTRUCTION_DIFF_H_

// SPDX-License-Identifier: Apache-2.0
// Explains shardings that propagation found: the chain of instructions by which one came, back to the text, and the
// proposals that conflicted with it.
#ifndef HLOKIT_PASSES_SHARDING_EXPLANATION_H_
#define HLOKIT_PASSES_SHARDING_EXPLANATION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/sharding/propagation.h"

namespace hlokit::sharding {

// One line of an explanation: a leaf, its sharding at that point, and where that came from.
struct ExplanationLine {
  int depth = 0;
  InstructionId instruction;
  int64_t leaf = 0;
  std::string sharding;  // as in the text
  // "given in the text"; "from operand y, level 1, along ab,bc->ac {b reduced}".
  std::string reason;
};

struct Explanation {
  std::vector<ExplanationLine> chain;     // the instruction first, then what it came from, deeper
  std::vector<ExplanationLine> rejected;  // proposals for the instruction that conflicted with what it had
};

// What is explained: leaves of an instruction.
struct Subject {
  Instruction instruction;
  std::vector<int64_t> leaves;
};
// Finds `NAME`, of which it takes the first leaves, or `NAME[LEAF]`. Returns an error with a suggestion if there is
// none.
absl::StatusOr<Subject> FindSubject(const Module& module, std::string name);

// Explains the sharding of a leaf of `instruction` in `module`, which propagation changed with this log. The chain is
// empty if the leaf has no sharding.
Explanation ExplainSharding(const Module& module, const PropagationLog& log, Instruction instruction, int64_t leaf);

// Returns a sharding as in the text, without metadata.
std::string TilingText(const Module& module, const Tiling& tiling);

// Returns the text of a reason kind: "operand", "user", …
std::string_view ToString(SourceKind kind);
// Returns where a leaf got its sharding: the kind of the last change, or kText.
SourceKind SourceOf(const PropagationLog& log, Instruction instruction, int64_t leaf);

}  // namespace hlokit::sharding

#endif  // HLOKIT_PASSES_SHARDING_EXPLANATION_H_

// SPDX-License-Identifier: Apache-2.0
// Explains the difference of two fingerprints: the first difference on the path down from the entry root; or, if the
// fingerprints are equal, the differences that they ignore.
#ifndef HLOKIT_IR_DIGEST_FINGERPRINT_DIFF_H_
#define HLOKIT_IR_DIGEST_FINGERPRINT_DIFF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/core/source_buffer.h"
#include "ir/digest/fingerprint.h"
#include "ir/graph/module_fwd.h"

namespace hlokit {

// One module of a comparison. The source, which may be null, supplies line numbers.
struct FingerprintedModule {
  const Module* module;
  const FingerprintTable* table;
  const SourceBuffer* source = nullptr;
};

// A step from one pair of instructions with different digests to the next.
struct FingerprintStep {
  enum class Via : uint8_t {
    kRoot,       // the root of a computation
    kParameter,  // parameter `index` of it
    kSink,       // an instruction without users, e.g. an outfeed
    kOperand,    // operand `index` of the previous pair
    kControl,    // a control predecessor of the previous pair
  };
  Via via;
  int64_t index = 0;
  // For the first three: the computations, and their callers: "entry", "uncalled", "to_apply of the pair before", ...
  Computation computation_a, computation_b;
  std::string caller;
  // The pair. One of them is invalid if the other has no counterpart.
  Instruction a, b;
};

struct FingerprintDiff {
  bool same = false;
  // Differences ignored by equal fingerprints: "layout", "sharding", "metadata", "frontend attributes", "schedule",
  // "names", "order", "duplicates" (how often equal values are computed). Only if `same`; empty if there is no
  // difference.
  std::vector<std::string> ignored_differences;
  // Differences of the header, such as "replica_count: 1 vs 2".
  std::vector<std::string> header;
  // From the entry root to the first pair of instructions that differ while their operands are equal. Empty if only the
  // header differs.
  std::vector<FingerprintStep> path;
  // Differences of the last pair, such as "attribute dimensions: {0} vs {1}".
  std::vector<std::string> differences;
};

// Requires: both tables have the same options.
FingerprintDiff CompareFingerprints(const FingerprintedModule& a, const FingerprintedModule& b);

// Human-readable text. Long lines, values and paths are shortened in the middle.
std::string RenderText(const FingerprintDiff& diff, const FingerprintedModule& a, const FingerprintedModule& b);

// Returns one step as a line: "operand 1: add.3 vs add.7".
std::string RenderStep(const FingerprintStep& step);
// Returns "file.hlo:12" or, without a source, the module's name.
std::string LocationOf(const FingerprintedModule& module, Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_IR_DIGEST_FINGERPRINT_DIFF_H_

// SPDX-License-Identifier: Apache-2.0
// Why two modules have different fingerprints: the first place, on the way down from the entry root, where they part;
// or, if the fingerprints are the same, what differs that the fingerprints leave out.
#ifndef HLOKIT_IR_DIGEST_FINGERPRINT_DIFF_H_
#define HLOKIT_IR_DIGEST_FINGERPRINT_DIFF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/core/source_buffer.h"
#include "ir/digest/fingerprint.h"
#include "ir/graph/module.h"

namespace hlokit {

// One module of a comparison. The source, which may be null, gives line numbers.
struct FingerprintedModule {
  const Module* module;
  const FingerprintTable* table;
  const SourceBuffer* source = nullptr;
};

// From a pair of instructions whose digests differ to the next.
struct FingerprintStep {
  enum class Via : uint8_t {
    kRoot,       // the root of a computation
    kParameter,  // parameter `index` of it
    kSink,       // what nothing in it uses, e.g. an outfeed
    kOperand,    // operand `index` of the pair before
    kControl,    // a control predecessor of the pair before
  };
  Via via;
  int64_t index = 0;
  // For the first three: the computations, and what calls them: "entry", "uncalled", "to_apply of the pair before", ...
  Computation computation_a, computation_b;
  std::string caller;
  // The pair. One of them is not valid if there is nothing on its side to compare with.
  Instruction a, b;
};

struct FingerprintDiff {
  bool same = false;
  // What makes the texts different although the fingerprints are the same: "layout", "sharding", "metadata",
  // "frontend attributes", "schedule", "names", "order", "duplicates" (how often equal values are computed). Only
  // if `same`; empty when nothing differs.
  std::vector<std::string> ignored_differences;
  // Of the header, such as "replica_count: 1 vs 2".
  std::vector<std::string> header;
  // From the entry root to the first pair of instructions that part: their operands are the same. Empty when only the
  // header differs.
  std::vector<FingerprintStep> path;
  // What makes the last pair different, such as "attribute dimensions: {0} vs {1}".
  std::vector<std::string> differences;
};

// Both tables are made with the same options.
FingerprintDiff CompareFingerprints(const FingerprintedModule& a, const FingerprintedModule& b);

// For people. Long lines, values and paths are cut in the middle.
std::string RenderText(const FingerprintDiff& diff, const FingerprintedModule& a, const FingerprintedModule& b);

// One step as a line: "operand 1: add.3 vs add.7".
std::string RenderStep(const FingerprintStep& step);
// "file.hlo:12" or, without a source, the module's name.
std::string LocationOf(const FingerprintedModule& module, Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_IR_DIGEST_FINGERPRINT_DIFF_H_

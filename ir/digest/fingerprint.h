// SPDX-License-Identifier: Apache-2.0
// Fingerprints: 128-bit digests of what a module computes. Two modules that differ only in names, instruction ids, the
// order of independent instructions, the order of computations, metadata or comments have the same fingerprint; modules
// of different contexts, files and processes can be compared.
//
// The digest of an instruction is made of its opcode, its shape, its attributes in table order, its constant or
// parameter number, the digests of the computations it calls, those of its operands by position and those of its
// control predecessors as a set. That of a computation is made of its thread, its parameters by number, its root, and
// the other instructions whose value nothing uses. That of the module is made of the entry computation, the
// computations that nothing calls, and the header: replica and partition counts, input-output aliasing, buffer donors,
// unknown attributes. So every instruction counts, dead ones too; run dce first to ignore them.
//
// Values, not objects: a value that is computed twice and one that is computed once and used twice look the same,
// unless computing it has an effect (rng, infeed, a call of a computation that has one, ...), in which case the first,
// second,
// ... of those that look the same, in the order of a walk from the root, are told apart.
//
// Constants count by their bytes: NaN payloads and the sign of zero matter. An elided constant equals every elided
// constant of its shape and no other. backend_config counts by its text. Commutative operands are not sorted. What the
// text writes as `all-gather-start` is one operation, be it an all-gather that async-start wraps or an
// all-gather-start.
//
// Time and memory are linear in the module. A module that does not verify is digested too: calls and operands that run
// in a circle are cut.
#ifndef HLOKIT_IR_DIGEST_FINGERPRINT_H_
#define HLOKIT_IR_DIGEST_FINGERPRINT_H_

#include <vector>

#include "ir/digest/digest.h"
#include "ir/graph/module.h"

namespace hlokit {

// What else shall count. Fingerprints made with different options are never equal.
struct FingerprintOptions {
  bool layout = false;               // of every shape, and the entry layout
  bool sharding = false;             // sharding attributes, propagation flags of the header
  bool metadata = false;             // metadata, origins, statistics, stack frames, debug attributes
  bool frontend_attributes = false;  // of instructions and of the module
  bool schedule = false;             // is_scheduled, and in a scheduled module the order outside of fusions

  static FingerprintOptions All() { return {true, true, true, true, true}; }
  bool Includes(AttrCategory meaning) const;
};

class FingerprintTable {
 public:
  explicit FingerprintTable(const Module& module, const FingerprintOptions& options = {});

  Digest module() const { return module_; }
  // Zero for what is erased.
  Digest of(ComputationId id) const { return computations_[id.value]; }
  Digest of(InstructionId id) const { return instructions_[id.value]; }
  const FingerprintOptions& options() const { return options_; }
  // Computations that no instruction calls, the entry computation left out, in the order of the text.
  const std::vector<ComputationId>& uncalled() const { return uncalled_; }

 private:
  FingerprintOptions options_;
  Digest module_;
  std::vector<Digest> instructions_;  // by id
  std::vector<Digest> computations_;  // by id
  std::vector<ComputationId> uncalled_;
};

Digest Fingerprint(const Module& module, const FingerprintOptions& options = {});

// True if nothing in its computation depends on `instruction` and it is not the root: it counts on its own.
bool IsSink(Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_IR_DIGEST_FINGERPRINT_H_

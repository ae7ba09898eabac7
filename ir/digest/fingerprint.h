// SPDX-License-Identifier: Apache-2.0
// Fingerprints: 128-bit digests of the computation of a module. Two modules that differ only in names, instruction ids,
// the order of independent instructions, the order of computations, metadata or comments have the same fingerprint;
// modules of different contexts, files and processes can be compared.
//
// The digest of an instruction covers its opcode, its shape, its attributes in table order, its constant or parameter
// number, the digests of its callees, those of its operands by position and those of its control predecessors as a set.
// The digest of a computation covers its thread, its parameters by number, its root, and the other instructions without
// users. The fingerprint of the module covers the entry computation, the computations without callers, and the header:
// replica and partition counts, input-output aliasing, buffer donors, unknown attributes. So every instruction counts,
// dead ones too; run dce first to ignore them.
//
// Digests are of values, not instructions: a value that is computed twice and one that is computed once and used twice
// are equal, unless computing it has a side effect (rng, infeed, a call of a computation with one, ...). Equal
// instructions with side effects are numbered in the order of a traversal from the root.
//
// Constants count by their bytes, including NaN payloads and the sign of zero. An elided constant equals every elided
// constant of its shape and no other. backend_config counts by its text. Commutative operands are not sorted.
// `all-gather-start` in the text is one operation, whether an all-gather in an async-start or an all-gather-start.
//
// Time and memory are linear in the module. An invalid module is digested too: cycles of calls and operands are cut.
#ifndef HLOKIT_IR_DIGEST_FINGERPRINT_H_
#define HLOKIT_IR_DIGEST_FINGERPRINT_H_

#include <vector>

#include "ir/digest/digest.h"
#include "ir/graph/module.h"

namespace hlokit {

// Optional components of a fingerprint. Fingerprints with different options are never equal.
struct FingerprintOptions {
  bool layout = false;               // of every shape, and the entry layout
  bool sharding = false;             // sharding attributes, propagation flags of the header
  bool metadata = false;             // metadata, original values, statistics, stack frames, debug attributes
  bool frontend_attributes = false;  // of instructions and of the module
  bool schedule = false;             // is_scheduled, and in a scheduled module the instruction order outside of fusions

  static FingerprintOptions All() { return {true, true, true, true, true}; }
  bool Includes(AttrCategory meaning) const;
};

class FingerprintTable {
 public:
  explicit FingerprintTable(const Module& module, const FingerprintOptions& options = {});

  Digest module() const { return module_; }
  // Returns the digest; zero for erased computations.
  Digest of(ComputationId id) const { return computations_[id.value]; }
  Digest of(InstructionId id) const { return instructions_[id.value]; }
  const FingerprintOptions& options() const { return options_; }
  // Returns the computations that no instruction calls, except the entry, in text order.
  const std::vector<ComputationId>& uncalled() const { return uncalled_; }

 private:
  FingerprintOptions options_;
  Digest module_;
  std::vector<Digest> instructions_;  // by id
  std::vector<Digest> computations_;  // by id
  std::vector<ComputationId> uncalled_;
};

Digest Fingerprint(const Module& module, const FingerprintOptions& options = {});

// Returns true for an instruction without users and control successors that is not the root: it counts separately.
bool IsSink(Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_IR_DIGEST_FINGERPRINT_H_

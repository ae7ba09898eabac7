// SPDX-License-Identifier: Apache-2.0
// Local rewrites to a fixpoint, driven by a worklist.
//
// A rule matches one instruction and its neighbors and either changes nothing, or creates instructions and replaces the
// matched one. The rewriter visits every instruction once, operands first, and again when its neighbors change:
// near-linear as long as each rule reduces something. It erases instructions that become unused, keeps operands before
// users, and propagates metadata: a replacement carries the metadata of the replaced instruction, of those that the
// rule names as absorbed, and of everything that becomes unused thereby, except operands whose metadata the rule drops.
#ifndef HLOKIT_PASSES_REWRITE_PATTERN_REWRITER_H_
#define HLOKIT_PASSES_REWRITE_PATTERN_REWRITER_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "ir/builder/builder.h"
#include "ir/graph/module.h"
#include "ir/graph/side_effects.h"
#include "passes/core/pass.h"

namespace hlokit {

class PatternRewriter;

// Returns true if it replaced or changed `instruction`.
using RewriteFunction = bool (*)(PatternRewriter& rewriter, Instruction instruction);

struct RewritePattern {
  std::string_view name;  // for statistics: "reshapes of reshapes merged"
  RewriteFunction apply;
};

// The rules of each opcode, tried in the order in which they were added.
class RewritePatternSet {
 public:
  void Add(std::initializer_list<Opcode> opcodes, std::string_view name, RewriteFunction apply);
  const std::vector<uint16_t>& of(Opcode opcode) const { return by_opcode_[static_cast<size_t>(opcode)]; }
  const RewritePattern& operator[](uint16_t rule) const { return rules_[rule]; }
  size_t size() const { return rules_.size(); }

 private:
  std::vector<RewritePattern> rules_;
  std::array<std::vector<uint16_t>, kOpcodeCount + 1> by_opcode_;
};

// The computations to rewrite. Never the bodies of fusions and of asynchronous operations.
enum class RewriteScope : uint8_t {
  kEverywhere,
  kSequential,  // not those applied to elements: reducers, comparators
};

// A builder that inserts before the matched instruction, with its metadata; new instructions that replace nothing are
// erased.
class PatternRewriter : public Builder {
 public:
  using Attrs = absl::Span<const AttrValue>;

  PatternRewriter(Module* module, const RewritePatternSet* rules, const PassOptions* options,
                  RewriteScope where = RewriteScope::kEverywhere);

  // Counts applications in `limit`, and stops where it says. Null: neither.
  void SetLimit(RewriteLimit* limit) { limit_ = limit; }
  // Applies the rules until none applies. Returns true if the module changed.
  bool Run();
  // Returns how often each rule applied, by index.
  const std::vector<int64_t>& applied() const { return applied_; }

  // ---- for rules ----
  const PassOptions& options() const { return *options_; }
  Instruction at(InstructionId id) const { return module().instruction(id); }

  // Adds the metadata of `source` to `made`. If the current rewrite created `made`, the metadata replaces that of the
  // matched instruction.
  void AddMetadataSource(InstructionId made, Instruction source);

  // Declares the next replacement valid for any value of `operand`: if it becomes unused, the metadata of it and its
  // operands is dropped.
  void DropMetadataOf(Instruction operand) { dropped_metadata_.insert(operand.id().value); }
  // Drops the metadata of all operands from index `first` on.
  void DropMetadataOfOperands(Instruction instruction, int64_t first = 0) {
    for (int64_t k = first; k < instruction.operand_count(); ++k) DropMetadataOf(instruction.operand(k));
  }

  // Replaces the matched instruction by `by`. Returns false and changes nothing if the shapes differ or control edges
  // prevent it; the new instructions go once the rule returns false. `absorbed`: further instructions whose metadata
  // the replacement carries, even if they have other users. A new instruction with the opcode of an absorbed one takes
  // its op_name.
  bool Replace(Instruction old, InstructionId by, std::initializer_list<Instruction> absorbed = {});
  // As Replace, for an instruction with a side effect that the new instructions have too.
  bool ReplaceEffect(Instruction old, InstructionId by);
  bool MayReplaceEffect(Instruction old) const { return !old.has_control_edges(); }
  // Make and Replace; creates nothing if the replacement is not possible.
  bool ReplaceWithNew(Instruction old, Opcode opcode, Operands operands, Attrs attrs = {},
                      std::initializer_list<Instruction> absorbed = {});
  // Changes an operand in place; `absorbed` are the instructions that it bypasses.
  bool ReplaceOperand(Instruction user, int64_t index, InstructionId operand,
                      std::initializer_list<Instruction> absorbed = {});
  // Revisits an instruction and its users after other changes in place.
  void NotifyModified(Instruction instruction);
  bool IsReplaceable(Instruction instruction) const;

 private:
  void ReplaceInPlace(Instruction old, InstructionId by, std::initializer_list<Instruction> absorbed);
  // Erases what a rule that did not apply made, of computations those from `first_computation` on.
  void DiscardMade(size_t first_computation);
  void PushToWorklist(InstructionId id);
  void PushUsers(Instruction instruction);
  // Erases `id` if it is unused and removable, then its operands that become unused; `by`, if valid, gets their
  // metadata.
  void EraseUnused(InstructionId id, InstructionId by);
  // Adds the metadata of the callees of `i` to `by`, unless it applies the same ones.
  void MergeMetadataOfCallees(Instruction i, InstructionId by);
  bool MayErase(Instruction instruction) const;
  bool HasEffect(Instruction instruction) const;

  const RewritePatternSet& rules_;
  const PassOptions* options_;
  mutable std::optional<SideEffects> effects_;  // computed on demand
  RewriteScope scope_;
  RewriteLimit* limit_ = nullptr;
  bool changed_ = false;
  std::vector<InstructionId> made_;  // for the matched instruction
  std::vector<InstructionId> worklist_;
  size_t head_ = 0;
  std::vector<uint8_t> in_worklist_;  // by instruction
  std::vector<int64_t> applied_;
  absl::flat_hash_set<uint32_t> dropped_metadata_;  // operands whose metadata the current rule drops
  struct Dead {
    InstructionId id;
    bool merge_metadata;
  };
  std::vector<Dead> dead_;  // scratch
};

// ---- predicates for rules ----

inline bool HasOneUse(Instruction i) {
  const UseId first = i.record().first_use;
  return first.valid() && i.module().use(first).next == first;
}
inline bool HasOneUser(Instruction i) {
  const UseId first = i.record().first_use;
  if (!first.valid()) return false;
  const Module& module = i.module();
  for (UseId use = module.use(first).next; use != first; use = module.use(use).next) {
    if (module.use(use).user != module.use(first).user) return false;
  }
  return true;
}
// Returns the attributes that belong to the opcode, for a new instruction of the same kind.
inline std::vector<AttrValue> OwnAttrs(Instruction i) {
  std::vector<AttrValue> attrs;
  for (AttrValue value : i.attrs()) {
    if (!IsCommon(value.attr)) attrs.push_back(value);
  }
  return attrs;
}

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_PATTERN_REWRITER_H_

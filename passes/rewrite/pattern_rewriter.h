// SPDX-License-Identifier: Apache-2.0
// Local rewrites to a fixpoint, driven by a worklist.
//
// A rule looks at one instruction and what is near it and either leaves all as it is, or makes new instructions and
// puts one in the place of the instruction. The rewriter visits every instruction once, operands first, and again those
// whose surroundings changed: near-linear as long as each rule makes something smaller. It erases what becomes unused
// on the way, keeps instructions in an order in which operands stand first, and carries annotations: what a rule puts
// in place of an instruction stands for that one, for those it names as absorbed, and for everything that becomes
// unused thereby, except where the rule says that the value of an operand does not matter.
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
#include "ir/graph/module.h"
#include "ir/graph/side_effects.h"
#include "ir/types/literal.h"
#include "passes/core/pass.h"

namespace hlokit {

class PatternRewriter;

// True if it replaced or changed `instruction`.
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

// Which computations are rewritten. Never the bodies of fusions and of asynchronous operations.
enum class RewriteScope : uint8_t {
  kEverywhere,
  kSequential,  // not those that are applied to elements: reducers, comparisons
};

class PatternRewriter {
 public:
  using Operands = absl::Span<const InstructionId>;
  using Attrs = absl::Span<const AttrValue>;

  PatternRewriter(Module* module, const RewritePatternSet* rules, const PassOptions* options,
                  RewriteScope where = RewriteScope::kEverywhere);

  // Applies the rules until none applies. True if the module changed.
  bool Run();
  // How often each rule applied, by index.
  const std::vector<int64_t>& applied() const { return applied_; }

  // ---- for rules ----
  Module& module() const { return module_; }
  Context& context() const { return module_.context(); }
  ShapeTable& shapes() const { return module_.context().shapes; }
  const PassOptions& options() const { return *options_; }
  Instruction at(InstructionId id) const { return module_.instruction(id); }

  // Makes an instruction before the one being rewritten, in its computation. The shape is taken as given.
  InstructionId Make(Opcode opcode, Shape shape, Operands operands, Attrs attrs = {});
  // The same with the shape that inference gives, in the type of the first operand where that is all that is asked for.
  // None if the operands do not fit, which is for the caller to rule out.
  InstructionId MakeInferred(Opcode opcode, Operands operands, Attrs attrs = {});
  InstructionId MakeConvert(InstructionId operand, ElementType type);
  // Elementwise, in the shape of the first operand.
  InstructionId MakeLike(Opcode opcode, Operands operands);
  InstructionId MakeCompare(ComparisonDirection direction, InstructionId a, InstructionId b);
  InstructionId MakeReduce(InstructionId operand, InstructionId init, absl::Span<const int64_t> dimensions,
                           ComputationId reducer);
  // A computation of two scalars of `type` that applies `opcode` to them.
  ComputationId MakeReducer(Opcode opcode, ElementType type);
  // The scalar `value`, which `type` must hold.
  InstructionId MakeScalarConstant(ElementType type, double value);
  InstructionId MakeConstant(const Literal& value);
  // A scalar constant of one element's bytes.
  InstructionId MakeScalar(ElementType type, const std::byte* data);
  // An array of `shape` with all elements equal to the scalar `value`.
  InstructionId MakeSplat(Shape shape, InstructionId value);
  // `made` stands for `source`: if it was just made, rather than for the instruction being rewritten, else too.
  void AddMetadataSource(InstructionId made, Instruction source);
  InstructionId MakeReshape(InstructionId operand, Shape shape);
  AttrValue List(Attr attr, absl::Span<const int64_t> values) { return {attr, module_.ListPayload(values)}; }
  AttrValue Int(Attr attr, int64_t value) { return {attr, module_.EncodeInt64(value)}; }

  // The replacement that follows is right whatever the value of `operand` is: if it becomes unused, what it and its
  // operands stood for is forgotten, not carried.
  void DropMetadataOf(Instruction operand) { dropped_metadata_.insert(operand.id().value); }
  // The same of all operands from number `first` on.
  void DropMetadataOfOperands(Instruction instruction, int64_t first = 0) {
    for (int64_t k = first; k < instruction.operand_count(); ++k) DropMetadataOf(instruction.operand(k));
  }

  // Puts `by` in the place of the instruction being rewritten. False, and nothing changed, if that cannot be: the
  // shapes differ, or control edges hang on it. What was made for it is then erased. `absorbed`: what the replacement
  // stands for beyond that, although it may have other users. A new instruction of the opcode of an absorbed one does
  // that one's work and has its op_name.
  bool Replace(Instruction old, InstructionId by, std::initializer_list<Instruction> absorbed = {});
  // The same for an instruction with an effect of its own, which what was made has too.
  bool ReplaceEffect(Instruction old, InstructionId by);
  bool MayReplaceEffect(Instruction old) const {
    return !old.has(Attr::kControlPredecessors) && old.control_successors().empty();
  }
  // Make and Replace; nothing is made if it would not replace.
  bool ReplaceWithNew(Instruction old, Opcode opcode, Operands operands, Attrs attrs = {},
                      std::initializer_list<Instruction> absorbed = {});
  // Changes an operand in place; `absorbed` is what stood between.
  bool ReplaceOperand(Instruction user, int64_t index, InstructionId operand,
                      std::initializer_list<Instruction> absorbed = {});
  // After other changes in place: visit it and its users again.
  void NotifyModified(Instruction instruction);
  // The users, and what they use, are worth another look.
  void AddToWorklist(Instruction instruction) { PushToWorklist(instruction.id()); }
  bool IsReplaceable(Instruction instruction) const;

 private:
  void ReplaceInPlace(Instruction old, InstructionId by, std::initializer_list<Instruction> absorbed);
  void PushToWorklist(InstructionId id);
  void PushUsers(Instruction instruction);
  // Erases `id` if it is unused and may go, then what it alone used; `by` stands for all of that, if there is one.
  void EraseUnused(InstructionId id, InstructionId by);
  // `by` stands for what `i` calls, unless it applies the same.
  void MergeMetadataOfCallees(Instruction i, InstructionId by);
  bool MayErase(Instruction instruction) const;
  bool HasEffect(Instruction instruction) const;

  Module& module_;
  const RewritePatternSet& rules_;
  const PassOptions* options_;
  mutable std::optional<SideEffects> effects_;  // found when first asked for
  RewriteScope scope_;
  bool changed_ = false;
  InstructionId current_;
  std::vector<InstructionId> made_;  // for the instruction being rewritten
  std::vector<InstructionId> worklist_;
  size_t head_ = 0;
  std::vector<uint8_t> in_worklist_;  // by instruction
  std::vector<int64_t> applied_;
  absl::flat_hash_set<uint32_t> dropped_metadata_;  // operands that do not matter to the rule at work
  struct Dead {
    InstructionId id;
    bool merge_metadata;
  };
  std::vector<Dead> dead_;  // scratch
};

// ---- what rules ask ----

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
inline bool HasControlEdges(Instruction i) {
  return i.has(Attr::kControlPredecessors) || !i.control_successors().empty();
}

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_PATTERN_REWRITER_H_

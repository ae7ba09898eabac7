// SPDX-License-Identifier: Apache-2.0
// Verifies values of type b(...): storage that is updated in place. Each has one writer, and only instructions that
// support buffers may have them.
#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "ir/core/str_cat.h"
#include "ir/graph/operand_alias.h"
#include "ir/inference/shape_inference.h"
#include "ir/ops/opcode_table.h"
#include "ir/verify/context.h"

namespace hlokit::verify_internal {
namespace {

constexpr DiagnosticKind kBufferUseKind = DiagnosticKind::kBufferUse;

using Index = absl::InlinedVector<int64_t, 4>;

// Counts writers of one buffer among the users of the value that holds it.
class Writers {
 public:
  explicit Writers(VerifierContext& v) : v_(v) {}

  bool MoreThanOne(Instruction i, Index index) {
    count_ = 0;
    stack_.clear();
    stack_.push_back({i.id(), std::move(index)});
    while (!stack_.empty() && count_ < 2) {
      const Holder holder = std::move(stack_.back());
      stack_.pop_back();
      const Instruction held_by = v_.module.instruction(holder.id);
      Instruction last;
      for (const auto use : held_by.uses()) {
        // Uses by one user are mostly adjacent: count it once.
        if (last.valid() && last == use.user) continue;
        last = use.user;
        if (--v_.search_budget < 0) return false;
        Visit({holder, held_by, use.user, use.operand_index});
      }
    }
    return count_ > 1;
  }

 private:
  struct Holder {
    InstructionId id;
    Index index;  // of the buffer in its value
  };

  struct BufferUse {
    const Holder& holder;
    Instruction held_by, user;
    int64_t operand;
  };

  void Visit(const BufferUse& use) {
    using Rule = void (Writers::*)(const BufferUse&);
    static constexpr OpcodeRow<Rule> kRows[] = {
        {Opcode::kCustomCall, &Writers::VisitWriter},
        {Opcode::kDynamicUpdateSlice, &Writers::VisitWriter},
        {Opcode::kGetTupleElement, &Writers::VisitElement},
        {Opcode::kTuple, &Writers::VisitTuple},
    };
    static constexpr auto kRules = MakeOpcodeHandlers<Rule>(kRows);
    const Opcode opcode = use.user.opcode();
    if (HasTrait(opcode, kControlFlow)) return VisitWriter(use);
    if (const Rule rule = kRules[static_cast<size_t>(opcode)]; rule != nullptr) (this->*rule)(use);
  }

  void VisitWriter(const BufferUse& /*use*/) { ++count_; }

  void VisitElement(const BufferUse& use) {
    const Index& index = use.holder.index;
    if (!index.empty() && use.user.int_attr(Attr::kIndex) == index[0]) {
      stack_.push_back({use.user.id(), Index(index.begin() + 1, index.end())});
    }
  }

  void VisitTuple(const BufferUse& use) {
    if (use.held_by.parent().root() != use.user) {
      Index index = {use.operand};
      index.insert(index.end(), use.holder.index.begin(), use.holder.index.end());
      stack_.push_back({use.user.id(), std::move(index)});
    } else if (v_.callers(use.held_by.parent()).loops != 0) {
      ++count_;  // a loop writes its state
    }
  }

  VerifierContext& v_;
  std::vector<Holder> stack_;
  int64_t count_ = 0;
};

class BufferCheck {
 public:
  explicit BufferCheck(VerifierContext& v) : v_(v), writers_(v) {}

  void Run() {
    for (uint32_t id = 0; id < v_.module.computation_id_bound(); ++id) {
      const Computation c = v_.module.computation(ComputationId(id));
      if (c.record().erased) continue;
      if (v_.IsAsync(c)) {
        // In an async-start, the wrapped custom call counts.
        if (c.root().opcode() == Opcode::kCustomCall) CheckCustomCall(c.root());
        continue;
      }
      for (Instruction i : c.instructions()) {
        if (v_.limit_reached()) return;
        if (!v_.is_invalid(i) && (Touches(i) || IsBufferCall(i))) CheckInstruction(i);
      }
    }
  }

 private:
  bool Touches(Instruction i) const {
    if (v_.HoldsBuffer(i.shape())) return true;
    for (Instruction operand : i.operands()) {
      if (v_.HoldsBuffer(operand.shape())) return true;
    }
    return false;
  }

  static bool IsBufferCall(Instruction i) {
    if (i.opcode() != Opcode::kCustomCall) return false;
    const std::string_view target = i.string_attr(Attr::kCustomCallTarget);
    return target == "Pin" || target == "Unpin" || target == "CreateBuffer";
  }

  void CheckInstruction(Instruction i) {
    using Rule = void (BufferCheck::*)(Instruction);
    static constexpr OpcodeRow<Rule> kRows[] = {
        {Opcode::kGetTupleElement, &BufferCheck::Accept},
        {Opcode::kTuple, &BufferCheck::Accept},
        {Opcode::kCall, &BufferCheck::CheckCall},
        {Opcode::kCustomCall, &BufferCheck::CheckCustomCall},
        {Opcode::kWhile, &BufferCheck::CheckWriters},
        {Opcode::kParameter, &BufferCheck::CheckParameter},
        {Opcode::kDynamicUpdateSlice, &BufferCheck::CheckUpdate},
    };
    static constexpr auto kRules = MakeOpcodeHandlers<Rule>(kRows);
    if (HasTrait(i.opcode(), kGenericAsync)) return;
    const Rule rule = kRules[static_cast<size_t>(i.opcode())];
    (this->*(rule != nullptr ? rule : &BufferCheck::Reject))(i);
  }

  void Accept(Instruction /*i*/) {}

  void Reject(Instruction i) {
    v_.Report(i, kBufferUseKind, StrCat("has a buffer among its operands or results; ", i.opcode_text(), " cannot"));
  }

  void CheckCall(Instruction i) {
    if (!FrontendAttribute(i, "_xla_stream_annotation")) Reject(i);
  }

  void CheckParameter(Instruction i) {
    if (!i.parent().is_entry()) return CheckWriters(i);
    v_.Report(i, kBufferUseKind, "is a parameter of the entry, which cannot take buffers");
  }

  void CheckUpdate(Instruction i) {
    if (!i.operand(0).shape().IsBuffer()) return Reject(i);
    CheckWriters(i);
  }

  // Calls `f` with the index of each buffer in `shape`.
  template <typename F>
  void ForEachBuffer(Shape shape, const F& f) {
    if (!v_.HoldsBuffer(shape)) return;
    std::vector<std::pair<Shape, int64_t>> stack = {{shape, 0}};  // and the next element to visit
    Index index;
    while (!stack.empty()) {
      if (--v_.search_budget < 0) return;
      auto& [top, next] = stack.back();
      if (top.IsBuffer()) f(index);
      if (top.IsTuple() && next < top.tuple_size()) {
        const Shape element = top.element(next);
        index.push_back(next++);
        if (v_.HoldsBuffer(element)) {
          stack.push_back({element, 0});
        } else {
          index.pop_back();
        }
        continue;
      }
      stack.pop_back();
      if (!stack.empty()) index.pop_back();
    }
  }

  void CheckWriter(Instruction i, const Index& index) {
    if (!writers_.MoreThanOne(i, index)) return;
    v_.Report(i, kBufferUseKind, StrCat("buffer ", IndexText(index), " has more than one writer"));
  }
  void CheckWriters(Instruction i) {
    ForEachBuffer(i.shape(), [&](const Index& index) { CheckWriter(i, index); });
  }

  bool SameArray(Shape a, Shape b) const { return SameShapes(v_, a, b); }

  void CheckCustomCall(Instruction i) {
    const std::string_view target = i.string_attr(Attr::kCustomCallTarget);
    if (target == "Pin") {
      CheckPin(i);
    } else if (target == "Unpin") {
      CheckUnpin(i);
    } else if (target == "CreateBuffer") {
      if (i.operand_count() != 0) v_.Report(i, kBufferUseKind, "expected no operands for CreateBuffer");
      if (!i.shape().IsBuffer()) v_.Report(i, kBufferUseKind, "expected a buffer as the result of CreateBuffer");
      CheckWriters(i);
    } else {
      CheckAliased(i);
      CheckWriters(i);
    }
  }

  void CheckPin(Instruction i) {
    const bool fits = i.operand_count() == 1 && i.operand(0).shape().IsArray() && i.shape().IsBuffer();
    if (!fits || !SameArray(i.operand(0).shape(), i.shape().element(0))) {
      v_.Report(i, kBufferUseKind, "expected one array operand and a buffer of the same shape as the result of Pin");
    } else {
      CheckOneAlias(i);
      CheckWriters(i);
    }
  }

  void CheckUnpin(Instruction i) {
    const bool fits = i.operand_count() == 1 && i.operand(0).shape().IsBuffer() && i.shape().IsArray();
    if (!fits || !SameArray(i.operand(0).shape().element(0), i.shape())) {
      v_.Report(i, kBufferUseKind, "expected one buffer operand and an array of the same shape as the result of Unpin");
    } else {
      CheckOneAlias(i);
    }
  }

  void CheckOneAlias(Instruction i) {
    if (AliasesOf(i).size() == 1) return;
    v_.Report(i, kBufferUseKind,
              StrCat(i.string_attr(Attr::kCustomCallTarget), " requires exactly one output_to_operand_aliasing"));
  }

  std::vector<OperandAlias> AliasesOf(Instruction i) const {
    std::vector<OperandAlias> aliases;
    absl::Span<const int64_t> encoded = i.list_attr(Attr::kOutputToOperandAliasing);
    while (const std::optional<OperandAlias> alias = NextOperandAlias(&encoded)) aliases.push_back(*alias);
    return aliases;
  }

  // Checks that each buffer operand is a result, and each buffer result an operand.
  void CheckAliased(Instruction i) {
    const std::vector<OperandAlias> aliases = AliasesOf(i);
    const auto report = [&](std::string_view which, const Index& index, int64_t count, std::string_view other) {
      if (count == 1) return;
      v_.Report(i, kBufferUseKind,
                StrCat(which, " ", IndexText(index), " is a buffer and aliases ", count == 0 ? "no " : "more than one ",
                       other));
    };
    for (int64_t n = 0; n < i.operand_count(); ++n) {
      ForEachBuffer(i.operand(n).shape(), [&](const Index& index) {
        const int64_t count = std::count_if(aliases.begin(), aliases.end(), [&](const OperandAlias& a) {
          return a.operand == n && a.operand_index == absl::MakeConstSpan(index);
        });
        report(StrCat("operand ", n), index, count, "output");
      });
    }
    ForEachBuffer(i.shape(), [&](const Index& index) {
      const int64_t count = std::count_if(aliases.begin(), aliases.end(), [&](const OperandAlias& a) {
        return a.output_index == absl::MakeConstSpan(index);
      });
      report("output", index, count, "operand");
    });
  }

  VerifierContext& v_;
  Writers writers_;
};

}  // namespace

void CheckBuffers(VerifierContext& v) {
  if (v.any_buffers() || v.has_buffer_calls) BufferCheck(v).Run();
}

}  // namespace hlokit::verify_internal

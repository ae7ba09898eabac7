// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/module.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/ir/graph/module_contradiction.h"
#include "tests/unit/parsed_module.h"

namespace hlokit {
namespace {

constexpr std::string_view kModuleText = R"(HloModule m

half { h = f32[4] parameter(0)
  k = f32[4] abs(h)
  ROOT j = f32[4] negate(h), control-predecessors={k} }

ENTRY main { p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  r = f32[4] parameter(2)
  a = f32[4] abs(p)
  b = f32[4] negate(p), control-predecessors={a}
  c = f32[4] add(a, a), control-predecessors={b}
  d = f32[4] sine(p), control-predecessors={a, b}
  e = f32[4] multiply(r, c)
  ROOT t = (f32[4], f32[4], f32[4]) tuple(b, d, e) }
)";

class ModuleTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(Contradiction(*module_), ""); }

  InstructionId Find(std::string_view name) const {
    for (Computation c : module_->computations()) {
      for (Instruction i : c.instructions()) {
        if (i.name() == name) return i.id();
      }
    }
    ADD_FAILURE() << "no instruction " << name;
    return InstructionId();
  }
  Instruction At(std::string_view name) const { return module_->instruction(Find(name)); }
  ComputationId Half() const { return module_->computations()[0].id(); }
  uint32_t List(std::vector<std::string_view> names) const {
    std::vector<int64_t> ids;
    for (std::string_view name : names) ids.push_back(Find(name).value);
    return module_->ListPayload(ids);
  }

  static std::string Names(const std::vector<Instruction>& instructions) {
    std::string names;
    for (Instruction i : instructions) names += (names.empty() ? "" : " ") + std::string(i.name());
    return names;
  }
  std::string Predecessors(std::string_view name) const { return Names(At(name).control_predecessors()); }
  std::string Successors(std::string_view name) const { return Names(At(name).control_successors()); }
  std::string Users(std::string_view name) const { return Names(At(name).users()); }
  std::string Order(ComputationId id) const {
    std::vector<Instruction> all;
    for (Instruction i : module_->computation(id).instructions()) all.push_back(i);
    return Names(all);
  }

  std::unique_ptr<Module> module_ = Parse(kModuleText);
};

TEST_F(ModuleTest, OtherAttributesLeaveControlEdgesAlone) {
  const uint32_t text = module_->context().strings.Intern("text").value;
  module_->SetAttr(Find("b"), Attr::kFrontendAttributes, module_->ListPayload({text, text}));
  module_->SetAttr(Find("b"), Attr::kBackendConfig, text);
  EXPECT_EQ(Successors("a"), "b d");
  module_->SetAttr(Find("b"), Attr::kBackendConfig, text);  // in place
  EXPECT_EQ(Successors("a"), "b d");
  module_->RemoveAttr(Find("b"), Attr::kFrontendAttributes);
  EXPECT_EQ(Successors("a"), "b d");
  EXPECT_EQ(Predecessors("b"), "a");
}

TEST_F(ModuleTest, ControlPredecessorsAreSetReplacedAndRemoved) {
  module_->SetAttr(Find("e"), Attr::kControlPredecessors, List({"b"}));
  EXPECT_EQ(Successors("b"), "c d e");
  module_->SetAttr(Find("e"), Attr::kControlPredecessors, List({"a"}));
  EXPECT_EQ(Successors("b"), "c d");
  EXPECT_EQ(Successors("a"), "b d e");
  module_->RemoveAttr(Find("e"), Attr::kControlPredecessors);
  EXPECT_EQ(Successors("a"), "b d");
}

TEST_F(ModuleTest, WithoutControlPredecessorsThereAreNoEdges) {
  for (std::string_view name : {"b", "c", "d", "j"}) module_->RemoveAttr(Find(name), Attr::kControlPredecessors);
  EXPECT_FALSE(module_->may_have_control_edges());
  EXPECT_EQ(Successors("a"), "");
}

TEST_F(ModuleTest, AllAttributesAreReplacedWithTheirEdges) {
  module_->SetAttrs(Find("d"), {{Attr::kControlPredecessors, List({"b"})}, {Attr::kBackendConfig, 0}});
  EXPECT_EQ(Successors("a"), "b");
  EXPECT_EQ(Successors("b"), "c d");
  module_->SetAttrs(Find("d"), {});
  EXPECT_EQ(Successors("b"), "c");
}

TEST_F(ModuleTest, AttributesMayBeThoseOfAnInstruction) {
  module_->ShrinkToFit();  // the next attribute reallocates
  module_->SetAttrs(Find("e"), At("d").attrs());
  EXPECT_EQ(Predecessors("e"), "a b");
  module_->ShrinkToFit();
  const InstructionId id = module_->AddInstruction(module_->entry().id(), Opcode::kAbs, At("p").shape(),
                                                   module_->UniqueInstructionName("f"), {Find("p")}, At("d").attrs());
  EXPECT_EQ(Names(module_->instruction(id).control_predecessors()), "a b");
  EXPECT_EQ(Successors("a"), "b d e f");
}

TEST_F(ModuleTest, AttributesAreStoredInPrintOrder) {
  module_->RemoveAttr(Find("d"), Attr::kControlPredecessors);
  for (Attr attr : {Attr::kBackendConfig, Attr::kSharding, Attr::kFrontendAttributes}) {
    module_->SetAttr(Find("d"), attr, module_->ListPayload({}));
  }
  ASSERT_EQ(At("d").attrs().size(), 3u);  // TearDown checks the order
}

TEST_F(ModuleTest, AnOperandMayBeUsedTwice) {
  EXPECT_EQ(Users("a"), "c");
  module_->ReplaceOperand(Find("c"), 1, Find("b"));
  EXPECT_EQ(Users("a"), "c");
  EXPECT_EQ(Users("b"), "t c");
  module_->ReplaceOperand(Find("c"), 0, Find("b"));
  EXPECT_EQ(Users("a"), "");
  EXPECT_FALSE(At("a").has_users());
  EXPECT_EQ(Users("b"), "t c");
}

TEST_F(ModuleTest, OperandsBecomeFewerAndMore) {
  module_->SetOperands(Find("t"), {Find("b")});
  EXPECT_EQ(Users("d"), "");
  EXPECT_EQ(Users("e"), "");
  module_->SetOperands(Find("t"), {Find("d"), Find("d"), Find("e"), Find("b")});
  EXPECT_EQ(At("t").operand_count(), 4);
  EXPECT_EQ(Users("d"), "t");
  module_->SetOperands(Find("t"), {});
  EXPECT_EQ(Users("b"), "");
}

TEST_F(ModuleTest, AllUsesButThoseOfTheNewInstructionAreReplaced) {
  // c = add(a, a) replaces a, whose control successors are b and d, and is its user.
  module_->ReplaceAllUses(Find("a"), Find("c"));
  EXPECT_EQ(Users("a"), "c");
  EXPECT_EQ(Successors("a"), "");
  EXPECT_EQ(Predecessors("d"), "c b");
  module_->ReplaceAllUses(Find("t"), Find("e"));
  EXPECT_TRUE(At("e").is_root());
}

TEST_F(ModuleTest, ReplacingAnInstructionByItselfChangesNothing) {
  module_->ReplaceAllUses(Find("a"), Find("a"));
  EXPECT_EQ(Users("a"), "c");
  EXPECT_EQ(Successors("a"), "b d");
}

TEST_F(ModuleTest, ErasedInstructionsPassTheirOrderOn) {
  module_->SetOperands(Find("t"), {Find("d"), Find("d"), Find("e")});
  module_->Erase(Find("b"));
  EXPECT_EQ(Predecessors("c"), "a");
  EXPECT_EQ(Predecessors("d"), "a");
  EXPECT_EQ(Successors("a"), "c d");
  EXPECT_EQ(Users("p"), "a d");
  EXPECT_EQ(Order(module_->entry().id()), "p q r a c d e t");
}

TEST_F(ModuleTest, SeveralAreErasedAtOnce) {
  for (const bool control : {true, false}) {
    Module copy = module_->Clone();
    if (!control) {
      for (std::string_view name : {"b", "c", "d", "j"}) copy.RemoveAttr(Find(name), Attr::kControlPredecessors);
    }
    copy.SetOperands(Find("t"), {Find("p")});
    copy.EraseInstructions({Find("a"), Find("b"), Find("c"), Find("d"), Find("e")});
    EXPECT_EQ(Contradiction(copy), "");
    EXPECT_EQ(copy.entry().instruction_count(), 4);
    EXPECT_EQ(Names(copy.instruction(Find("p")).users()), "t");
  }
}

TEST_F(ModuleTest, AnErasedParameterLeavesASlotAndARemovedOneDoesNot) {
  Module copy = module_->Clone();
  copy.Erase(Find("q"));
  EXPECT_EQ(Contradiction(copy), "");
  ASSERT_EQ(copy.entry().parameter_count(), 3);
  EXPECT_FALSE(copy.entry().parameter(1).valid());

  module_->RemoveParameter(Find("q"));
  ASSERT_EQ(module_->entry().parameter_count(), 2);
  EXPECT_EQ(At("r").parameter_number(), 1);
  EXPECT_EQ(module_->entry().parameter(1), At("r"));
}

TEST_F(ModuleTest, InstructionsMove) {
  const ComputationId entry = module_->entry().id();
  module_->MoveBefore(Find("e"), Find("p"));
  EXPECT_EQ(Order(entry), "e p q r a b c d t");
  module_->MoveBefore(Find("e"), InstructionId());
  EXPECT_EQ(Order(entry), "p q r a b c d t e");
  module_->MoveBefore(Find("a"), Find("b"));  // where it is
  module_->MoveBefore(Find("a"), Find("a"));
  EXPECT_EQ(Order(entry), "p q r a b c d t e");
}

TEST_F(ModuleTest, ACopyInItsComputationKeepsControlPredecessors) {
  const InstructionId copy =
      module_->CloneInstruction(module_->entry().id(), Find("d"), module_->UniqueInstructionName("d"), {Find("q")});
  EXPECT_EQ(Names(module_->instruction(copy).control_predecessors()), "a b");
  EXPECT_EQ(Successors("b"), "c d d.1");
  EXPECT_EQ(Users("q"), "d.1");
  EXPECT_FALSE(module_->instruction(copy).has_users());
}

TEST_F(ModuleTest, ACopyInAnotherComputationHasNoControlPredecessors) {
  const InstructionId copy =
      module_->CloneInstruction(Half(), Find("d"), module_->UniqueInstructionName("d"), {Find("h")});
  EXPECT_FALSE(module_->instruction(copy).has(Attr::kControlPredecessors));
  EXPECT_EQ(Successors("b"), "c d");
  EXPECT_EQ(Order(Half()), "h k j d.1");
}

TEST_F(ModuleTest, ACopyOfAComputationHasItsOwnEdges) {
  const ComputationId copy = module_->CloneComputation(module_->entry().id());
  EXPECT_EQ(Order(copy), "p.1 q.1 r.1 a.1 b.1 c.1 d.1 e.1 t.1");
  EXPECT_EQ(Successors("a.1"), "b.1 d.1");
  EXPECT_EQ(Successors("a"), "b d");
  EXPECT_EQ(Users("a.1"), "c.1");
  EXPECT_EQ(Names({module_->computation(copy).root()}), "t.1");
  ASSERT_EQ(module_->computation(copy).parameter_count(), 3);
  EXPECT_EQ(Names({module_->computation(copy).parameter(2)}), "r.1");
}

// Operands and predecessors may come after their users in the text.
TEST_F(ModuleTest, ComputationsOutOfOrderAreCopied) {
  module_->MoveBefore(Find("t"), Find("p"));
  module_->MoveBefore(Find("d"), Find("a"));
  const ComputationId copy = module_->CloneComputation(module_->entry().id());
  EXPECT_EQ(Order(copy), "t.1 p.1 q.1 r.1 d.1 a.1 b.1 c.1 e.1");
  EXPECT_EQ(Predecessors("d.1"), "a.1 b.1");
}

TEST_F(ModuleTest, AnErasedComputationLeavesNothing) {
  module_->EraseComputation(Half());
  EXPECT_EQ(module_->computation_count(), 1u);
  EXPECT_EQ(module_->instruction_count(), 9u);
  EXPECT_EQ(module_->computations().size(), 1u);
  EXPECT_EQ(Successors("a"), "b d");
}

TEST_F(ModuleTest, ACloneIsEditedByItself) {
  Module copy = module_->Clone();
  const InstructionId a = Find("a"), b = Find("b"), c = Find("c");
  copy.SetAttr(c, Attr::kControlPredecessors, List({"a"}));
  copy.ReplaceAllUses(b, a);
  copy.Erase(b);
  EXPECT_EQ(Contradiction(copy), "");
  EXPECT_EQ(Names(copy.instruction(a).control_successors()), "c d");
  EXPECT_EQ(Successors("a"), "b d");
  EXPECT_EQ(Successors("b"), "c d");
  const Module moved = std::move(copy);
  EXPECT_EQ(Contradiction(moved), "");
}

TEST_F(ModuleTest, MemoryIsReservedAndReleasedUnderTheGraph) {
  module_->Reserve(1000, 1000, 1000);
  EXPECT_EQ(Contradiction(*module_), "");
  module_->ShrinkToFit();
  EXPECT_EQ(Contradiction(*module_), "");
  EXPECT_EQ(Successors("a"), "b d");
  EXPECT_EQ(Users("p"), "a b d");
}

}  // namespace
}  // namespace hlokit

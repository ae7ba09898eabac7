// SPDX-License-Identifier: Apache-2.0
// Cases that texts cannot express: modules made invalid by edits, options, locations, and adversarial sizes.
// tests/golden/verify covers the rules themselves.
#include "ir/verify/verifier.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"

namespace hlokit {
namespace {

constexpr std::string_view kSmall = R"(HloModule small
f {
  p = f32[4] parameter(0)
  ROOT n = f32[4] negate(p)
}
ENTRY e {
  a = f32[4] parameter(0)
  b = f32[4] sine(a)
  c = f32[4] add(a, b)
  ROOT d = f32[4] call(c), to_apply=f
}
)";

class VerifierTest : public ::testing::Test {
 protected:
  void Parse(std::string_view text) {
    auto module = ParseModuleText(text);
    ASSERT_TRUE(module.ok()) << module.status();
    module_ = std::move(*module);
  }

  InstructionId Id(std::string_view name) const {
    for (Computation c : module_->computations()) {
      for (Instruction i : c.instructions()) {
        if (i.name() == name) return i.id();
      }
    }
    ADD_FAILURE() << "no instruction " << name;
    return InstructionId();
  }
  ComputationId ComputationNamed(std::string_view name) const {
    for (Computation c : module_->computations()) {
      if (c.name() == name) return c.id();
    }
    ADD_FAILURE() << "no computation " << name;
    return ComputationId();
  }
  StringId Name(std::string_view name) { return module_->context().strings.Intern(name); }

  // Returns "kind: message" lines.
  std::string Verify(const VerifierOptions& options = {}, size_t limit = 100) const {
    DiagnosticSink sink(limit);
    VerifyModule(*module_, options, &sink);
    std::string out;
    for (const Diagnostic& d : sink.diagnostics()) StrAppend(&out, ToString(d.kind), ": ", d.message, "\n");
    return out;
  }

  std::unique_ptr<Module> module_;
};

TEST_F(VerifierTest, SoundModule) {
  Parse(kSmall);
  EXPECT_EQ(Verify(), "");
}

TEST_F(VerifierTest, EmptyModule) {
  module_ = std::make_unique<Module>();
  EXPECT_EQ(Verify(), "undefined-computation: the module has no entry computation\n");
}

TEST_F(VerifierTest, ReportsAtTheName) {
  const std::string text = "ENTRY e {\n  a = f32[4] parameter(0)\n  ROOT bad = f32[8] negate(a)\n}\n";
  Parse(text);
  DiagnosticSink sink;
  VerifyModule(*module_, VerifierOptions(), &sink);
  ASSERT_EQ(sink.diagnostics().size(), 1u);
  EXPECT_EQ(text.substr(sink.diagnostics()[0].range.offset, sink.diagnostics()[0].range.size), "bad");
}

// ---- structure ----

TEST_F(VerifierTest, InstructionNamesAreUnique) {
  Parse(kSmall);
  module_->SetName(Id("b"), Name("n"));
  EXPECT_EQ(Verify(), "duplicate-name: `n`: redefinition of an instruction name\n");
}

TEST_F(VerifierTest, ComputationNamesAreUnique) {
  Parse(kSmall);
  module_->SetName(module_->entry().id(), Name("f"));
  EXPECT_EQ(Verify(), "duplicate-name: computation `f`: redefinition of a computation name\n");
}

TEST_F(VerifierTest, OperandCount) {
  Parse(kSmall);
  module_->SetOperands(Id("c"), {Id("a")});
  EXPECT_EQ(Verify(), "operand-count: `c`: has 1 operand; expected 2 for add\n");
}

TEST_F(VerifierTest, AttributesOfTheOpcode) {
  Parse(kSmall);
  module_->SetAttr(Id("b"), Attr::kIndex, 0);
  module_->RemoveAttr(Id("d"), Attr::kToApply);
  EXPECT_EQ(Verify(),
            "unknown-attribute: `b`: unknown attribute `index` for sine\nmissing-attribute: `d`: missing attribute "
            "`to_apply` for call\n");
}

TEST_F(VerifierTest, AttributeTwice) {
  Parse(kSmall);
  const AttrValue attr = {Attr::kToApply, ComputationNamed("f").value};
  module_->SetAttrs(Id("d"), {attr, attr});
  EXPECT_EQ(Verify(), "duplicate-attribute: `d`: duplicate attribute `to_apply` for call\n");
}

TEST_F(VerifierTest, ParametersAreDense) {
  Parse(kSmall);
  module_->SetPayload(Id("a"), 1);
  EXPECT_EQ(Verify(), "bad-parameter: computation `e`: has no parameter 0\n");
}

TEST_F(VerifierTest, ParametersAreListed) {
  Parse(kSmall);
  module_->SetParameters(module_->entry().id(), {});
  EXPECT_EQ(Verify(), "bad-parameter: computation `e`: has 1 parameter, but 0 distinct parameter numbers\n");
}

TEST_F(VerifierTest, RootIsInside) {
  Parse(kSmall);
  module_->SetRoot(module_->entry().id(), Id("n"));
  EXPECT_EQ(Verify(), "undefined-operand: computation `e`: has no root instruction\n");
}

TEST_F(VerifierTest, OperandsAreInside) {
  Parse(kSmall);
  module_->ReplaceOperand(Id("b"), 0, Id("p"));
  EXPECT_EQ(Verify(), "undefined-operand: `b`: has an operand outside of its computation\n");
}

TEST_F(VerifierTest, CalledComputationsExist) {
  Parse(kSmall);
  module_->SetAttr(Id("d"), Attr::kToApply, 77);
  EXPECT_EQ(Verify(), "undefined-computation: `d`: `to_apply` refers to an undefined computation\n");
}

TEST_F(VerifierTest, EntryIsNotFused) {
  Parse(R"(
fused {
  p = f32[] parameter(0)
  ROOT n = f32[] negate(p)
}
other {
  q = f32[] parameter(0)
  ROOT g = f32[] fusion(q), kind=kLoop, calls=fused
}
ENTRY e {
  a = f32[] parameter(0)
  ROOT c = f32[] call(a), to_apply=other
}
)");
  EXPECT_EQ(Verify(), "");
  module_->SetEntry(ComputationNamed("fused"));
  EXPECT_EQ(Verify(), "call-signature: computation `fused`: is the entry computation, but is called by a fusion\n");
}

// ---- order ----

TEST_F(VerifierTest, InstructionsOutOfOrder) {
  Parse(kSmall);
  module_->MoveBefore(Id("a"), InstructionId());
  EXPECT_EQ(Verify(), "");
  module_->header().is_scheduled = true;
  EXPECT_EQ(Verify(),
            "schedule: `b`: is scheduled before its operand `a`\n"
            "schedule: `c`: is scheduled before its operand `a`\n");
}

TEST_F(VerifierTest, ControlPredecessorsOutOfOrder) {
  Parse(kSmall);
  module_->SetAttr(Id("b"), Attr::kControlPredecessors, module_->ListPayload({Id("c").value}));
  EXPECT_EQ(Verify(), "cyclic-operands: `b`: depends on itself: `b` -> `c` -> `b`\n");
  module_->ReplaceOperand(Id("c"), 1, Id("a"));
  EXPECT_EQ(Verify(), "");
  module_->header().is_scheduled = true;
  EXPECT_EQ(Verify(), "schedule: `b`: is scheduled before its control predecessor `c`\n");
}

TEST_F(VerifierTest, OwnOperand) {
  Parse(kSmall);
  module_->ReplaceOperand(Id("b"), 0, Id("b"));
  EXPECT_EQ(Verify(), "cyclic-operands: `b`: depends on itself: `b` -> `b`\n");
}

TEST_F(VerifierTest, CyclicCalls) {
  Parse(R"(
f {
  p = f32[] parameter(0)
  ROOT n = f32[] negate(p)
}
g {
  q = f32[] parameter(0)
  ROOT c = f32[] call(q), to_apply=f
}
h {
  r = f32[] parameter(0)
  ROOT d = f32[] call(r), to_apply=g
}
ENTRY e {
  a = f32[] parameter(0)
  ROOT b = f32[] call(a), to_apply=h
}
)");
  module_->SetAttr(Id("c"), Attr::kToApply, ComputationNamed("h").value);
  EXPECT_EQ(Verify(), "cyclic-calls: `d`: makes a computation recursive: `g` -> `h` -> `g`\n");
  module_->SetAttr(Id("c"), Attr::kToApply, ComputationNamed("g").value);
  EXPECT_EQ(Verify(), "cyclic-calls: `c`: makes a computation recursive: `g` -> `g`\n");
}

// ---- errors that the parser reports too ----

TEST_F(VerifierTest, LayoutConstraints) {
  Parse(R"(
ENTRY e {
  a = f32[4] parameter(0)
  ROOT c = f32[4] custom-call(a), custom_call_target="x", operand_layout_constraints={f32[4]{0}}
}
)");
  ShapeTable& shapes = module_->context().shapes;
  const uint32_t wide = shapes.Array(ElementType::kF32, {8}).id().value;
  const uint32_t bare = shapes.Array(ElementType::kF32, {4}, {}, nullptr).id().value;
  module_->SetAttr(Id("c"), Attr::kOperandLayoutConstraints, module_->ListPayload({wide}));
  EXPECT_EQ(Verify(), "layout: `c`: operand 0 is f32[4]; its layout constraint is f32[8]{0}\n");
  module_->SetAttr(Id("c"), Attr::kOperandLayoutConstraints, module_->ListPayload({bare}));
  EXPECT_EQ(Verify(), "layout: `c`: the layout constraint of operand 0 has no layout\n");
  module_->SetAttr(Id("c"), Attr::kOperandLayoutConstraints, module_->ListPayload({wide, wide}));
  EXPECT_EQ(Verify(), "layout: `c`: has 1 operand and 2 layout constraints\n");
}

TEST_F(VerifierTest, ResultWithoutLayout) {
  Parse(R"(
ENTRY e {
  a = f32[4] parameter(0)
  ROOT c = f32[4] custom-call(a), custom_call_target="x", operand_layout_constraints={f32[4]{0}}
}
)");
  EXPECT_EQ(Verify(), "");
  module_->SetShape(Id("c"), module_->context().shapes.Array(ElementType::kF32, {4}, {}, nullptr));
  EXPECT_EQ(Verify(), "layout: `c`: has operand_layout_constraints, but its result has no layout\n");
}

TEST_F(VerifierTest, ValueOfAConstant) {
  Parse("ENTRY e {\n  a = f32[] constant(1)\n  b = f32[2] constant({1, 2})\n  ROOT c = (f32[2]) tuple(b)\n}\n");
  EXPECT_EQ(Verify(), "");
  module_->SetPayload(Id("b"), module_->instruction(Id("a")).literal_id().value);
  EXPECT_EQ(Verify(), "inference: `b`: is f32[2]; its literal is f32[]\n");
  module_->SetPayload(Id("b"), 77);
  EXPECT_EQ(Verify(), "attribute-value: `b`: has no literal\n");
}

TEST_F(VerifierTest, ReplicationOfAParameter) {
  Parse("ENTRY e {\n  ROOT a = f32[] parameter(0), parameter_replication={true}\n}\n");
  EXPECT_EQ(Verify(), "");
  module_->SetAttr(Id("a"), Attr::kParameterReplication, module_->ListPayload({1, 0}));
  EXPECT_EQ(Verify(),
            "attribute-value: `a`: parameter_replication has 2 values; expected 1, one for each leaf of the shape\n");
}

TEST_F(VerifierTest, CountsOfTheHeader) {
  Parse(kSmall);
  module_->header().replica_count = 0;
  module_->header().num_partitions = -1;
  EXPECT_EQ(Verify(),
            "bad-header: expected a positive replica_count, found 0\nbad-header: expected a positive num_partitions, "
            "found -1\n");
}

TEST_F(VerifierTest, AliasedTwice) {
  Parse(
      "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }\n"
      "ENTRY e {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n");
  EXPECT_EQ(Verify(), "");
  ModuleHeader& header = module_->header();
  header.input_output_alias.push_back(header.input_output_alias[0]);
  header.input_output_alias[1].parameter = 1;
  header.buffer_donor.push_back(header.buffer_donor[0]);
  EXPECT_EQ(Verify(),
            "aliasing: duplicate output {} in input_output_alias\naliasing: index {} of parameter 1 is both in "
            "buffer_donor and in input_output_alias\naliasing: index {} of parameter 1 is both in buffer_donor and in "
            "input_output_alias\naliasing: duplicate index {} of parameter 1 in buffer_donor\n");
}

TEST_F(VerifierTest, AsyncThread) {
  Parse(R"(
ENTRY e {
  a = f32[4] parameter(0)
  s = ((f32[4]), f32[4], u32[]) custom-call-start(a), custom_call_target="x", async_execution_thread="side"
  ROOT d = f32[4] custom-call-done(s)
}
)");
  EXPECT_EQ(Verify(), "");
  const Computation wrapper = module_->instruction(Id("s")).computation_attr(Attr::kCalls);
  module_->SetExecutionThread(wrapper.id(), Name("other"));
  EXPECT_EQ(Verify(),
            StrCat("async-pair: `s`: runs on thread \"side\" and calls `", wrapper.name(), "` of thread \"other\"\n"));
}

TEST_F(VerifierTest, GlobalDeviceIdsWithoutChannel) {
  Parse(R"(
ENTRY e {
  a = f32[4] parameter(0)
  ROOT g = f32[8] all-gather(a), channel_id=1, use_global_device_ids=true, replica_groups={{0,1}}, dimensions={0}
}
)");
  EXPECT_EQ(Verify(), "");
  module_->RemoveAttr(Id("g"), Attr::kChannelId);
  EXPECT_EQ(Verify(), "collective: `g`: has use_global_device_ids without channel_id\n");
}

// ---- options ----

TEST_F(VerifierTest, LayoutSensitive) {
  Parse(R"(
f {
  p = f32[4,2]{1,0} parameter(0)
  ROOT n = f32[4,2]{1,0} negate(p)
}
ENTRY e {
  a = f32[4,2]{1,0} parameter(0)
  b = f32[4,2]{0,1} sine(a)
  c = f32[4,2]{0,1} copy(a)
  d = f32[4,2]{1,0} call(c), to_apply=f
  g = f32[4,2]{1,0} reshape(c)
  h = f32[3]{0} bitcast(a)
  t = (f32[4,2]{0,1}, f32[4,2]{0,1}) tuple(a, c)
  ROOT u = f32[4,2]{1,0} get-tuple-element(t), index=0
}
)");
  EXPECT_EQ(Verify(), "");
  VerifierOptions options;
  options.layout_sensitive = true;
  EXPECT_EQ(Verify(options),
            "layout: `b`: sine cannot change the layout of `a`, f32[4,2]{1,0}, to f32[4,2]{0,1}\nlayout: `d`: passes "
            "operand 0, f32[4,2]{0,1}, as parameter 0 of `f`, f32[4,2]{1,0}\nlayout: `h`: is f32[3]{0} of 12 bytes; "
            "its operand is f32[4,2]{1,0} of 32 bytes\nlayout: `t`: element 0 is f32[4,2]{0,1}; operand 0 is "
            "f32[4,2]{1,0}\nlayout: `u`: is f32[4,2]{1,0}; get-tuple-element forwards f32[4,2]{0,1}\n");
}

TEST_F(VerifierTest, MixedPrecision) {
  Parse(R"(
ENTRY e {
  a = f32[4] parameter(0)
  b = bf16[4] parameter(1)
  ROOT c = bf16[4] add(a, b)
}
)");
  EXPECT_EQ(Verify(), "");
  VerifierOptions options;
  options.allow_mixed_precision = false;
  EXPECT_NE(Verify(options).find("inference: `c`: "), std::string::npos);
}

TEST_F(VerifierTest, UnboundedDimensions) {
  Parse("ENTRY e {\n  a = f32[?] parameter(0)\n  ROOT b = f32[?] negate(a)\n}\n");
  EXPECT_EQ(Verify(), "");
  VerifierOptions options;
  options.allow_unbounded_dynamism = false;
  EXPECT_EQ(Verify(options),
            "inference: `a`: has an unbounded dimension\n"
            "inference: `b`: has an unbounded dimension\n");
}

TEST_F(VerifierTest, OrderedBroadcastDimensions) {
  Parse("ENTRY e {\n  a = f32[2,3] parameter(0)\n  ROOT b = f32[3,2] broadcast(a), dimensions={1,0}\n}\n");
  EXPECT_EQ(Verify(), "");
  VerifierOptions options;
  options.verify_broadcast_dimensions_order = true;
  EXPECT_EQ(Verify(options), "attribute-value: `b`: dimensions {1,0} are not in increasing order\n");
}

TEST_F(VerifierTest, StopsWhenTheSinkIsFull) {
  std::string text = "ENTRY e {\n  a = f32[4] parameter(0)\n";
  for (int i = 0; i < 50; ++i) StrAppend(&text, "  x", i, " = f32[5] negate(a)\n");
  StrAppend(&text, "  ROOT r = f32[4] negate(a)\n}\n");
  Parse(text);
  DiagnosticSink sink(3);
  VerifyModule(*module_, VerifierOptions(), &sink);
  EXPECT_EQ(sink.error_count(), 3u);
}

// ---- size ----

TEST_F(VerifierTest, LongChains) {
  constexpr int kLength = 200000;
  std::string text = "ENTRY e {\n  x0 = f32[4] parameter(0)\n";
  for (int i = 1; i <= kLength; ++i) {
    StrAppend(&text, i == kLength ? "  ROOT x" : "  x", i, " = f32[4] negate(x", i - 1, ")\n");
  }
  StrAppend(&text, "}\n");
  Parse(text);
  EXPECT_EQ(Verify(), "");
  // The root first: the search for cycles then descends the whole way from it.
  module_->MoveBefore(module_->entry().root().id(), Id("x0"));
  EXPECT_EQ(Verify(), "");
}

TEST_F(VerifierTest, DeepCalls) {
  constexpr int kDepth = 20000;
  std::string text = "f0 {\n  ROOT p0 = f32[] parameter(0)\n}\n";
  for (int i = 1; i <= kDepth; ++i) {
    StrAppend(&text, i == kDepth ? "ENTRY f" : "f", i, " {\n  p", i, " = f32[] parameter(0)\n  ROOT c", i,
              " = f32[] call(p", i, "), to_apply=f", i - 1, "\n}\n");
  }
  Parse(text);
  EXPECT_EQ(Verify(), "");
}

// Every async-done follows the same chain of copies back to one start: the searches must not take quadratic time.
TEST_F(VerifierTest, ManySearchesThroughOneChain) {
  constexpr int kLength = 3000;
  std::string text = "ENTRY e {\n  a = f32[4] parameter(0)\n";
  const std::string state = "((f32[4]), f32[4], u32[])";
  StrAppend(&text, "  c0 = ", state, " custom-call-start(a), custom_call_target=\"x\"\n");
  for (int i = 1; i <= kLength; ++i) StrAppend(&text, "  c", i, " = ", state, " opt-barrier(c", i - 1, ")\n");
  for (int i = 0; i < kLength; ++i) StrAppend(&text, "  d", i, " = f32[4] custom-call-done(c", kLength, ")\n");
  StrAppend(&text, "  ROOT r = f32[4] negate(d0)\n}\n");
  Parse(text);
  EXPECT_EQ(Verify(), "");
}

}  // namespace
}  // namespace hlokit

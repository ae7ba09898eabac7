// SPDX-License-Identifier: Apache-2.0
#include "ir/builder/builder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/digest/fingerprint.h"
#include "ir/inference/shape_inference.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "tests/unit/parsed_module.h"

namespace hlokit {
namespace {

class BuilderTest : public ::testing::Test {
 protected:
  ComputationId NewComputation(std::string_view name) {
    return module_.AddComputation(module_.context().strings.Intern(name));
  }
  Shape S(std::string_view text) { return ParseShapeText(text, &module_.context()).value(); }
  Instruction At(InstructionId id) { return module_.instruction(id); }
  std::string ShapeText(InstructionId id) { return ToString(At(id).shape()); }

  // Returns the names of the instructions of main, in order.
  std::string Order() {
    std::string names;
    for (Instruction i : module_.computation(b_.computation()).instructions()) {
      if (!names.empty()) names += ' ';
      names += i.name();
    }
    return names;
  }

  // f32[], f32[] -> their sum
  ComputationId Adder() {
    Builder b(&module_, NewComputation("adder"));
    const InstructionId x = b.Parameter(0, S("f32[]"), "x").value();
    const InstructionId y = b.Parameter(1, S("f32[]"), "y").value();
    b.SetRoot(b.Binary(Opcode::kAdd, x, y).value());
    return b.computation();
  }

  Module module_;
  Builder b_{&module_, NewComputation("main")};
};

TEST_F(BuilderTest, ArithmeticWithInferredShapes) {
  const InstructionId x = b_.Parameter(0, S("f32[2,3]{0,1}"), "x").value();
  const InstructionId y = b_.Unary(Opcode::kTanh, x).value();
  const InstructionId z = b_.Binary(Opcode::kMultiply, x, y).value();
  const InstructionId lt = b_.Compare(x, z, ComparisonDirection::kLt).value();
  const InstructionId s = b_.Select(lt, x, z).value();
  const InstructionId c = b_.Clamp(b_.ConstantF32(0).value(), s, b_.ConstantF32(1).value()).value();
  b_.SetRoot(c);
  EXPECT_EQ(ShapeText(z), "f32[2,3]{0,1}");
  EXPECT_EQ(ShapeText(lt), "pred[2,3]{0,1}");
  EXPECT_EQ(ShapeText(c), "f32[2,3]{0,1}");
  EXPECT_EQ(module_.computation(b_.computation()).root(), At(c));
  EXPECT_EQ(At(z).operand(0), At(x));
}

TEST_F(BuilderTest, NamesAreUnique) {
  const InstructionId x = b_.Parameter(0, S("f32[2]"), "x").value();
  EXPECT_EQ(At(b_.Binary(Opcode::kAdd, x, x).value()).name(), "add");
  EXPECT_EQ(At(b_.Binary(Opcode::kAdd, x, x).value()).name(), "add.1");
  EXPECT_EQ(At(b_.WithName("sum").Binary(Opcode::kAdd, x, x).value()).name(), "sum");
  EXPECT_EQ(At(b_.WithName("x").Unary(Opcode::kNegate, x).value()).name(), "x.1");
  // A name applies to one call, even if the call fails.
  EXPECT_FALSE(b_.WithName("lost").Unary(Opcode::kNot, x).ok());
  EXPECT_FALSE(b_.WithName("lost").Convert(InstructionId(), ElementType::kF32).ok());
  EXPECT_FALSE(b_.WithName("lost").Slice(x, {0}, {1, 2}).ok());
  EXPECT_EQ(b_.WithName("lost").MakeConvert(x, ElementType::kF32), x);
  EXPECT_EQ(At(b_.Unary(Opcode::kNegate, x).value()).name(), "negate");
}

TEST_F(BuilderTest, InsertionPoints) {
  const InstructionId x = b_.Parameter(0, S("f32[2]"), "x").value();
  const InstructionId last = b_.WithName("last").Unary(Opcode::kTanh, x).value();
  b_.SetInsertionPoint(last);
  b_.WithName("a").Unary(Opcode::kNegate, x).value();
  b_.WithName("b").Make(Opcode::kNegate, S("f32[2]"), {x});
  EXPECT_EQ(Order(), "x a b last");
  b_.SetInsertionPointAfter(x);
  b_.WithName("c").Unary(Opcode::kNegate, x).value();
  b_.WithName("d").MakeLike(Opcode::kNegate, {x});
  EXPECT_EQ(Order(), "x c d a b last");
  b_.SetInsertionPoint(InstructionId());
  b_.WithName("end").Unary(Opcode::kNegate, x).value();
  b_.SetInsertionPointAfter(last);
  b_.WithName("e").Unary(Opcode::kNegate, x).value();
  EXPECT_EQ(Order(), "x c d a b last e end");
  EXPECT_FALSE(b_.Unary(Opcode::kNot, x).ok());
  EXPECT_EQ(Order(), "x c d a b last e end");
}

TEST_F(BuilderTest, AnInsertionPointMayBeInAnotherComputation) {
  const InstructionId sum = module_.computation(Adder()).root().id();
  b_.SetInsertionPoint(sum);
  const InstructionId x = At(sum).operand(0).id();
  const InstructionId y = b_.Unary(Opcode::kNegate, x).value();
  EXPECT_EQ(At(y).parent(), At(sum).parent());
  EXPECT_EQ(module_.record(y).next, sum);
  EXPECT_EQ(Builder(&module_, sum).Make(Opcode::kNegate, S("f32[]"), {x}), module_.record(sum).previous);
  // An operand must be in the current computation.
  Builder main(&module_, NewComputation("other"));
  const InstructionId p = main.Parameter(0, S("f32[]"), "p").value();
  EXPECT_FALSE(b_.Unary(Opcode::kNegate, p).ok());
}

TEST_F(BuilderTest, MakesInstructionsAsGiven) {
  std::vector<InstructionId> added;
  const InstructionId x = b_.Parameter(0, S("f32[2,3]{0,1}"), "x").value();
  b_.RecordIn(&added);
  const InstructionId tuple = b_.MakeTuple({x, b_.MakeScalarConstant(ElementType::kS32, 7)});
  EXPECT_EQ(ShapeText(tuple), "(f32[2,3]{0,1}, s32[])");
  const InstructionId element = b_.MakeElement(tuple, 1);
  EXPECT_EQ(ShapeText(element), "s32[]");
  EXPECT_EQ(At(element).name(), "get-tuple-element");
  const InstructionId lt = b_.MakeCompare(ComparisonDirection::kLt, x, x);
  EXPECT_EQ(ShapeText(lt), "pred[2,3]{0,1}");
  EXPECT_EQ(At(lt).enum_attr(Attr::kDirection, ComparisonDirection::kEq), ComparisonDirection::kLt);
  EXPECT_EQ(ShapeText(b_.MakeConvert(x, ElementType::kBF16)), "bf16[2,3]{0,1}");
  EXPECT_EQ(b_.MakeConvert(x, ElementType::kF32), x);
  EXPECT_EQ(b_.MakeReshape(x, At(x).shape()), x);
  const InstructionId zero = b_.MakeScalarConstant(ElementType::kF32, 0);
  EXPECT_EQ(b_.MakeSplat(S("f32[]"), zero), zero);
  EXPECT_EQ(ShapeText(b_.MakeSplat(S("f32[4]"), zero)), "f32[4]{0}");
  const ComputationId adder = b_.MakeReducer(Opcode::kAdd, ElementType::kF32);
  EXPECT_EQ(module_.computation(adder).root().opcode(), Opcode::kAdd);
  EXPECT_EQ(ShapeText(b_.MakeReduce(x, zero, {1}, adder)), "f32[2]{0}");
  EXPECT_FALSE(b_.MakeInferred(Opcode::kAdd, {x, zero}).valid());
  // One for each instruction of main but the parameter; the reducer's are not among them.
  EXPECT_EQ(static_cast<int64_t>(added.size()) + 1, module_.computation(b_.computation()).instruction_count());
}

TEST_F(BuilderTest, ClonesKeepAttributesAndMetadata) {
  Metadata metadata;
  metadata.op_name = module_.context().strings.Intern("here");
  const InstructionId x = b_.Parameter(0, S("f32[2,3]"), "x").value();
  const InstructionId turned = b_.WithName("turned").Transpose(x, {1, 0}).value();
  module_.SetMetadata(turned, module_.context().metadata.Intern(metadata));
  const InstructionId y = b_.Unary(Opcode::kNegate, x).value();
  b_.SetInsertionPoint(turned);
  const InstructionId copy = b_.MakeClone(turned, {y});
  EXPECT_EQ(At(copy).name(), "turned.1");
  EXPECT_EQ(At(copy).operand(0), At(y));
  EXPECT_EQ(At(copy).list_attr(Attr::kDimensions), At(turned).list_attr(Attr::kDimensions));
  EXPECT_EQ(At(copy).metadata_id(), At(turned).metadata_id());
  EXPECT_EQ(module_.record(copy).next, turned);
  EXPECT_EQ(At(b_.WithName("other").MakeClone(turned, {y})).name(), "other");
}

TEST_F(BuilderTest, MetadataScopes) {
  Metadata outer, inner;
  outer.op_name = module_.context().strings.Intern("outer");
  inner.op_name = module_.context().strings.Intern("inner");
  b_.SetMetadata(module_.context().metadata.Intern(outer));
  const InstructionId x = b_.Parameter(0, S("f32[2]"), "x").value();
  InstructionId y;
  {
    MetadataScope scope(&b_, module_.context().metadata.Intern(inner));
    y = b_.Unary(Opcode::kTanh, x).value();
  }
  const InstructionId z = b_.Unary(Opcode::kTanh, x).value();
  EXPECT_EQ(module_.context().str(At(x).metadata().op_name), "outer");
  EXPECT_EQ(module_.context().str(At(y).metadata().op_name), "inner");
  EXPECT_EQ(module_.context().str(At(z).metadata().op_name), "outer");
}

TEST_F(BuilderTest, DataMovement) {
  const InstructionId x = b_.Parameter(0, S("f32[2,3]"), "x").value();
  const InstructionId i = b_.ConstantS32(0).value();
  const InstructionId zero = b_.ConstantF32(0).value();
  EXPECT_EQ(ShapeText(b_.Broadcast(x, {4, 2, 3}, {1, 2}).value()), "f32[4,2,3]{2,1,0}");
  EXPECT_EQ(ShapeText(b_.Reshape(x, {3, 2}).value()), "f32[3,2]{1,0}");
  EXPECT_EQ(ShapeText(b_.Transpose(x, {1, 0}).value()), "f32[3,2]{0,1}");
  EXPECT_EQ(ShapeText(b_.Reverse(x, {0}).value()), "f32[2,3]{1,0}");
  EXPECT_EQ(ShapeText(b_.Slice(x, {0, 1}, {2, 3}).value()), "f32[2,2]{1,0}");
  EXPECT_EQ(ShapeText(b_.Slice(x, {0, 0}, {2, 3}, {1, 2}).value()), "f32[2,2]{1,0}");
  EXPECT_EQ(ShapeText(b_.DynamicSlice(x, {i, i}, {1, 3}).value()), "f32[1,3]{1,0}");
  EXPECT_EQ(ShapeText(b_.DynamicUpdateSlice(x, x, {i, i}).value()), "f32[2,3]{1,0}");
  EXPECT_EQ(ShapeText(b_.Concatenate({x, x}, 0).value()), "f32[4,3]{1,0}");
  EXPECT_EQ(ShapeText(b_.Pad(x, zero, {1, 0}, {0, 1}, {1, 0}).value()), "f32[4,4]{1,0}");
  EXPECT_EQ(ShapeText(b_.Iota(S("s32[5]"), 0).value()), "s32[5]{0}");
  EXPECT_EQ(ShapeText(b_.Convert(x, ElementType::kS8).value()), "s8[2,3]{1,0}");
  EXPECT_EQ(ShapeText(b_.BitcastConvert(x, ElementType::kU8).value()), "u8[2,3,4]{2,1,0}");
}

TEST_F(BuilderTest, Combining) {
  const InstructionId x = b_.Parameter(0, S("f32[2,3]"), "x").value();
  const InstructionId y = b_.Parameter(1, S("f32[3,4]"), "y").value();
  const InstructionId zero = b_.ConstantF32(0).value();
  EXPECT_EQ(ShapeText(b_.Reduce({x}, {zero}, {1}, Adder()).value()), "f32[2]{0}");
  const Builder::DotNumbers matmul = {.lhs_contracting = {1}, .rhs_contracting = {0}};
  const InstructionId dot = b_.Dot(x, y, matmul).value();
  EXPECT_EQ(ShapeText(dot), "f32[2,4]{1,0}");
  EXPECT_FALSE(At(dot).has(Attr::kLhsBatchDims));  // empty lists are not stored
  EXPECT_EQ(ShapeText(b_.Dot(x, y, matmul, ElementType::kF64).value()), "f64[2,4]{1,0}");
  EXPECT_FALSE(b_.Dot(x, x, matmul).ok());
}

TEST_F(BuilderTest, ControlFlow) {
  const InstructionId x = b_.Parameter(0, S("f32[]"), "x").value();
  EXPECT_EQ(ShapeText(b_.Call(Adder(), {x, x}).value()), "f32[]");

  Builder body(&module_, NewComputation("body"));
  const InstructionId p = body.Parameter(0, S("f32[]"), "p").value();
  body.SetRoot(body.Binary(Opcode::kAdd, p, p).value());
  Builder condition(&module_, NewComputation("condition"));
  const InstructionId q = condition.Parameter(0, S("f32[]"), "q").value();
  condition.SetRoot(condition.Compare(q, q, ComparisonDirection::kLt).value());
  EXPECT_EQ(ShapeText(b_.While(condition.computation(), body.computation(), x).value()), "f32[]");
  EXPECT_FALSE(b_.While(body.computation(), body.computation(), x).ok());

  const ComputationId twice = body.computation();
  const InstructionId pred = b_.ConstantPred(true).value();
  const InstructionId either = b_.Conditional(pred, {twice, twice}, {x, x}).value();
  EXPECT_TRUE(At(either).has(Attr::kTrueComputation));
  const InstructionId index = b_.ConstantS32(1).value();
  const InstructionId one_of = b_.Conditional(index, {twice, twice, twice}, {x, x, x}).value();
  EXPECT_EQ(At(one_of).called_computations().size(), 3u);
  EXPECT_FALSE(b_.Conditional(pred, {twice}, {x}).ok());

  const InstructionId tuple = b_.Tuple({x, pred}).value();
  EXPECT_EQ(ShapeText(b_.GetTupleElement(tuple, 1).value()), "pred[]");
  EXPECT_FALSE(b_.GetTupleElement(tuple, 2).ok());
}

TEST_F(BuilderTest, AttributesAreStoredAsTheParserStoresThem) {
  const InstructionId x = b_.Parameter(0, S("f32[4]"), "x").value();
  // In any order, defaults dropped, defaulted ones added.
  const InstructionId sort = b_.Add(Opcode::kTopK, {x}, {b_.Int(Attr::kK, 2)}).value();
  EXPECT_TRUE(At(sort).bool_attr(Attr::kLargest));
  EXPECT_TRUE(At(sort).bool_attr(Attr::kIsStable));
  const InstructionId compare = b_.Compare(x, x, ComparisonDirection::kEq, ComparisonType::kFloat).value();
  EXPECT_FALSE(At(compare).has(Attr::kCompareType));
  const InstructionId total = b_.Compare(x, x, ComparisonDirection::kEq, ComparisonType::kTotalOrder).value();
  EXPECT_TRUE(At(total).has(Attr::kCompareType));
  const InstructionId reduce = b_.Add(Opcode::kAllReduce, {x},
                                      {Builder::Calls(Attr::kToApply, Adder()), b_.List(Attr::kReplicaGroups, {}),
                                       Builder::Bool(Attr::kConstrainLayout, false)})
                                   .value();
  EXPECT_EQ(At(reduce).attrs().size(), 2u);
  EXPECT_EQ(At(reduce).attrs()[0].attr, Attr::kReplicaGroups);
}

// Built instructions have the attributes of the same instructions read from their text.
TEST_F(BuilderTest, AttributesAreThoseOfTheText) {
  const InstructionId x = b_.Parameter(0, S("f32[4]{0}"), "x").value();
  const InstructionId zero = b_.ConstantF32(0).value();
  const InstructionId token = b_.Add(Opcode::kAfterAll, {}).value();
  const ComputationId adder = Adder();
  const std::vector<InstructionId> built = {
      b_.Add(Opcode::kBroadcast, {zero}, {}, S("f32[4]{0}")).value(),
      b_.Add(Opcode::kMap, {x, x}, {Builder::Calls(Attr::kToApply, adder)}).value(),
      b_.Add(Opcode::kCustomCall, {x},
             {b_.String(Attr::kCustomCallTarget, "f"),
              Builder::Enum(Attr::kApiVersion, CustomCallApiVersion::kOriginal)},
             S("f32[4]{0}"))
          .value(),
      b_.Add(Opcode::kOutfeed, {x, token}, {}, S("token[]")).value(),
      b_.Add(Opcode::kCompare, {x, x},
             {Builder::Enum(Attr::kCompareType, ComparisonType::kFloat),
              Builder::Enum(Attr::kDirection, ComparisonDirection::kLt)})
          .value()};
  b_.SetRoot(b_.Tuple(built).value());
  module_.header().name = module_.context().strings.Intern("m");
  module_.SetEntry(b_.computation());
  module_.SetComputationOrder({adder, b_.computation()});
  const std::unique_ptr<Module> read = Parse(ToString(module_));
  ASSERT_NE(read, nullptr);
  for (size_t i = 0; i < built.size(); ++i) {
    const Instruction same = read->entry().root().operand(static_cast<int64_t>(i));
    const Instruction made = At(built[i]);
    EXPECT_EQ(ToString(same), ToString(made));
    ASSERT_EQ(same.attrs().size(), made.attrs().size()) << ToString(same);
    for (size_t a = 0; a < same.attrs().size(); ++a) EXPECT_EQ(same.attrs()[a].attr, made.attrs()[a].attr);
  }
  EXPECT_EQ(Fingerprint(*read), Fingerprint(module_));
}

TEST_F(BuilderTest, ErrorsAddNothing) {
  const InstructionId x = b_.Parameter(0, S("f32[4]"), "x").value();
  const InstructionId y = b_.Parameter(1, S("f32[5]"), "y").value();
  const int64_t before = module_.computation(b_.computation()).instruction_count();
  const auto message = [](const Builder::Result& result) { return std::string(result.status().message()); };
  EXPECT_EQ(message(b_.Binary(Opcode::kAdd, x, y)), "operands have different sizes in dimension 0: f32[4] and f32[5]");
  EXPECT_EQ(message(b_.Unary(Opcode::kTanh, InstructionId())),
            "operand 0 is not an instruction of the computation being built");
  EXPECT_EQ(message(b_.Unary(Opcode::kTanh, InstructionId(999))),
            "operand 0 is not an instruction of the computation being built");
  EXPECT_EQ(message(b_.Add(Opcode::kReverse, {x})), "missing attribute `dimensions` for reverse");
  EXPECT_EQ(message(b_.Add(Opcode::kAbs, {x}, {b_.Int(Attr::kK, 1)})), "unknown attribute `k` for abs");
  EXPECT_EQ(message(b_.Add(Opcode::kTopK, {x}, {b_.Int(Attr::kK, 1), b_.Int(Attr::kK, 2)})), "duplicate attribute `k`");
  EXPECT_EQ(message(b_.Add(Opcode::kAbs, {x}, {}, S("f32[5]"))),
            "the instruction is declared as f32[5], but the shape inferred from its operands and attributes is f32[4]");
  EXPECT_FALSE(b_.Parameter(3, S("f32[4]")).ok());
  EXPECT_FALSE(b_.Parameter(2, Shape()).ok());
  EXPECT_FALSE(b_.Add(Opcode::kParameter, {}).ok());
  EXPECT_FALSE(b_.Constant(Literal()).ok());
  EXPECT_FALSE(b_.Reshape(x, {-4}).ok());
  EXPECT_FALSE(b_.Slice(x, {0}, {1, 2}).ok());
  EXPECT_FALSE(b_.Pad(x, x, {0}, {}).ok());
  EXPECT_EQ(module_.computation(b_.computation()).instruction_count(), before);
}

TEST_F(BuilderTest, OperandsOfOtherComputationsAreRefused) {
  const InstructionId x = b_.Parameter(0, S("f32[4]"), "x").value();
  Builder other(&module_, NewComputation("other"));
  EXPECT_FALSE(other.Unary(Opcode::kTanh, x).ok());
  EXPECT_FALSE(other.Convert(x, ElementType::kS32).ok());
}

}  // namespace
}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
// Shape rules of tuples, control flow, collectives and asynchronous operations.
#include "shape_inference_fixture.h"

namespace hlokit {
namespace {

TEST_F(ShapeInferenceTest, Tuples) {
  EXPECT_EQ(Infer(Opcode::kTuple, {"f32[2]{0}", "token[]"}), "(f32[2]{0}, token[])");
  EXPECT_EQ(Infer(Opcode::kTuple, {}), "()");
  EXPECT_ERROR(Check(Opcode::kTuple, {"f32[2]"}, {}, "(f32[2], f32[2])"), "attributes is (f32[2])");
  EXPECT_EQ(Infer(Opcode::kGetTupleElement, {"(f32[2]{0}, token[])"}, {Int(Attr::kIndex, 1)}), "token[]");
  EXPECT_ERROR(Infer(Opcode::kGetTupleElement, {"(f32[2])"}, {Int(Attr::kIndex, 1)}), "operand 0 has 1 element");
  EXPECT_ERROR(Infer(Opcode::kGetTupleElement, {"(f32[2])"}, {Int(Attr::kIndex, -1)}),
               "`index` -1 is out of range: operand 0 has 1 element");
  EXPECT_ERROR(Infer(Opcode::kGetTupleElement, {"f32[2]"}, {Int(Attr::kIndex, 0)}), "to be a tuple");
}

TEST_F(ShapeInferenceTest, Tokens) {
  EXPECT_EQ(Infer(Opcode::kAfterAll, {"token[]", "token[]"}), "token[]");
  EXPECT_EQ(Infer(Opcode::kAfterAll, {}), "token[]");
  EXPECT_EQ(Check(Opcode::kOutfeed, {"f32[2]", "token[]"}, {AttrValue{Attr::kOutfeedShape, S("f32[2]").id().value}},
                  "token[]"),
            "");
  EXPECT_ERROR(Check(Opcode::kOutfeed, {"f32[2]", "token[]"}, {AttrValue{Attr::kOutfeedShape, S("f32[3]").id().value}},
                     "token[]"),
               "`outfeed_shape` is f32[3]");
  EXPECT_ERROR(Check(Opcode::kOutfeed, {"f32[2]", "f32[2]"}, {}, "token[]"), "operand 1 to be a token");
  EXPECT_ERROR(Check(Opcode::kSendDone, {"(f32[2], u32[], token[])"}, {}, "f32[2]"), "attributes is token[]");
}

TEST_F(ShapeInferenceTest, Explicit) {
  EXPECT_EQ(Infer(Opcode::kBitcast, {"f32[2,3]"}, {}, "f32[3,2]"), "f32[3,2]{1,0}");
  EXPECT_EQ(Infer(Opcode::kCustomCall, {"f32[2,3]"}, {}, "(f32[3,2], token[])"), "(f32[3,2]{1,0}, token[])");
  EXPECT_ERROR(Infer(Opcode::kBitcast, {"f32[2,3]"}), "the result shape of bitcast must be specified");
}

TEST_F(ShapeInferenceTest, Fusion) {
  const Attrs attrs = {Calls(Attr::kCalls, "to_pair")};
  EXPECT_EQ(Infer(Opcode::kFusion, {"f32[4]", "f32[3]"}, attrs), "(f32[4]{0}, f32[3]{0})");
  EXPECT_ERROR(Check(Opcode::kFusion, {"f32[4]", "f32[3]"}, attrs, "(f32[4], f32[4])"),
               "attributes is (f32[4], f32[3])");
  EXPECT_ERROR(Infer(Opcode::kFusion, {"f32[4]"}, attrs),
               "the fused computation has 2 parameters, more than the 1 operands");
  EXPECT_ERROR(Infer(Opcode::kFusion, {"f32[4]", "f32[4]"}, attrs), "operand 1 is f32[4]");
}

TEST_F(ShapeInferenceTest, DynamicReshape) {
  EXPECT_EQ(Check(Opcode::kDynamicReshape, {"f32[6]", "s32[]", "s32[]"}, {}, "f32[<=2,3]"), "");
  EXPECT_ERROR(Check(Opcode::kDynamicReshape, {"f32[6]", "s32[]"}, {}, "f32[<=2,3]"), "expected 3 operands");
  EXPECT_ERROR(Check(Opcode::kDynamicReshape, {"f32[6]", "s32[]", "s64[]"}, {}, "f32[<=2,3]"), "must be s32[]");
  EXPECT_ERROR(Check(Opcode::kDynamicReshape, {"f32[6]", "s32[]", "s32[]"}, {}, "f32[2,4]"), "numbers of elements");
  EXPECT_ERROR(Check(Opcode::kDynamicReshape, {"f32[6]", "s32[]", "s32[]"}, {}, "s32[2,3]"), "element type");
}

TEST_F(ShapeInferenceTest, Call) {
  const Attrs attrs = {Calls(Attr::kToApply, "to_pair")};
  EXPECT_EQ(Infer(Opcode::kCall, {"f32[4]", "f32[3]"}, attrs), "(f32[4]{0}, f32[3]{0})");
  EXPECT_EQ(Check(Opcode::kCall, {"f32[<=4]", "f32[3]"}, attrs, "(f32[4], f32[3])"), "");
  EXPECT_ERROR(Check(Opcode::kCall, {"f32[4]", "f32[3]"}, attrs, "(bf16[4], f32[3])"),
               "attributes is (f32[4], f32[3])");
  EXPECT_ERROR(Infer(Opcode::kCall, {"f32[4]"}, attrs),
               "the called computation has 2 parameters, but there are 1 operands");
  EXPECT_ERROR(Infer(Opcode::kCall, {"f32[4]", "bf16[3]"}, attrs), "operand 1 is bf16[3], but parameter 1");
  EXPECT_ERROR(Infer(Opcode::kCall, {"f32[4]"}), "`to_apply`");
  EXPECT_ERROR(Infer(Opcode::kCall, {"f32[4]"}, {AttrValue{Attr::kToApply, 12345}}), "`to_apply`");
}

TEST_F(ShapeInferenceTest, ComputationsUnderConstruction) {
  const ComputationId empty = module_->AddComputation(module_->context().strings.Intern("empty"));
  EXPECT_ERROR(Infer(Opcode::kCall, {}, {AttrValue{Attr::kToApply, empty.value}}), "empty has no root");
  const ComputationId gap = module_->AddComputation(module_->context().strings.Intern("gap"));
  const StringId name = module_->context().strings.Intern("root");
  module_->SetRoot(gap, module_->AddInstruction(gap, Opcode::kIota, S("f32[2]"), name, {}));
  module_->SetParameters(gap, {InstructionId()});
  EXPECT_ERROR(Infer(Opcode::kCall, {"f32[]"}, {AttrValue{Attr::kToApply, gap.value}}), "gap has no parameter 0");
}

TEST_F(ShapeInferenceTest, While) {
  const auto loop = [&](std::string_view condition, std::string_view body) {
    return Attrs{Calls(Attr::kCondition, condition), Calls(Attr::kBody, body)};
  };
  EXPECT_EQ(Infer(Opcode::kWhile, {"(f32[4]{0}, s32[])"}, loop("condition", "body")), "(f32[4]{0}, s32[])");
  EXPECT_ERROR(Infer(Opcode::kWhile, {"(f32[5], s32[])"}, loop("condition", "body")), "parameter 0 of the condition");
  EXPECT_ERROR(Infer(Opcode::kWhile, {"(f32[4], s32[])"}, loop("condition_s32", "body")),
               "expected the condition to return pred[], found s32[]");
  EXPECT_ERROR(Infer(Opcode::kWhile, {"(f32[4], s32[])"}, loop("condition", "body_narrow")),
               "the body returns f32[4], but the initial value of the loop is (f32[4], s32[])");
  EXPECT_ERROR(Infer(Opcode::kWhile, {"(f32[4], s32[])"}, loop("less", "body")),
               "expected 1 parameter of the condition, found 2");
  EXPECT_ERROR(Infer(Opcode::kWhile, {"(f32[4], s32[])"}, loop("condition", "add")),
               "expected 1 parameter of the body, found 2");
}

TEST_F(ShapeInferenceTest, Conditional) {
  const auto either = [&](std::string_view a, std::string_view b) {
    return Attrs{Calls(Attr::kTrueComputation, a), Calls(Attr::kFalseComputation, b)};
  };
  const auto branches = [&](const std::vector<std::string_view>& names) {
    return Attrs{CallsAll(Attr::kBranchComputations, names)};
  };
  EXPECT_EQ(Infer(Opcode::kConditional, {"pred[]", "f32[4]", "f32[4]"}, either("identity", "identity")), "f32[4]{0}");
  EXPECT_EQ(Infer(Opcode::kConditional, {"pred[]", "f32[4]", "f32[4]"}, either("identity", "identity_bounded")),
            "f32[<=4]{0}");
  EXPECT_EQ(Infer(Opcode::kConditional, {"s32[]", "f32[4]", "f32[4]", "f32[4]"},
                  branches({"identity", "identity", "identity"})),
            "f32[4]{0}");
  EXPECT_ERROR(Infer(Opcode::kConditional, {"s32[]", "f32[4]"}, branches({"identity", "identity"})),
               "expected 3 operands");
  EXPECT_ERROR(Infer(Opcode::kConditional, {"s32[]"}, branches({})),
               "expected at least one branch for a conditional on s32[], found 0");
  EXPECT_ERROR(Infer(Opcode::kConditional, {"pred[]", "f32[4]"}, branches({"identity"})),
               "expected two branches for a conditional on pred[], found 1");
  EXPECT_ERROR(Infer(Opcode::kConditional, {"u32[]", "f32[4]"}, branches({"identity"})), "must be pred[] or s32[]");
  EXPECT_ERROR(Infer(Opcode::kConditional, {"pred[]", "f32[4]", "f32[5]"}, either("identity", "identity")),
               "operand 2 is f32[5], but parameter 0 of branch 1");
  EXPECT_ERROR(Infer(Opcode::kConditional, {"pred[]", "f32[4]", "f32[]"}, either("identity", "add_one")),
               "branch 0 returns f32[4], but branch 1 returns f32[]");
  EXPECT_ERROR(Infer(Opcode::kConditional, {"pred[]", "f32[4]", "f32[4]"}, either("identity", "add")),
               "expected 1 parameter of branch 1, found 2");
  EXPECT_ERROR(Infer(Opcode::kConditional, {"pred[]", "f32[4]", "f32[4]"}), "`true_computation`");
  EXPECT_ERROR(Infer(Opcode::kConditional, {"s32[]", "f32[4]"}, {List(Attr::kBranchComputations, {12345})}),
               "missing branch computation 0");
}

TEST_F(ShapeInferenceTest, RandomNumbers) {
  const Attrs uniform = {Enum(Attr::kDistribution, RngDistribution::kUniform)};
  const Attrs normal = {Enum(Attr::kDistribution, RngDistribution::kNormal)};
  EXPECT_EQ(Infer(Opcode::kRng, {"f32[]", "f32[]"}, uniform, "f32[2,3]"), "f32[2,3]{1,0}");
  EXPECT_EQ(Check(Opcode::kRng, {"f32[]", "f32[]"}, normal, "bf16[2,3]"), "");
  EXPECT_ERROR(Check(Opcode::kRng, {"f32[]", "f32[]"}, uniform, "s32[2,3]"), "attributes is f32[2,3]");
  EXPECT_ERROR(Infer(Opcode::kRng, {"f32[1]", "f32[]"}, uniform, "f32[2]"), "operand 0 must be a scalar");
  EXPECT_ERROR(Infer(Opcode::kRng, {"f32[]", "bf16[]"}, uniform, "f32[2]"), "same element type");
  EXPECT_ERROR(Infer(Opcode::kRng, {"s32[]", "s32[]"}, normal, "s32[2]"), "rng_normal");
  EXPECT_ERROR(Infer(Opcode::kRng, {"f32[]"}, uniform, "f32[2]"), "expected 2 operands");
  EXPECT_ERROR(Infer(Opcode::kRng, {"f32[]", "f32[]"}, uniform), "the result shape of rng must be specified");

  EXPECT_EQ(Check(Opcode::kRngBitGenerator, {"u64[2]"}, {}, "(u64[2], u32[7])"), "");
  EXPECT_EQ(Check(Opcode::kRngBitGenerator, {"u64[2]"}, {}, "u32[7]"), "");
  EXPECT_ERROR(Check(Opcode::kRngBitGenerator, {"u64[2]"}, {}, "(u64[3], u32[7])"), "attributes is (u64[2], u32[7])");
  EXPECT_ERROR(Check(Opcode::kRngBitGenerator, {"u64[2]"}, {}, "(u64[2])"), "a state and an array of bits");

  EXPECT_EQ(Infer(Opcode::kRngGetAndUpdateState, {}), "u64[2]{0}");
  EXPECT_ERROR(Check(Opcode::kRngGetAndUpdateState, {}, {}, "u64[3]"), "attributes is u64[2]");
  EXPECT_EQ(Infer(Opcode::kReplicaId, {}), "u32[]");
  EXPECT_ERROR(Check(Opcode::kPartitionId, {}, {}, "s32[]"), "attributes is u32[]");
}

// ---- collectives ----

TEST_F(ShapeInferenceTest, AllReduce) {
  EXPECT_EQ(Infer(Opcode::kAllReduce, {"f32[2]{0}"}), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kAllReduce, {"f32[2]", "s32[3]"}), "(f32[2]{0}, s32[3]{0})");
  EXPECT_EQ(Infer(Opcode::kAllReduceStart, {"f32[2]"}), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kAllReduceDone, {"f32[2]"}), "f32[2]{0}");
  EXPECT_ERROR(Infer(Opcode::kAllReduce, {"(f32[2])"}), "operand 0 to be an array");
  EXPECT_ERROR(Check(Opcode::kAllReduce, {"f32[2]", "f32[2]"}, {}, "f32[2]"), "attributes is (f32[2], f32[2])");
}

TEST_F(ShapeInferenceTest, AllGather) {
  const Attrs along_0 = {List(Attr::kDimensions, {0})};
  EXPECT_EQ(Infer(Opcode::kAllGather, {"f32[2,3]"}, along_0, "f32[8,3]"), "f32[8,3]{1,0}");
  EXPECT_EQ(Check(Opcode::kAllGather, {"f32[2,3]", "s32[1]"}, along_0, "(f32[8,3], s32[4])"), "");
  EXPECT_EQ(Check(Opcode::kAllGather, {"f32[?,3]"}, along_0, "f32[?,3]"), "");
  EXPECT_ERROR(Check(Opcode::kAllGather, {"f32[2,3]", "s32[1]"}, along_0, "(f32[8,3], s32[5])"), "s32[4]");
  EXPECT_ERROR(Check(Opcode::kAllGather, {"f32[2,3]"}, along_0, "f32[7,3]"), "attributes is f32[8,3]");
  EXPECT_ERROR(Check(Opcode::kAllGather, {"f32[2,3]"}, along_0, "f32[8,4]"), "attributes is f32[8,3]");
  EXPECT_ERROR(Check(Opcode::kAllGather, {"f32[2,3]"}, along_0, "f32[8]"), "same rank");
  EXPECT_ERROR(Check(Opcode::kAllGather, {"f32[2]", "f32[2]"}, along_0, "f32[8]"), "a tuple with an array for each");
  EXPECT_ERROR(Check(Opcode::kAllGather, {"f32[2]"}, {List(Attr::kDimensions, {1})}, "f32[8]"),
               "dimension 1 in `dimensions` is out of range for operand 0 (f32[2])");
  EXPECT_ERROR(Infer(Opcode::kAllGather, {"f32[2]"}, along_0), "the result shape of all-gather must be specified");

  EXPECT_EQ(Check(Opcode::kAllGatherStart, {"f32[2]"}, along_0, "(f32[2], f32[8])"), "");
  EXPECT_EQ(Check(Opcode::kAllGatherStart, {"f32[2]", "s32[1]"}, along_0, "((f32[2], s32[1]), (f32[8], s32[4]))"), "");
  EXPECT_ERROR(Check(Opcode::kAllGatherStart, {"f32[2]"}, along_0, "(f32[3], f32[8])"),
               "attributes is (f32[2], f32[8])");
  EXPECT_ERROR(Check(Opcode::kAllGatherStart, {"f32[2]"}, along_0, "f32[8]"), "a pair");
  EXPECT_EQ(Infer(Opcode::kAllGatherDone, {"(f32[2], f32[8])"}), "f32[8]{0}");
  EXPECT_ERROR(Infer(Opcode::kAllGatherDone, {"f32[8]"}), "operands and results");
}

TEST_F(ShapeInferenceTest, ReduceScatter) {
  const Attrs along_0 = {List(Attr::kDimensions, {0})};
  EXPECT_EQ(Check(Opcode::kReduceScatter, {"f32[8,3]"}, along_0, "f32[2,3]"), "");
  EXPECT_EQ(Check(Opcode::kReduceScatter, {"f32[8,3]", "f32[4]"}, along_0, "(f32[2,3], f32[1])"), "");
  EXPECT_ERROR(Check(Opcode::kReduceScatter, {"f32[8,3]"}, along_0, "f32[3,3]"), "cannot be divided into 3 shards");
  EXPECT_ERROR(Check(Opcode::kReduceScatter, {"f32[8,3]", "f32[4]"}, along_0, "(f32[2,3], f32[2])"), "f32[1]");
  EXPECT_ERROR(Check(Opcode::kReduceScatter, {"(f32[8,3])"}, along_0, "f32[2,3]"), "operand 0 to be an array");
}

TEST_F(ShapeInferenceTest, AllToAll) {
  EXPECT_EQ(Infer(Opcode::kAllToAll, {"f32[8,3]"}, {List(Attr::kDimensions, {0})}), "f32[8,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kAllToAll, {"f32[2]", "f32[2]"}), "(f32[2]{0}, f32[2]{0})");
  EXPECT_ERROR(Infer(Opcode::kAllToAll, {"f32[2]", "f32[3]"}), "operands must have the same shape");
  EXPECT_ERROR(Infer(Opcode::kAllToAll, {"f32[8]"}, {List(Attr::kDimensions, {1})}),
               "dimension 1 in `dimensions` is out of range for operand 0 (f32[8])");
  EXPECT_ERROR(Infer(Opcode::kAllToAll, {"f32[8]", "f32[8]"}, {List(Attr::kDimensions, {0})}), "expected 1 operand");
  EXPECT_ERROR(Infer(Opcode::kAllToAll, {"f32[<=8]"}, {List(Attr::kDimensions, {0})}), "bounded dynamic");
}

TEST_F(ShapeInferenceTest, CollectiveBroadcast) {
  EXPECT_EQ(Infer(Opcode::kCollectiveBroadcast, {"f32[2]"}), "f32[2]{0}");
  const Attrs dynamic = {Flag(Attr::kHasDynamicRoot)};
  EXPECT_EQ(Infer(Opcode::kCollectiveBroadcast, {"f32[2]", "s32[1]"}, dynamic), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kCollectiveBroadcast, {"f32[2]", "f32[3]", "s32[2]"}, dynamic), "(f32[2]{0}, f32[3]{0})");
  EXPECT_ERROR(Infer(Opcode::kCollectiveBroadcast, {"f32[2]", "s32[2]"}, dynamic), "must be s32[1]");
  EXPECT_ERROR(Infer(Opcode::kCollectiveBroadcast, {"f32[2]"}, dynamic),
               "expected arrays followed by their roots, found 1 operands");
}

TEST_F(ShapeInferenceTest, CollectiveReduce) {
  EXPECT_EQ(Infer(Opcode::kCollectiveReduce, {"f32[2]"}), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kCollectiveReduce, {"f32[2]", "bf16[3]"}), "(f32[2]{0}, bf16[3]{0})");
  const Attrs dynamic = {Flag(Attr::kHasDynamicRoot)};
  EXPECT_EQ(Infer(Opcode::kCollectiveReduce, {"f32[2]", "s32[1]"}, dynamic), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kCollectiveReduce, {"f32[2]", "f32[3]", "s32[2]"}, dynamic), "(f32[2]{0}, f32[3]{0})");
  EXPECT_ERROR(Infer(Opcode::kCollectiveReduce, {"f32[2]", "u32[1]"}, dynamic), "must be s32[1]");
  EXPECT_ERROR(Infer(Opcode::kCollectiveReduce, {"s32[1]"}, dynamic),
               "expected arrays followed by their roots, found 1 operands");
  EXPECT_ERROR(Infer(Opcode::kCollectiveReduce, {"(f32[2])"}), "operand 0 to be an array");
}

TEST_F(ShapeInferenceTest, CollectivePermute) {
  EXPECT_EQ(Infer(Opcode::kCollectivePermute, {"f32[2]"}), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kCollectivePermute, {"f32[2]", "s32[2]"}), "(f32[2]{0}, s32[2]{0})");
  const Attrs in_place = {AttrValue{Attr::kPermuteSliceSizes, module_->ListPayload({1, 1})}};
  EXPECT_EQ(Infer(Opcode::kCollectivePermute, {"f32[2]", "f32[3]", "(s32[])", "(s32[])"}, in_place), "f32[3]{0}");
  EXPECT_ERROR(Infer(Opcode::kCollectivePermute, {"f32[2]", "f32[3]"}, in_place), "expected 4 operands");
  EXPECT_EQ(Infer(Opcode::kCollectivePermuteStart, {"f32[2]"}), "(f32[2]{0}, f32[2]{0})");
  EXPECT_EQ(Check(Opcode::kCollectivePermuteStart, {"f32[2]"}, {}, "(f32[2], f32[2], u32[], u32[])"), "");
  EXPECT_EQ(Infer(Opcode::kCollectivePermuteStart, {"f32[2]", "f32[3]", "(s32[])", "(s32[])"}, in_place),
            "(f32[2]{0}, f32[3]{0})");
  EXPECT_ERROR(Check(Opcode::kCollectivePermuteStart, {"f32[2]"}, {}, "(f32[2], f32[3], u32[])"),
               "attributes is (f32[2], f32[2], u32[])");
  EXPECT_EQ(Infer(Opcode::kCollectivePermuteDone, {"(f32[2], f32[3], u32[])"}), "f32[3]{0}");
}

TEST_F(ShapeInferenceTest, RaggedAllToAll) {
  EXPECT_EQ(Infer(Opcode::kRaggedAllToAll, {"f32[8,2]", "f32[9,2]", "s32[4]", "s32[4]", "s32[4]", "s32[4]"}),
            "f32[9,2]{1,0}");
  EXPECT_ERROR(Infer(Opcode::kRaggedAllToAll, {"f32[8,2]", "f32[9,2]", "s32[4]", "s32[4]", "s32[5]", "s32[4]"}),
               "operands 2 to 5");
  EXPECT_ERROR(Infer(Opcode::kRaggedAllToAll, {"f32[8,2]", "f32[9,2]", "s32[]", "s32[]", "s32[]", "s32[]"}),
               "one or two dimensions");
}

// ---- asynchronous operations ----

TEST_F(ShapeInferenceTest, Copies) {
  EXPECT_EQ(Infer(Opcode::kCopyStart, {"f32[2]{0:S(1)}"}), "(f32[2]{0:S(1)}, f32[2]{0:S(1)}, u32[])");
  EXPECT_ERROR(Check(Opcode::kCopyStart, {"f32[2]"}, {}, "(f32[2], f32[3], u32[])"),
               "attributes is (f32[2], f32[2], u32[])");
  EXPECT_EQ(Infer(Opcode::kCopyDone, {"(f32[2]{0:S(1)}, f32[2]{0}, u32[])"}), "f32[2]{0:S(1)}");
  EXPECT_ERROR(Infer(Opcode::kCopyDone, {"(f32[2], f32[3], u32[])"}), "of one shape");
  EXPECT_ERROR(Infer(Opcode::kCopyDone, {"f32[2]"}), "a tuple of at least 2");
}

TEST_F(ShapeInferenceTest, Transfers) {
  EXPECT_EQ(Infer(Opcode::kSend, {"f32[2]", "token[]"}), "(f32[2]{0}, u32[], token[])");
  EXPECT_ERROR(Check(Opcode::kSend, {"f32[2]", "token[]"}, {}, "(bf16[2], u32[], token[])"),
               "(f32[2], u32[], token[])");
  EXPECT_EQ(Infer(Opcode::kRecv, {"token[]"}, {}, "(f32[2], u32[], token[])"), "(f32[2]{0}, u32[], token[])");
  EXPECT_ERROR(Check(Opcode::kRecv, {"token[]"}, {}, "(f32[2], s32[], token[])"), "(f32[2], u32[], token[])");
  EXPECT_ERROR(Check(Opcode::kRecv, {"token[]"}, {}, "f32[2]"), "begins with the data");
  EXPECT_EQ(Infer(Opcode::kRecvDone, {"(f32[2], u32[], token[])"}), "(f32[2]{0}, token[])");
  EXPECT_ERROR(Infer(Opcode::kRecvDone, {"f32[2]"}), "a tuple of at least 1");
  EXPECT_EQ(Infer(Opcode::kInfeed, {"token[]"}, {}, "(f32[2], token[])"), "(f32[2]{0}, token[])");
  EXPECT_ERROR(Check(Opcode::kInfeed, {"token[]"}, {}, "(f32[2], f32[2])"), "attributes is (f32[2], token[])");
  EXPECT_ERROR(Check(Opcode::kInfeed, {"f32[2]"}, {}, "(f32[2], token[])"), "operand 0 to be a token");
}

TEST_F(ShapeInferenceTest, AsyncStart) {
  const Attrs attrs = {Calls(Attr::kCalls, "to_pair")};
  EXPECT_EQ(Infer(Opcode::kAsyncStart, {"f32[4]", "f32[3]"}, attrs),
            "((f32[4]{0}, f32[3]{0}), (f32[4]{0}, f32[3]{0}), u32[])");
  EXPECT_EQ(Check(Opcode::kAsyncStart, {"f32[4]", "f32[3]"}, attrs, "((f32[4], f32[3]), (f32[4], f32[3]), s32[])"), "");
  // Bound later.
  EXPECT_EQ(Check(Opcode::kAsyncStart, {}, attrs, "((), (f32[4], f32[3]), s32[])"), "");
  EXPECT_EQ(Check(Opcode::kAsyncStart, {"f32[4]"}, attrs, "((f32[4]), (), s32[])"), "");
  EXPECT_EQ(Check(Opcode::kAsyncStart, {"f32[4]"}, attrs, "((f32[4]), (f32[4]), s32[])"), "");
  EXPECT_ERROR(Check(Opcode::kAsyncStart, {"f32[5]"}, attrs, "((f32[4]), (), s32[])"), "operand 0 is f32[5]");
  EXPECT_ERROR(Check(Opcode::kAsyncStart, {"f32[5]"}, attrs, "((f32[5]), (), s32[])"), "{0,0}, but parameter 0");
  EXPECT_ERROR(Check(Opcode::kAsyncStart, {"f32[4]"}, attrs, "((f32[4]), f32[4], s32[])"), "at {1}");
  EXPECT_ERROR(Check(Opcode::kAsyncStart, {"f32[4]"}, attrs, "((), (), s32[])"), "1 are bound");
  EXPECT_ERROR(Check(Opcode::kAsyncStart, {"f32[4]"}, attrs, "(f32[4], f32[4])"), "((operands), outputs, state...)");
  EXPECT_ERROR(
      Check(Opcode::kAsyncStart, {"f32[4]", "f32[3]", "f32[2]"}, attrs, "((f32[4], f32[3], f32[2]), (), s32[])"),
      "the async shape ((f32[4], f32[3], f32[2]), (), s32[]) has 3 operands at {0}, but the computation has 2 "
      "parameters");
  EXPECT_ERROR(Infer(Opcode::kAsyncStart, {"f32[4]"}), "`calls`");
}

TEST_F(ShapeInferenceTest, AsyncUpdateAndDone) {
  EXPECT_EQ(Infer(Opcode::kAsyncUpdate, {"((f32[4]), (f32[4]), s32[])", "f32[3]"}),
            "((f32[4]{0}, f32[3]{0}), (f32[4]{0}), s32[])");
  EXPECT_EQ(Check(Opcode::kAsyncUpdate, {"((f32[4]), (), s32[])", "f32[3]"}, {}, "((f32[4], f32[3]), (f32[4]))"), "");
  EXPECT_ERROR(Check(Opcode::kAsyncUpdate, {"((f32[4]), (), s32[])", "f32[2]"}, {}, "((f32[4], f32[3]), ())"),
               "operand 1 is f32[2], but the async shape has f32[3] at {0,1}");
  EXPECT_ERROR(Check(Opcode::kAsyncUpdate, {"((f32[4]), (), s32[])"}, {}, "((f32[5]), ())"),
               "the result must preserve the operands bound by operand 0: result ((f32[5]), ()), operand 0 ((f32[4]), "
               "(), s32[])");
  EXPECT_ERROR(Check(Opcode::kAsyncUpdate, {"((f32[4]), f32[2], s32[])"}, {}, "((f32[4]), f32[3])"),
               "the result must preserve the operands bound by operand 0: result ((f32[4]), f32[3]), operand 0 "
               "((f32[4]), f32[2], s32[])");
  EXPECT_ERROR(Infer(Opcode::kAsyncUpdate, {}), "at least 1 operand");

  EXPECT_EQ(Infer(Opcode::kAsyncDone, {"((f32[4]), f32[3], s32[])"}), "f32[3]{0}");
  EXPECT_EQ(Check(Opcode::kAsyncDone, {"((f32[4]), (), s32[])"}, {}, "f32[3]"), "");
  EXPECT_EQ(Check(Opcode::kAsyncDone, {"((f32[4]), (f32[3]), s32[])"}, {}, "(f32[3], f32[4])"), "");
  EXPECT_ERROR(Check(Opcode::kAsyncDone, {"((f32[4]), f32[3], s32[])"}, {}, "f32[4]"), "attributes is f32[3]");
  EXPECT_ERROR(Infer(Opcode::kAsyncDone, {"f32[4]"}), "operand 0 must be ((operands), outputs");
}

}  // namespace
}  // namespace hlokit

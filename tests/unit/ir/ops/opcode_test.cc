// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/opcode.h"

#include <gtest/gtest.h>

#include <string>

namespace hlokit {
namespace {

void ExpectRange(Opcode opcode, int64_t count, int64_t first, int64_t last) {
  const OperandIndexRange range = ElementOperands(opcode, count);
  EXPECT_EQ(range.first, first) << ToString(opcode);
  EXPECT_EQ(range.last, last) << ToString(opcode);
}

TEST(OpcodeTest, OperandsWhoseElementsStandInTheResult) {
  ExpectRange(Opcode::kReshape, 1, 0, 1);
  ExpectRange(Opcode::kGather, 2, 0, 1);
  ExpectRange(Opcode::kDynamicUpdateSlice, 5, 0, 2);
  ExpectRange(Opcode::kConcatenate, 7, 0, 7);
  ExpectRange(Opcode::kSelect, 3, 1, 3);
  ExpectRange(Opcode::kMaximum, 2, 0, 2);
  ExpectRange(Opcode::kAllGather, 1, 0, 1);
  ExpectRange(Opcode::kConvert, 1, 0, 1);
  ExpectRange(Opcode::kAdd, 2, 0, 0);
  ExpectRange(Opcode::kUnknown, 3, 0, 0);
  ExpectRange(Opcode::kConcatenate, 0, 0, 0);  // an invalid instruction is not read beyond its end
  ExpectRange(Opcode::kSelect, 1, 1, 1);
}

TEST(OpcodeTest, OnlyWhatKeepsElementsMovesThem) {
  EXPECT_TRUE(MovesElements(Opcode::kTranspose));
  EXPECT_FALSE(MovesElements(Opcode::kConvert));
  EXPECT_FALSE(MovesElements(Opcode::kPad));
  EXPECT_FALSE(MovesElements(Opcode::kIota));
}

TEST(OpcodeTest, HalvesOfCollectivesHaveASynchronousOpcode) {
  EXPECT_EQ(SynchronousOpcode(Opcode::kAllGatherStart), Opcode::kAllGather);
  EXPECT_EQ(SynchronousOpcode(Opcode::kAllReduceDone), Opcode::kAllReduce);
  EXPECT_EQ(SynchronousOpcode(Opcode::kCollectivePermuteStart), Opcode::kCollectivePermute);
  for (Opcode opcode :
       {Opcode::kAllGather, Opcode::kAsyncStart, Opcode::kCopyStart, Opcode::kSendDone, Opcode::kUnknown}) {
    EXPECT_EQ(SynchronousOpcode(opcode), opcode) << ToString(opcode);
  }
  // Every start or done of a collective has one.
  for (size_t i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const bool half = HasTrait(opcode, kCollective) && HasTrait(opcode, kStartsAsync);
    EXPECT_EQ(half, half && SynchronousOpcode(opcode) != opcode) << ToString(opcode);
  }
}

TEST(OpcodeTest, TraitsOfFamilies) {
  const auto with = [](OpTrait trait) {
    std::string names;
    for (size_t i = 0; i < kOpcodeCount; ++i) {
      const auto opcode = static_cast<Opcode>(i);
      if (HasTrait(opcode, trait)) names += std::string(names.empty() ? "" : " ") + std::string(ToString(opcode));
    }
    return names;
  };
  EXPECT_EQ(with(kForwards), "add-dependency bitcast domain get-tuple-element opt-barrier tuple");
  EXPECT_EQ(with(kIdentity), "add-dependency copy domain opt-barrier");
  EXPECT_EQ(with(kGenericAsync), "async-done async-start async-update");
  EXPECT_EQ(with(kOwnsCallee), "async-start fusion");
  EXPECT_EQ(with(kAppliesComputation), "map reduce reduce-window");
  EXPECT_EQ(with(kImpure), "custom-call partition-id replica-id");
  EXPECT_EQ(with(kReducesAcrossDevices), "all-reduce collective-reduce reduce-scatter");
  EXPECT_EQ(with(kReinterprets), "bitcast copy reshape");
  EXPECT_EQ(with(kTransfers), "recv recv-done send send-done");
  EXPECT_EQ(with(kIdempotent), "and maximum minimum or");
  EXPECT_EQ(with(kDeviceId), "partition-id replica-id");
  EXPECT_EQ(with(kLeaf), "constant parameter");
  EXPECT_EQ(with(kReadsPart), "dynamic-slice gather slice");
  EXPECT_EQ(with(kContracts), "convolution dot ragged-dot scaled-dot");
  EXPECT_EQ(with(kAppliesToElements),
            "all-reduce all-reduce-start collective-reduce map reduce reduce-scatter reduce-window scan scatter "
            "select-and-scatter sort");
  const auto in = [](bool (*family)(Opcode)) {
    std::string names;
    for (size_t i = 0; i < kOpcodeCount; ++i) {
      if (family(static_cast<Opcode>(i))) names += std::string(ToString(static_cast<Opcode>(i))) + " ";
    }
    return names;
  };
  EXPECT_EQ(in(CallsSequentialCode), "call conditional while ");
  EXPECT_EQ(in(RunsCallees), "async-start call conditional fusion while ");
  EXPECT_EQ(in(EndsOperation), "all-gather-done all-reduce-done async-done collective-permute-done copy-done ");
  EXPECT_FALSE(HasTrait(Opcode::kUnknown, kAppliesToElements));
  EXPECT_FALSE(RunsCallees(Opcode::kUnknown));
  EXPECT_TRUE(HasTrait(Opcode::kUnknown, kSideEffect));
  EXPECT_TRUE(MightHaveCalledComputations(Opcode::kUnknown));
}

}  // namespace
}  // namespace hlokit

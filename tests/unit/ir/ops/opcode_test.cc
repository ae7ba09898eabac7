// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/opcode.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace hlokit

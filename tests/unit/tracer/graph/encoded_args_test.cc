// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/encoded_args.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace hlokit::lazy {
namespace {

TEST(EncodedArgsTest, ArgumentsComeBackAsTheyWere) {
  std::vector<int64_t> many(1000);
  std::iota(many.begin(), many.end(), -500);
  const std::string text = "a text of more than a word";
  ArgEncoder encoder;
  encoder.Operand();
  encoder.OperandList({1, 0, 1});
  encoder.Number(Scalar(int64_t{-7}));
  encoder.Number(Scalar(0.5));
  encoder.Number(Scalar(true));
  encoder.Ints(many);
  encoder.Ints({});
  encoder.Floats({1.5, -2.0});
  encoder.String(text);
  encoder.String("");
  encoder.Dtype(ElementType::kBF16);
  encoder.None();
  encoder.Operand();
  const EncodedArgs args = DecodeArgs(encoder.words());
  ASSERT_EQ(args.size(), 13u);
  EXPECT_EQ(args[0].tag, ArgTag::kOperand);
  EXPECT_EQ(args[1].tag, ArgTag::kOperandList);
  EXPECT_EQ(args[1].operand, 1u);
  EXPECT_EQ(args[2].scalar().ToInt(), -7);
  EXPECT_EQ(args[3].scalar().ToDouble(), 0.5);
  EXPECT_EQ(args[4].scalar().kind(), Scalar::Kind::kBool);
  EXPECT_EQ(args[5].ints(), absl::MakeConstSpan(many));
  EXPECT_TRUE(args[6].ints().empty());
  EXPECT_EQ(args[7].float_at(1), -2.0);
  EXPECT_EQ(args[8].string(), text);
  EXPECT_EQ(args[9].string(), "");
  EXPECT_EQ(args[10].dtype(), ElementType::kBF16);
  EXPECT_EQ(args[11].tag, ArgTag::kNone);
  EXPECT_EQ(args[12].operand, 3u);
}

TEST(EncodedArgsTest, TheBytesBehindATextAreZero) {
  ArgEncoder encoder;
  encoder.String("nine char");
  ASSERT_EQ(encoder.words().size(), 3u);
  EXPECT_EQ(encoder.words()[2], 'r');
}

}  // namespace
}  // namespace hlokit::lazy

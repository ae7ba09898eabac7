// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/sparsity_config.h"

#include <gtest/gtest.h>

namespace hlokit {
namespace {

TEST(SparsityConfigTest, SidesAndTheirFields) {
  const auto config = SparsityConfig::Parse(
      "{lhs={sparsity=1x4 dimension=1 stride=0 idx=0} rhs={sparsity=2x8 dimension=3 stride=5 idx=2}}");
  ASSERT_TRUE(config.ok());
  ASSERT_TRUE(config->lhs && config->rhs);
  EXPECT_EQ(config->lhs->block_size, 4);
  EXPECT_EQ(config->lhs->stride, 1) << "no stride given";
  EXPECT_EQ(config->rhs->num_non_zero, 2);
  EXPECT_EQ(config->rhs->block_size, 8);
  EXPECT_EQ(config->rhs->dimension, 3);
  EXPECT_EQ(config->rhs->stride, 5);
  EXPECT_EQ(config->rhs->indices_operand, 2);
}

TEST(SparsityConfigTest, NothingIsDense) {
  const auto config = SparsityConfig::Parse("");
  ASSERT_TRUE(config.ok());
  EXPECT_FALSE(config->lhs || config->rhs);
}

TEST(SparsityConfigTest, ImpossibleBlocks) {
  for (const char* text : {"{rhs={sparsity=4}}", "{rhs={sparsity=0x0}}", "{rhs={sparsity=5x4}}", "{rhs={dimension=1}}",
                           "{lhs={sparsity=1x4 stride=-1}}", "{rhs={sparsity=1x9223372036854775808}}"}) {
    EXPECT_FALSE(SparsityConfig::Parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace hlokit

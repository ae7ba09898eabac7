// SPDX-License-Identifier: Apache-2.0
#include "tools/ir_dump/session.h"

#include <gtest/gtest.h>

#include <string_view>

namespace hlokit {
namespace {

TEST(EmitOptionsTest, ParsesLists) {
  EmitOptions emit;
  ASSERT_TRUE(emit.Parse("hlo,metrics").ok());
  EXPECT_TRUE(emit.hlo && emit.metrics && emit.graph() && emit.any());
  EXPECT_FALSE(emit.lazy || emit.values);
  for (const std::string_view name : EmitOptions::Names()) {
    EmitOptions one;
    EXPECT_TRUE(one.Parse(name).ok()) << name;
    EXPECT_TRUE(one.any()) << name;
  }
}

TEST(EmitOptionsTest, UnknownNamesSuggestOne) {
  EmitOptions emit;
  EXPECT_EQ(emit.Parse("metric").message(), "--emit: there is no `metric`; did you mean `metrics`?");
}

}  // namespace
}  // namespace hlokit

// SPDX-License-Identifier: Apache-2.0
// Names are unique and numbered as XLA numbers them.
#include "ir/core/name_uniquer.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hlokit {
namespace {

class NameTableTest : public testing::Test {
 protected:
  std::string Take(std::string_view name) { return std::string(strings_[names_.GetUniqueName(name)]); }

  Arena arena_;
  StringPool strings_{&arena_};
  NameUniquer names_{&strings_};
};

TEST_F(NameTableTest, FreeNamesStay) {
  EXPECT_EQ(Take("add"), "add");
  EXPECT_EQ(Take("mul.7"), "mul.7");
  EXPECT_EQ(Take(""), "name");
}

TEST_F(NameTableTest, TakenNamesGetTheSmallestFreeNumber) {
  EXPECT_EQ(Take("add"), "add");
  EXPECT_EQ(Take("add.2"), "add.2");
  EXPECT_EQ(Take("add"), "add.1");
  EXPECT_EQ(Take("add.2"), "add.3");
}

TEST_F(NameTableTest, WithoutNumberIsZero) {
  EXPECT_EQ(Take("add.5"), "add.5");
  EXPECT_EQ(Take("add.5"), "add.0");
  EXPECT_EQ(Take("add"), "add.1");
}

TEST_F(NameTableTest, LeadingZerosDoNotCount) {
  EXPECT_EQ(Take("add.05"), "add.5");
  EXPECT_EQ(Take("add.5"), "add.0");
}

TEST_F(NameTableTest, ARootMayLookLikeANumberedName) {
  EXPECT_EQ(Take("x.5"), "x.5");
  EXPECT_EQ(Take("x.5.3"), "x.5.3");
  EXPECT_EQ(Take("x.5.3"), "x.5.0");
}

TEST_F(NameTableTest, AddedNamesAreTaken) {
  names_.Add(strings_.Intern("add.1"));
  EXPECT_EQ(Take("add.1"), "add.0");
  EXPECT_EQ(Take("add.1"), "add.2");
}

}  // namespace
}  // namespace hlokit

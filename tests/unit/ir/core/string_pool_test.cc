// SPDX-License-Identifier: Apache-2.0
// Interned strings have one id each, however similar they are.
#include "ir/core/string_pool.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/core/hashing.h"

namespace hlokit {
namespace {

TEST(StringPoolTest, NumberedNamesAreToldApart) {
  Arena arena;
  StringPool strings(&arena);
  std::vector<std::string> names;
  for (const char* root : {"add.", "add.1", "mul.", "a", ""}) {
    for (int i = 0; i < 2000; ++i) names.push_back(root + std::to_string(i));
  }
  std::vector<StringId> ids;
  for (const std::string& name : names) ids.push_back(strings.Intern(name));
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(strings[ids[i]], names[i]);
    EXPECT_EQ(strings.Find(names[i]), ids[i]);
  }
  EXPECT_FALSE(strings.Find("add.2000x").valid());
}

TEST(StringPoolTest, EveryLastByteIsItsOwnString) {
  Arena arena;
  StringPool strings(&arena);
  std::vector<StringId> ids;
  for (int c = 0; c < 256; ++c) ids.push_back(strings.Intern(std::string("x") + static_cast<char>(c)));
  for (int c = 0; c < 256; ++c) EXPECT_EQ(strings[ids[c]], std::string("x") + static_cast<char>(c));
  EXPECT_EQ(strings.size(), 257u);  // and the empty one
}

TEST(StringPoolTest, SameBytesComparesEverySize) {
  for (size_t size = 0; size < 100; ++size) {
    const std::string a(size, 'a');
    EXPECT_TRUE(SameBytes(a.data(), std::string(size, 'a').data(), size));
    for (size_t at = 0; at < size; ++at) {
      std::string b = a;
      b[at] = 'b';
      EXPECT_FALSE(SameBytes(a.data(), b.data(), size)) << size << ' ' << at;
    }
  }
}

}  // namespace
}  // namespace hlokit

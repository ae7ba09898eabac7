// SPDX-License-Identifier: Apache-2.0
#include "io/stores/redact.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hlokit {
namespace {

TEST(RedactTest, HidesSecretsInEachEncoding) {
  const std::vector<std::string> secrets = {"", "a/b+c=&", "sv=1&sig%3Dx%2fy"};
  EXPECT_EQ(Redacted("got a/b+c=& twice: a/b+c=&.", secrets), "got ... twice: ....");
  EXPECT_EQ(Redacted("?k=a%2Fb%2Bc%3D%26", secrets), "?k=...");
  EXPECT_EQ(Redacted("?k=a%2fb+c%3d%26;", secrets), "?k=...;");
  EXPECT_EQ(Redacted("<k>a/b+c=&amp;</k>", secrets), "<k>...</k>");
  EXPECT_EQ(Redacted("<k>a&#47;b&#x2b;c=&#38;</k>", secrets), "<k>...</k>");
  EXPECT_EQ(Redacted("/c?sv=1&sig%3Dx%2fy", secrets), "/c?...");
  EXPECT_EQ(Redacted("/c?sv=1&amp;sig=x/y", secrets), "/c?...");
  EXPECT_EQ(Redacted("/c?sv%3D1%26sig%253Dx%252fy", secrets), "/c?...");
}

TEST(RedactTest, LeavesOtherText) {
  const std::vector<std::string> secrets = {"a/b", "%"};
  EXPECT_EQ(Redacted("a/c a%2 a%2", {"a/b"}), "a/c a%2 a%2");
  EXPECT_EQ(Redacted("&#; &; &#x; a&#47", {"a/b"}), "&#; &; &#x; a&#47");
  EXPECT_EQ(Redacted("100 %", secrets), "100 ...");
  EXPECT_EQ(Redacted("", secrets), "");
}

}  // namespace
}  // namespace hlokit

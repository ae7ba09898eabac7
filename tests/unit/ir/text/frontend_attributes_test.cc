// SPDX-License-Identifier: Apache-2.0
#include "ir/text/frontend_attributes.h"

#include <string>

#include "gtest/gtest.h"

namespace hlokit {
namespace {

std::string Text(const Context& context, ListId id) {
  std::string text;
  TextWriter out(&text);
  PrintFrontendAttributes(out, context, id);
  out.Flush();
  return text;
}

TEST(FrontendAttributes, AddFindRemove) {
  Context context;
  ListId id = WithFrontendAttribute(&context, ListId(), "b", "2");
  id = WithFrontendAttribute(&context, id, "a", "1");
  EXPECT_EQ(Text(context, id), R"({a="1",b="2"})");
  EXPECT_EQ(context.str(FindFrontendAttribute(context, id, "b")), "2");
  EXPECT_FALSE(FindFrontendAttribute(context, id, "c").valid());
  EXPECT_FALSE(FindFrontendAttribute(context, ListId(), "a").valid());
  const ListId replaced = WithFrontendAttribute(&context, id, "b", "3");
  EXPECT_EQ(Text(context, replaced), R"({a="1",b="3"})");
  EXPECT_EQ(WithFrontendAttribute(&context, replaced, "b", "2"), id);
  EXPECT_EQ(Text(context, WithoutFrontendAttribute(&context, id, "a")), R"({b="2"})");
  EXPECT_EQ(WithoutFrontendAttribute(&context, WithoutFrontendAttribute(&context, id, "a"), "b"),
            context.lists.Intern({}));
}

TEST(FrontendAttributes, TheLastOfAKeyCounts) {
  Context context;
  const auto s = [&context](std::string_view text) { return context.strings.Intern(text); };
  EXPECT_EQ(Text(context, EncodeFrontendAttributes(&context, {{s("k"), s("1")}, {s("a"), s("2")}, {s("k"), s("3")}})),
            R"({a="2",k="3"})");
}

TEST(FrontendAttributes, BalancedBracesStandBare) {
  Context context;
  const auto one = [&context](std::string_view value) {
    return Text(context, WithFrontendAttribute(&context, ListId(), "k", value));
  };
  EXPECT_EQ(one("{a={},b=\"}\"}"), "{k={a={},b=\"}\"}}");
  EXPECT_EQ(one("{}"), "{k={}}");
  EXPECT_EQ(one("a{}"), "{k=\"a{}\"}");
  // Unquoted, these would not parse as a whole.
  EXPECT_EQ(one("{a"), "{k=\"{a\"}");
  EXPECT_EQ(one("{a}}"), "{k=\"{a}}\"}");
  EXPECT_EQ(one("{a} b"), "{k=\"{a} b\"}");
  EXPECT_EQ(one("{\"}"), "{k=\"{\\\"}\"}");
  EXPECT_EQ(one("{\"\\"), "{k=\"{\\\"\\\\\"}");
}

}  // namespace
}  // namespace hlokit

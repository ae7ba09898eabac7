// SPDX-License-Identifier: Apache-2.0
#include "ir/text/original_value.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hlokit {
namespace {

class OriginalValueTest : public ::testing::Test {
 protected:
  ListId Array(std::string_view name, std::vector<int64_t> index = {}) {
    const OriginalArray array{context_.strings.Intern(name), std::move(index)};
    const ListId id = EncodeOriginalArray(&context_, array);
    EXPECT_EQ(DecodeOriginalArray(context_, id), array);
    return id;
  }
  template <typename Print>
  std::string Text(Print print) {
    std::string text;
    TextWriter out(&text);
    print(out);
    out.Flush();
    return text;
  }

  Context context_;
};

TEST_F(OriginalValueTest, Values) {
  using Kind = OriginalValue::Kind;
  OriginalValue value;
  value.nodes = {{Kind::kOpen, {}},
                 {Kind::kArray, {context_.strings.Intern("a"), {}}},
                 {Kind::kOpen, {}},
                 {Kind::kUnknown, {}},
                 {Kind::kArray, {context_.strings.Intern("b"), {1, 0}}},
                 {Kind::kClose, {}},
                 {Kind::kOpen, {}},
                 {Kind::kClose, {}},
                 {Kind::kClose, {}}};
  const ListId id = EncodeOriginalValue(&context_, value);
  EXPECT_EQ(DecodeOriginalValue(context_, id), value);
  EXPECT_EQ(Text([&](TextWriter& out) { PrintOriginalValue(out, context_, id); }),
            R"({({"a"}, ({}, {"b" {1,0}}), ())})");

  value = {};
  value.synthetic_call = true;
  const ListId call = EncodeOriginalValue(&context_, value);
  EXPECT_EQ(DecodeOriginalValue(context_, call), value);
  EXPECT_EQ(Text([&](TextWriter& out) { PrintOriginalValue(out, context_, call); }), "{[synthetic_call]}");
}

TEST_F(OriginalValueTest, RecoveryTable) {
  std::vector<OriginRecoveryEntry> table = {
      {Array("b"), Array("b0"), context_.strings.Intern("HloModule m\n\nROOT \"q\\\"\n\n")},
      {Array("a", {2}), Array("a0"), StringId()},
      {Array("b"), Array("second"), StringId()},
      {Array("a"), Array("a1", {0, 1}), StringId()}};
  SortOriginRecoveryTable(context_, &table);
  EXPECT_EQ(Text([&](TextWriter& out) { PrintOriginRecoveryTable(out, context_, table); }), R"({
  {"a"} : {"a1" {0,1}}
  {"a" {2}} : {"a0"}
  {"b"} : {"b0"},
  "
    HloModule m

    ROOT \"q\\\"


  "
}
)");
}

TEST_F(OriginalValueTest, DebugAttributes) {
  const auto records = [this](std::vector<int64_t> list) { return context_.lists.Intern(list); };
  std::vector<DebugAttribute> attributes = {{Array("b"), records({1, 12, 1, 3})},
                                            {Array("nothing"), records({})},
                                            {Array("a"), records({0, 0, 0, 0, 2, 5, 0, 0})},
                                            {Array("b"), records({0, 7, 0, 0})}};
  SortDebugAttributes(&context_, &attributes);
  EXPECT_EQ(Text([&](TextWriter& out) { PrintDebugAttributes(out, context_, attributes); }), R"({
  {"a"}:({},{log_mode=fusion_debugger,callback_id=5}),
  {"b"}:({log_mode=default,callback_id=12,partitioned=true,op_id=3},{callback_id=7})
})");
}

}  // namespace
}  // namespace hlokit

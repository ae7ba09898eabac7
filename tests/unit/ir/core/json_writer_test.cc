// SPDX-License-Identifier: Apache-2.0
#include "ir/core/json_writer.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "gtest/gtest.h"

namespace hlokit {
namespace {

template <typename Write>
std::string Written(JsonLayout layout, Write write) {
  std::string text;
  TextWriter out(&text);
  JsonWriter json(&out, layout);
  write(json);
  out.Flush();
  return text;
}

std::string Quoted(std::string_view s, JsonInvalidUtf8 invalid) {
  std::string text;
  TextWriter out(&text);
  PrintJsonString(out, s, invalid);
  out.Flush();
  return text;
}

void WriteSample(JsonWriter& json) {
  json.BeginObject().Member("a", 1).Key("b").BeginArray().Value(true).Value("x").BeginObject().EndObject().EndArray();
  json.Key("c").BeginArray().EndArray().Key("d").Null().EndObject();
}

TEST(JsonWriterTest, Layouts) {
  EXPECT_EQ(Written(JsonLayout::kCompact, WriteSample), R"({"a":1,"b":[true,"x",{}],"c":[],"d":null})");
  EXPECT_EQ(Written(JsonLayout::kSpaced, WriteSample), R"({"a": 1, "b": [true, "x", {}], "c": [], "d": null})");
  EXPECT_EQ(Written(JsonLayout::kIndented, WriteSample), R"({
  "a": 1,
  "b": [
    true,
    "x",
    {}
  ],
  "c": [],
  "d": null
}
)");
}

TEST(JsonWriterTest, LinesReplaceBlanks) {
  const std::string text = Written(JsonLayout::kSpaced, [](JsonWriter& json) {
    json.BeginArray().Line("\n  ").Value(1).Line("\n  ").BeginArray().Value(2).Value(3).EndArray().EndArray("\n");
  });
  EXPECT_EQ(text, "[\n  1,\n  [2, 3]\n]");
}

TEST(JsonWriterTest, Numbers) {
  const std::string text = Written(JsonLayout::kCompact, [](JsonWriter& json) {
    json.BeginArray().Value(std::numeric_limits<int64_t>::min()).Value(std::numeric_limits<uint64_t>::max());
    json.Value(uint32_t{4000000000}).Value(0.1).Value(1e300).Rounded(1.0 / 3, 4);
    json.Value(std::numeric_limits<double>::infinity()).Rounded(std::numeric_limits<double>::quiet_NaN(), 4);
    json.Raw() << "1.50";
    json.EndArray();
  });
  EXPECT_EQ(text, "[-9223372036854775808,18446744073709551615,4000000000,0.1,1e+300,0.3333,null,null,1.50]");
}

TEST(JsonWriterTest, StringsAndKeysAreEscaped) {
  std::string ascii;
  for (char c = 0; c < 127; ++c) ascii.push_back(c);
  const std::string text = Written(
      JsonLayout::kSpaced, [&](JsonWriter& json) { json.BeginObject().Member(ascii, ascii + "\u00e4").EndObject(); });
  const nlohmann::json read = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(read.is_object()) << text;
  EXPECT_EQ(read.value(ascii, ""), ascii + "\u00e4");
  EXPECT_EQ(Quoted("\"\\\n\x01", JsonInvalidUtf8::kReplace), R"("\"\\\n\u0001")");
}

TEST(JsonWriterTest, BytesThatAreNotUtf8) {
  // A byte alone, a sequence that is cut off, an overlong one, a surrogate, past the last code point.
  for (const std::string& s : {std::string("\xff"), std::string("\xe2\x82"), std::string("\xc0\x80"),
                               std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80")}) {
    std::string replaced = "\"", escaped = "\"";
    for (char c : s) {
      replaced += "\ufffd";
      static constexpr char kHex[] = "0123456789abcdef";
      escaped += std::string("\\udc") + kHex[static_cast<unsigned char>(c) >> 4] + kHex[c & 15];
    }
    EXPECT_EQ(Quoted(s, JsonInvalidUtf8::kReplace), replaced + "\"");
    EXPECT_EQ(Quoted(s, JsonInvalidUtf8::kEscape), escaped + "\"");
  }
}

}  // namespace
}  // namespace hlokit

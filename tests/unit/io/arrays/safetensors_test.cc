// SPDX-License-Identifier: Apache-2.0
#include "io/arrays/safetensors.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "ir/text/printer.h"
#include "tests/unit/temporary_folder.h"

namespace hlokit::interp {
namespace {

std::string SafetensorsBytes(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i)));
  return bytes + header + data;
}

std::string Problem(const std::string& bytes) {
  Context context;
  const absl::StatusOr<SafetensorsFile> file = DecodeSafetensors(bytes, &context);
  return file.ok() ? "" : std::string(file.status().message());
}

class SafetensorsTest : public ::testing::Test {
 protected:
  NamedValue Make(const std::string& name, ElementType type, absl::Span<const int64_t> dims) {
    Literal value = Literal::Zeros(context_.shapes.Array(type, dims));
    for (size_t i = 0; i < value.size_bytes(); ++i) {
      value.data()[i] = static_cast<std::byte>(type == ElementType::kPred ? i % 2 : 37 * i + 1);
    }
    return {name, std::move(value)};
  }

  Context context_;
};

TEST_F(SafetensorsTest, TheBytesAreThoseOfTheFormat) {
  const absl::StatusOr<std::string> bytes =
      EncodeSafetensors({Make("b", ElementType::kU8, {3}), Make("a", ElementType::kF32, {1, 2})}, {{"format", "pt"}});
  ASSERT_TRUE(bytes.ok());
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  std::string padded = header;
  padded.resize((header.size() + 7) / 8 * 8, ' ');
  std::string data;
  for (int i = 0; i < 8; ++i) data.push_back(static_cast<char>(37 * i + 1));
  for (int i = 0; i < 3; ++i) data.push_back(static_cast<char>(37 * i + 1));
  EXPECT_EQ(*bytes, SafetensorsBytes(padded, data));
}

TEST_F(SafetensorsTest, EveryTypeComesBackTheSame) {
  std::vector<NamedValue> values;
  for (ElementType type :
       {ElementType::kPred, ElementType::kS8, ElementType::kU8, ElementType::kS16, ElementType::kU16, ElementType::kF16,
        ElementType::kBF16, ElementType::kS32, ElementType::kU32, ElementType::kF32, ElementType::kS64,
        ElementType::kU64, ElementType::kF64, ElementType::kF8E5M2, ElementType::kF8E4M3FN}) {
    values.push_back(Make("layer." + std::to_string(values.size()), type, {2, 3}));
  }
  values.push_back(Make("scalar", ElementType::kF32, {}));
  values.push_back(Make("empty", ElementType::kF32, {0, 4}));
  const absl::StatusOr<std::string> bytes = EncodeSafetensors(values);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const absl::StatusOr<SafetensorsFile> file = DecodeSafetensors(*bytes, &context_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->tensors.size(), values.size());
  for (const NamedValue& value : values) {
    const auto it = std::find_if(file->tensors.begin(), file->tensors.end(),
                                 [&](const NamedValue& v) { return v.name == value.name; });
    ASSERT_NE(it, file->tensors.end()) << value.name;
    EXPECT_EQ(it->value.shape(), value.value.shape());
    EXPECT_EQ(std::memcmp(it->value.data(), value.value.data(), value.value.size_bytes()), 0);
  }
  EXPECT_EQ(*EncodeSafetensors(file->tensors), *bytes);
}

TEST_F(SafetensorsTest, WhatTheFormatDoesNotHaveIsAnError) {
  EXPECT_EQ(EncodeSafetensors({Make("z", ElementType::kC64, {1})}).status().message(),
            "z: safetensors files have no type c64[1]");
  EXPECT_EQ(EncodeSafetensors({Make("a", ElementType::kF32, {}), Make("a", ElementType::kF32, {})}).status().message(),
            "two tensors named a");
}

TEST_F(SafetensorsTest, HostileHeadersAreNamed) {
  const auto problem = [](const std::string& header, const std::string& data = "") {
    return Problem(SafetensorsBytes(header, data)).substr(std::string("not a safetensors file: ").size());
  };
  EXPECT_EQ(Problem("1234567"), "not a safetensors file: it is shorter than 8 bytes");
  EXPECT_EQ(Problem("\xff\xff\xff\xff\xff\xff\xff\xff{}"),
            "not a safetensors file: the length of the header is beyond the file");
  EXPECT_EQ(problem(" {}"), "the header does not start with {");
  EXPECT_EQ(problem("{\"a\":"), "expected JSON in the header at byte 14");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"a":{}})", "1234"), "two entries named a");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[]}})"), "a needs dtype, shape and data_offsets");
  EXPECT_EQ(problem(R"({"a":{"dtype":"Q4","shape":[],"data_offsets":[0,4]}})", "1234"), "a has the unknown type Q4");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", "1234"),
            "a is larger than any memory");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[1000000],"data_offsets":[0,4000000]}})", "1234"),
            "the data of a ends beyond the file");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "12345678"),
            "the data of a does not follow what is before it");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "12345678"),
            "4 bytes at the end belong to no tensor");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})"), "a negative number in the header");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})"), "a list where none belongs");
  EXPECT_EQ(problem(R"({"a":{"b":{"c":{}}}})"), "an object where none belongs");
  EXPECT_EQ(problem(R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", "\x02"),
            "a: the array has a bool that is neither 0 nor 1");
  EXPECT_EQ(problem("{" + std::string(100000, '[')), "expected JSON in the header at byte 10");
}

TEST_F(SafetensorsTest, EveryCutAndEveryChangedByteIsReadOrNamed) {
  const std::string bytes =
      *EncodeSafetensors({Make("w", ElementType::kF32, {2}), Make("m", ElementType::kPred, {3})}, {{"format", "pt"}});
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_NE(Problem(bytes.substr(0, size)), "") << size;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      Problem(changed);  // must not crash
    }
  }
}

TEST_F(SafetensorsTest, AFileThatCannotBeWrittenLeavesTheOldOne) {
  const TemporaryFolder temporary;
  const std::string directory = temporary.path().string();
  const std::string path = directory + "/w.safetensors";
  ASSERT_TRUE(WriteSafetensors(path, {Make("a", ElementType::kF32, {2})}).ok());
  EXPECT_FALSE(WriteSafetensors(path, {Make("z", ElementType::kC64, {2})}).ok());
  EXPECT_FALSE(WriteSafetensors(directory + "/none/w.safetensors", {Make("a", ElementType::kF32, {2})}).ok());
  EXPECT_FALSE(WriteSafetensors("/dev/full", {Make("a", ElementType::kF32, {2})}).ok());
  const absl::StatusOr<SafetensorsFile> file = ReadSafetensors(path, &context_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->tensors[0].name, "a");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
  EXPECT_FALSE(ReadSafetensors(directory, &context_).ok());
  EXPECT_FALSE(ReadSafetensors(directory + "/none", &context_).ok());
}

}  // namespace
}  // namespace hlokit::interp

// SPDX-License-Identifier: Apache-2.0
#include "io/arrays/npy.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/core/str_cat.h"
#include "ir/graph/context.h"
#include "ir/graph/literal_fill.h"

namespace hlokit::interp {
namespace {

std::string File(const std::string& dict, const std::string& elements) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(dict.size() & 0xff);
  file += static_cast<char>(dict.size() >> 8);
  return file + dict + elements;
}

class NpyTest : public testing::Test {
 protected:
  Context context_;
};

TEST_F(NpyTest, EveryTypeReadsBack) {
  for (size_t t = 0; t < kElementTypeCount; ++t) {
    const auto type = static_cast<ElementType>(t);
    if (!IsArrayType(type)) continue;
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {5}, {2, 3}, {2, 0, 4}}) {
      const Shape shape = context_.shapes.Array(type, dims);
      const Literal literal = FillElided(shape, FillKind::kRandom, 7);
      const std::string header = NpyHeader(shape);
      EXPECT_EQ(header.size() % 64, 0u);
      const absl::StatusOr<Literal> back =
          ReadNpy(header + std::string(reinterpret_cast<const char*>(literal.data()), literal.size_bytes()), shape);
      ASSERT_TRUE(back.ok()) << ToString(type) << ": " << back.status().message();
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(back->data()), back->size_bytes()),
                std::string(reinterpret_cast<const char*>(literal.data()), literal.size_bytes()));
    }
  }
}

TEST_F(NpyTest, FortranOrderAndTheOtherByteOrder) {
  const Shape shape = context_.shapes.Array(ElementType::kS16, {2, 3});
  const std::string elements("\0\1\0\4\0\2\0\5\0\3\0\6", 12);
  const absl::StatusOr<Literal> literal =
      ReadNpy(File("{'shape': (2, 3), 'fortran_order': True, 'descr': '>i2'}\n", elements), shape);
  ASSERT_TRUE(literal.ok()) << literal.status().message();
  const auto values = literal->values<int16_t>();
  EXPECT_EQ(std::vector<int16_t>(values.begin(), values.end()), (std::vector<int16_t>{1, 2, 3, 4, 5, 6}));
}

TEST_F(NpyTest, NarrowIntegersKeepTheirOwnBitsOnly) {
  const Shape shape = context_.shapes.Array(ElementType::kS4, {2});
  const absl::StatusOr<Literal> literal =
      ReadNpy(File("{'descr': '|V1', 'fortran_order': False, 'shape': (2,), }", "\x1f\x07"), shape);
  ASSERT_TRUE(literal.ok());
  EXPECT_EQ(static_cast<int8_t>(literal->data()[0]), -1);
  EXPECT_EQ(static_cast<int8_t>(literal->data()[1]), 7);
}

TEST_F(NpyTest, BadFilesAreErrors) {
  const Shape shape = context_.shapes.Array(ElementType::kF32, {2});
  const std::string good = File("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", "12345678");
  ASSERT_TRUE(ReadNpy(good, shape).ok());
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(ReadNpy(good.substr(0, size), shape).ok()) << size;
  for (const char* dict : {"", "{}", "{'descr': '<f4'}", "{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}",
                           "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2",
                           "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
                           "{'descr': '', 'fortran_order': False, 'shape': (2,)}"}) {
    EXPECT_FALSE(ReadNpy(File(dict, "12345678"), shape).ok()) << dict;
  }
}

}  // namespace
}  // namespace hlokit::interp

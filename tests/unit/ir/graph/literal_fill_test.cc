// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/literal_fill.h"

#include <string>

#include "gtest/gtest.h"
#include "ir/graph/context.h"
#include "ir/text/literal_text.h"
#include "ir/types/float_types.h"

namespace hlokit {
namespace {

class LiteralFillTest : public testing::Test {
 protected:
  std::string Fill(ElementType type, std::vector<int64_t> dims, FillKind kind, uint64_t seed = 0) {
    return ToString(FillElided(context.shapes.Array(type, dims), kind, seed));
  }

  Context context;
};

TEST_F(LiteralFillTest, Zeros) {
  EXPECT_EQ(Fill(ElementType::kF32, {2, 2}, FillKind::kZeros), "{ { 0, 0 }, { 0, 0 } }");
  EXPECT_EQ(Fill(ElementType::kF8E8M0FNU, {1}, FillKind::kZeros), "{5.9e-39}");
}

TEST_F(LiteralFillTest, Iota) {
  EXPECT_EQ(Fill(ElementType::kF32, {2, 2}, FillKind::kIota), "{ { 0, 1 }, { 2, 3 } }");
  EXPECT_EQ(Fill(ElementType::kPred, {3}, FillKind::kIota), "{0, 1, 0}");
  EXPECT_EQ(Fill(ElementType::kS4, {10}, FillKind::kIota), "{0, 1, 2, 3, 4, 5, 6, 7, 0, 1}");
  EXPECT_EQ(Fill(ElementType::kS1, {2}, FillKind::kIota), "{0, 0}");
  EXPECT_EQ(Fill(ElementType::kF4E2M1FN, {6}, FillKind::kIota), "{0, 1, 2, 3, 0, 1}");
  EXPECT_EQ(Fill(ElementType::kF8E5M2, {9}, FillKind::kIota), "{0, 1, 2, 3, 4, 5, 6, 7, 0}");
  EXPECT_EQ(Fill(ElementType::kF8E8M0FNU, {3}, FillKind::kIota), "{1, 2, 4}");
  EXPECT_EQ(Fill(ElementType::kC64, {2}, FillKind::kIota), "{(0, 0), (1, 0)}");
  EXPECT_EQ(Fill(ElementType::kU64, {3}, FillKind::kIota), "{0, 1, 2}");
}

TEST_F(LiteralFillTest, XlaFillsWithACounter) {
  EXPECT_EQ(Fill(ElementType::kU32, {2, 2}, FillKind::kXla, 5), "{ { 5, 6 }, { 7, 8 } }");
  EXPECT_EQ(Fill(ElementType::kF32, {2}, FillKind::kXla), "{0, 1.4013e-45}");
  EXPECT_EQ(Fill(ElementType::kU8, {6}, FillKind::kXla, 258), "{2, 1, 0, 0, 3, 4}");  // a word, then two bytes
  EXPECT_EQ(Fill(ElementType::kPred, {6}, FillKind::kXla, 3), "{1, 0, 0, 0, 0, 1}");
  EXPECT_EQ(Fill(ElementType::kS4, {6}, FillKind::kXla, 15), "{-1, 0, 0, 0, 0, 1}");
}

TEST_F(LiteralFillTest, RandomValuesAreTheSameEverywhere) {
  EXPECT_EQ(Fill(ElementType::kS32, {8}, FillKind::kRandom, 42), Fill(ElementType::kS32, {8}, FillKind::kRandom, 42));
  EXPECT_NE(Fill(ElementType::kS32, {8}, FillKind::kRandom, 42), Fill(ElementType::kS32, {8}, FillKind::kRandom, 43));
  // The outputs of SplitMix64 from 1234567 are 6457827717110365317, 3203168211198807973, ...
  EXPECT_EQ(Fill(ElementType::kU64, {2}, FillKind::kRandom, 1234567), "{5, 5}");
  EXPECT_EQ(Fill(ElementType::kF64, {1}, FillKind::kRandom, 1234567), "{-0.29984091595718365}");
}

TEST_F(LiteralFillTest, RandomValuesAreValidForEveryType) {
  for (size_t i = 0; i < kElementTypeCount; ++i) {
    const auto type = static_cast<ElementType>(i);
    if (!IsArrayType(type)) continue;
    const Literal literal = FillElided(context.shapes.Array(type, {1000}), FillKind::kRandom, 7);
    VisitType(type, [&]<typename T>(std::type_identity<T>) {
      double sum = 0;
      for (int64_t k = 0; k < literal.element_count(); ++k) {
        const T v = reinterpret_cast<const T*>(literal.data())[k];
        if constexpr (AnyComplex<T>) {
          EXPECT_TRUE(v.real() >= -1 && v.real() < 1 && v.imag() >= -1 && v.imag() < 1);
          EXPECT_NE(v.real(), v.imag());
        } else if constexpr (std::is_same_v<T, F8E8M0FNU>) {
          EXPECT_TRUE(static_cast<double>(v) >= 0.0625 && static_cast<double>(v) <= 8);
        } else {
          const auto d = static_cast<double>(v);
          sum += d;
          EXPECT_TRUE(d >= (AnyFloat<T> ? -1 : 0) && d < (AnyFloat<T> ? 1 : 16)) << ToString(type) << " " << d;
        }
      }
      if constexpr (AnyFloat<T>) {
        EXPECT_LT(std::abs(sum), 350) << ToString(type) << " is not centered";  // f4e2m1fn: -1, -0.5, 0, 0.5
      }
    });
  }
}

TEST_F(LiteralFillTest, Tuples) {
  const Shape a = context.shapes.Array(ElementType::kS32, {4});
  const Shape shape = context.shapes.Tuple({a, context.shapes.Token(), context.shapes.Tuple({a})});
  EXPECT_EQ(ToString(FillElided(shape, FillKind::kIota)), "( {0, 1, 2, 3}, token, ( {0, 1, 2, 3} ) )");
  const Literal random = FillElided(shape, FillKind::kRandom);
  EXPECT_EQ(ToString(random.elements()[0]), ToString(FillElided(a, FillKind::kRandom)));
  EXPECT_NE(ToString(random.elements()[0]), ToString(random.elements()[2].elements()[0]));
}

}  // namespace
}  // namespace hlokit

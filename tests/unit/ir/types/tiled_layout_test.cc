// SPDX-License-Identifier: Apache-2.0
#include "ir/types/tiled_layout.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "ir/graph/context.h"
#include "parser/formats/parser.h"

namespace hlokit {
namespace {

TiledLayout LayoutOf(const std::string& shape, Context* context) {
  return TiledLayout(*ParseShapeText(shape, context));
}

TEST(TiledLayout, PutsElementsOfATileSideBySide) {
  Context context;
  const TiledLayout layout = LayoutOf("f32[3,5]{1,0:T(2,4)}", &context);
  EXPECT_EQ(layout.position_count(), 32);
  EXPECT_EQ(layout.PositionOf({{0, 3}}), 3);
  EXPECT_EQ(layout.PositionOf({{1, 0}}), 4);
  EXPECT_EQ(layout.PositionOf({{0, 4}}), 8);
  EXPECT_EQ(layout.PositionOf({{2, 4}}), 24);
}

TEST(TiledLayout, TilesTheMinorDimensionsInMemoryOrder) {
  Context context;
  EXPECT_EQ(LayoutOf("f32[4,6]{0,1:T(2,2)}", &context).PositionOf({{1, 3}}), 1 * 8 + 2 + 1);
  EXPECT_EQ(LayoutOf("f32[7]{0:T(8,128)}", &context).position_count(), 1024);
  // The second tile applies to the first: rows alternate.
  EXPECT_EQ(LayoutOf("bf16[4,2]{1,0:T(2,2)(2,1)}", &context).PositionOf({{1, 0}}), 1);
  // Dimensions 0 and 1 are one of 4.
  EXPECT_EQ(LayoutOf("f32[2,2,3]{2,1,0:T(*,2,3)}", &context).PositionOf({{1, 0, 1}}), 7);
}

TEST(TiledLayout, NumberOfTilesIsLimited) {
  Context context;
  std::string tiles;
  for (int i = 0; i < 64; ++i) tiles += "(1)";
  EXPECT_TRUE(LayoutOf("f32[8]{0:T" + tiles + "}", &context).ok());
  EXPECT_FALSE(LayoutOf("f32[8]{0:T" + tiles + "(1)}", &context).ok());
}

TEST(TiledLayout, FindsTheElementAtEachPosition) {
  Context context;
  for (const char* text : {"f32[3,5]{1,0:T(2,4)}", "f32[3,5,4]{0,2,1:T(2,2)(2,1)}", "f32[]{:T(128)}",
                           "f32[2,3,5]{2,1,0}", "f32[2,3,5]{2,0,1:T(*,4)}", "f32[6,4]{1,0:T(3,2)}",
                           "f32[0,3]{1,0:T(2,2)}", "f32[3,2,4]{2,1,0:T(2,*,3)(2,1)}"}) {
    const Shape shape = *ParseShapeText(text, &context);
    const TiledLayout layout(shape);
    ASSERT_TRUE(layout.ok()) << text;
    std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
    std::set<std::vector<int64_t>> found;
    for (int64_t position = 0; position < layout.position_count(); ++position) {
      if (!layout.IndexAt(position, absl::MakeSpan(index))) continue;
      EXPECT_EQ(layout.PositionOf(index), position) << text;
      found.insert(index);
    }
    EXPECT_EQ(static_cast<int64_t>(found.size()), shape.element_count()) << text;
    const auto parts = layout.Parts();
    if (!parts) continue;
    // Without padding the position is the number of the parts of the index.
    for (const std::vector<int64_t>& at : found) {
      int64_t position = 0;
      for (const TiledLayout::Part& part : *parts) {
        const int64_t value = part.dim < 0 ? 0 : at[static_cast<size_t>(part.dim)] / part.unit % part.size;
        position = position * part.size + value;
      }
      EXPECT_EQ(position, layout.PositionOf(at)) << text;
    }
  }
  EXPECT_TRUE(LayoutOf("f32[6,4]{1,0:T(3,2)}", &context).Parts().has_value());
  EXPECT_FALSE(LayoutOf("f32[6,5]{1,0:T(3,2)}", &context).Parts().has_value());
}

TEST(TiledLayout, ReportsPositionsThatOverflow) {
  Context context;
  EXPECT_FALSE(LayoutOf("f32[2,2]{1,0:T(4611686018427387904,4611686018427387904)}", &context).ok());
}

}  // namespace
}  // namespace hlokit

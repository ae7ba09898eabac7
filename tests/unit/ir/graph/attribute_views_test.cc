// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/attribute_views.h"

#include <gtest/gtest.h>

namespace hlokit {
namespace {

using Numbers = std::vector<int64_t>;

TEST(AttributeViewsTest, Window) {
  const Numbers list = {3, 2, 1, -1, 4, 5, 1, 7, 1, 0, 0, 1, 1, 0};
  const WindowView view(list);
  ASSERT_TRUE(view.ok());
  ASSERT_EQ(view.rank(), 2);
  EXPECT_EQ(view[0].size, 3);
  EXPECT_EQ(view[0].stride, 2);
  EXPECT_EQ(view[0].padding_low, 1);
  EXPECT_EQ(view[0].padding_high, -1);
  EXPECT_EQ(view[0].base_dilation, 4);
  EXPECT_EQ(view[0].window_dilation, 5);
  EXPECT_TRUE(view[0].reversal);
  EXPECT_EQ(view[1].size, 7);
  EXPECT_TRUE(WindowView(Numbers()).ok());
}

TEST(AttributeViewsTest, ListsOfTheWrongSizeAreEmpty) {
  const Numbers list = {3, 2, 1, -1, 4, 5};
  EXPECT_FALSE(WindowView(list).ok());
  EXPECT_EQ(WindowView(list).rank(), 0);
  EXPECT_TRUE(SliceView(list).ok());
  const Numbers five = {1, 2, 3, 4, 5};
  EXPECT_FALSE(SliceView(five).ok());
  EXPECT_EQ(SliceView(five).rank(), 0);
  EXPECT_FALSE(PaddingView(five).ok());
}

TEST(AttributeViewsTest, Triples) {
  const Numbers list = {1, 9, 2, 3, 4, 5};
  const SliceView slice(list);
  EXPECT_EQ(slice.rank(), 2);
  EXPECT_EQ(slice.start(0), 1);
  EXPECT_EQ(slice.limit(0), 9);
  EXPECT_EQ(slice.stride(1), 5);
  const PaddingView padding(list);
  EXPECT_EQ(padding.low(1), 3);
  EXPECT_EQ(padding.high(1), 4);
  EXPECT_EQ(padding.interior(0), 2);
}

TEST(AttributeViewsTest, Convolution) {
  const Numbers list = {2, 0, 3, 1, 2, 2, 3, 0, 1, 0, 3, 1, 2};
  const ConvolutionDims dims{absl::MakeConstSpan(list)};
  ASSERT_TRUE(dims.ok());
  EXPECT_TRUE(dims.IsPermutation());
  EXPECT_EQ(dims.rank(), 4);
  EXPECT_EQ(dims.input_batch, 0);
  EXPECT_EQ(dims.input_feature, 3);
  EXPECT_EQ(dims.input_spatial, absl::MakeConstSpan(Numbers{1, 2}));
  EXPECT_EQ(dims.kernel_input_feature, 2);
  EXPECT_EQ(dims.kernel_output_feature, 3);
  EXPECT_EQ(dims.kernel_spatial, absl::MakeConstSpan(Numbers{0, 1}));
  EXPECT_EQ(dims.output_batch, 0);
  EXPECT_EQ(dims.output_feature, 3);
  EXPECT_EQ(dims.output_spatial, absl::MakeConstSpan(Numbers{1, 2}));
}

TEST(AttributeViewsTest, ConvolutionsThatAreNone) {
  const auto dims = [](const Numbers& list) { return ConvolutionDims{absl::MakeConstSpan(list)}; };
  EXPECT_FALSE(dims({}).ok());
  EXPECT_FALSE(dims({1, 0, 1}).ok());
  EXPECT_FALSE(dims({-1, 0, 1, 2, 3, 4, 5}).ok());
  EXPECT_FALSE(dims({int64_t{1} << 62, 0, 1, 2, 3, 4, 5}).ok());
  EXPECT_TRUE(dims({0, 0, 1, 0, 1, 1, 0}).IsPermutation());
  EXPECT_FALSE(dims({0, 0, 0, 0, 1, 1, 0}).IsPermutation());
  EXPECT_FALSE(dims({0, 0, 2, 0, 1, 1, 0}).IsPermutation());
}

TEST(AttributeViewsTest, TextCursor) {
  Module module;
  const AttrValue attrs[] = {{Attr::kK, module.EncodeInt64(-5)},
                             {Attr::kIsStable, 1},
                             {Attr::kDimensions, module.ListPayload({7})},
                             {Attr::kSliceSizes, module.ListPayload({1, 2})},
                             {Attr::kToApply, 3},
                             {Attr::kFftType, 2}};
  const AttrReader reader(module, attrs);
  EXPECT_EQ(reader.int_attr(Attr::kK), -5);
  EXPECT_EQ(reader.int_attr(Attr::kIndex, 9), 9);
  EXPECT_TRUE(reader.bool_attr(Attr::kIsStable));
  EXPECT_FALSE(reader.bool_attr(Attr::kIsReverse));
  EXPECT_EQ(reader.only(Attr::kDimensions), 7);
  EXPECT_EQ(reader.only(Attr::kSliceSizes), std::nullopt);
  EXPECT_EQ(reader.enum_attr(Attr::kFftType, FftType::kFft), FftType::kRfft);
  EXPECT_TRUE(reader.has(Attr::kToApply));
  EXPECT_FALSE(reader.live_computation(Attr::kToApply).valid());  // no such computation
  const ComputationId id = module.AddComputation(module.context().strings.Intern("c"));
  EXPECT_TRUE(reader.Live(id.value).valid());
  EXPECT_FALSE(reader.Live(-1).valid());
}

}  // namespace
}  // namespace hlokit

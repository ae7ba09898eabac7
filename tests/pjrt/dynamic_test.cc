// SPDX-License-Identifier: Apache-2.0
// Bounded dynamic arrays: buffers have the sizes of their bounds and know how much of them is the value.
#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

// The positive elements of x, and their number.
constexpr char kPositive[] = R"(HloModule positive
greater {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  p = f32[] parameter(2)
  q = f32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=GT
}
sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b)
}
ENTRY e {
  x = f32[6] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[6] broadcast(zero), dimensions={}
  is = pred[6] compare(x, zeros), direction=GT
  mask = s32[6] convert(is)
  none = s32[] constant(0)
  count = s32[] reduce(mask, none), dimensions={0}, to_apply=sum
  sorted = (s32[6], f32[6]) sort(mask, x), dimensions={0}, to_apply=greater, is_stable=true
  values = f32[6] get-tuple-element(sorted), index=1
  positive = f32[<=6] set-dimension-size(values, count), dimensions={0}
  ROOT r = (f32[<=6], s32[]) tuple(positive, count)
})";

// The sum of a dynamic array, and twice the array.
constexpr char kSum[] = R"(HloModule sum_of
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[<=6] parameter(0)
  zero = f32[] constant(0)
  total = f32[] reduce(x, zero), dimensions={0}, to_apply=sum
  twice = f32[<=6] add(x, x)
  ROOT r = (f32[], f32[<=6]) tuple(total, twice)
})";

// An array as it is: the result is no tuple.
constexpr char kRows[] = R"(HloModule rows
ENTRY e {
  x = f32[3,4] parameter(0)
  rows = s32[] parameter(1)
  columns = s32[] parameter(2)
  a = f32[<=3,4] set-dimension-size(x, rows), dimensions={0}
  ROOT b = f32[<=3,<=4] set-dimension-size(a, columns), dimensions={1}
})";

struct Dims {
  std::vector<int64_t> bounds, sizes;
  std::vector<size_t> dynamic;
};
Dims DimsOf(PJRT_Buffer* buffer) {
  const auto bounds = Query(Api().PJRT_Buffer_Dimensions, &PJRT_Buffer_Dimensions_Args::buffer, buffer);
  const auto sizes = Query(Api().PJRT_Buffer_UnpaddedDimensions, &PJRT_Buffer_UnpaddedDimensions_Args::buffer, buffer);
  const auto dynamic =
      Query(Api().PJRT_Buffer_DynamicDimensionIndices, &PJRT_Buffer_DynamicDimensionIndices_Args::buffer, buffer);
  return {{bounds.dims, bounds.dims + bounds.num_dims},
          {sizes.unpadded_dims, sizes.unpadded_dims + sizes.num_dims},
          {dynamic.dynamic_dim_indices, dynamic.dynamic_dim_indices + dynamic.num_dynamic_dims}};
}

class DynamicTest : public testing::Test {
 protected:
  // Compiles the program, runs it on device 0, and returns its results; the fixture owns all.
  std::vector<PJRT_Buffer*> Run(std::string_view code, const std::vector<PJRT_Buffer*>& arguments) {
    PJRT_LoadedExecutable* executable = nullptr;
    const Result compiled = Compile(client_.get(), code, "hlo", CompileOptionsOf(1, 1), &executable);
    EXPECT_TRUE(compiled.ok()) << compiled.message;
    if (executable == nullptr) return {};
    std::vector<std::vector<PJRT_Buffer*>> results;
    const Result ran = Execute(executable, {arguments}, &results);
    EXPECT_TRUE(ran.ok()) << ran.message;
    Destroy(executable);
    for (PJRT_Buffer* result : results[0]) buffers_.push_back(result);
    return results[0];
  }
  PJRT_Buffer* Array(const std::vector<float>& values, const std::vector<int64_t>& dims) {
    return buffers_.emplace_back(MakeBuffer<float>(client_.get(), client_.devices()[0], kF32, values, dims));
  }
  PJRT_Buffer* Scalar(int32_t value) {
    return buffers_.emplace_back(MakeBuffer<int32_t>(client_.get(), client_.devices()[0], kS32, {value}, {}));
  }
  void TearDown() override {
    for (PJRT_Buffer* buffer : buffers_) Destroy(buffer);
  }
  const ClientScope client_{2};
  std::vector<PJRT_Buffer*> buffers_;
};

TEST_F(DynamicTest, ResultHasTheElementsWithinItsSize) {
  const std::vector<PJRT_Buffer*> results = Run(kPositive, {Array({-1, 2, -3, 4, 5, -6}, {6})});
  ASSERT_EQ(results.size(), 2U);
  const Dims dims = DimsOf(results[0]);
  EXPECT_EQ(dims.bounds, (std::vector<int64_t>{6}));
  EXPECT_EQ(dims.sizes, (std::vector<int64_t>{3}));
  EXPECT_EQ(dims.dynamic, (std::vector<size_t>{0}));
  std::vector<float> values;
  EXPECT_TRUE(ReadBuffer(results[0], &values).ok());
  EXPECT_EQ(values, (std::vector<float>{2, 4, 5}));
  EXPECT_TRUE(DimsOf(results[1]).dynamic.empty());
}

TEST_F(DynamicTest, EmptyAndFullResults) {
  std::vector<float> values;
  EXPECT_TRUE(ReadBuffer(Run(kPositive, {Array({-1, -2, -3, -4, -5, -6}, {6})}).at(0), &values).ok());
  EXPECT_TRUE(values.empty());
  EXPECT_TRUE(ReadBuffer(Run(kPositive, {Array({1, 2, 3, 4, 5, 6}, {6})}).at(0), &values).ok());
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_F(DynamicTest, ArgumentsKeepTheirSizes) {
  PJRT_Buffer* const positive = Run(kPositive, {Array({-1, 2, -3, 4, 5, -6}, {6})}).at(0);
  const std::vector<PJRT_Buffer*> results = Run(kSum, {positive});
  ASSERT_EQ(results.size(), 2U);
  std::vector<float> values;
  EXPECT_TRUE(ReadBuffer(results[0], &values).ok());
  EXPECT_EQ(values, (std::vector<float>{11}));
  EXPECT_TRUE(ReadBuffer(results[1], &values).ok());
  EXPECT_EQ(values, (std::vector<float>{4, 8, 10}));
  // An array of the host has the size of its dimensions.
  EXPECT_TRUE(ReadBuffer(Run(kSum, {Array({1, 2, 3, 4, 5, 6}, {6})}).at(0), &values).ok());
  EXPECT_EQ(values, (std::vector<float>{21}));
}

// Its padding would be values there.
TEST_F(DynamicTest, ADynamicDimensionIsNoArgumentForAStaticOne) {
  PJRT_Buffer* const positive = Run(kPositive, {Array({-1, 2, -3, 4, 5, -6}, {6})}).at(0);
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled = Compile(client_.get(), kPositive, "hlo", CompileOptionsOf(1, 1), &executable);
  ASSERT_TRUE(compiled.ok()) << compiled.message;
  std::vector<std::vector<PJRT_Buffer*>> results;
  const Result ran = Execute(executable, {{positive}}, &results);
  Destroy(executable);
  EXPECT_EQ(ran.code, kInvalidArgument);
  EXPECT_EQ(ran.message,
            "argument 0 of device 0: dimension 0 of the buffer is dynamic, the program takes f32[6], where it is "
            "static");
}

TEST_F(DynamicTest, SeveralDimensionsAndHostLayouts) {
  std::vector<float> elements;
  for (int i = 0; i < 12; ++i) elements.push_back(static_cast<float>(i));
  const std::vector<PJRT_Buffer*> results = Run(kRows, {Array(elements, {3, 4}), Scalar(2), Scalar(3)});
  ASSERT_EQ(results.size(), 1U);
  const Dims dims = DimsOf(results[0]);
  EXPECT_EQ(dims.bounds, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(dims.sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(dims.dynamic, (std::vector<size_t>{0, 1}));
  std::vector<float> values;
  EXPECT_TRUE(ReadBuffer(results[0], &values).ok());
  EXPECT_EQ(values, (std::vector<float>{0, 1, 2, 4, 5, 6}));
  // Column by column.
  const int64_t minor_to_major[] = {0, 1};
  auto layout = Zeroed<PJRT_Buffer_MemoryLayout>();
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = sizeof(layout.tiled);
  layout.tiled.minor_to_major = minor_to_major;
  layout.tiled.minor_to_major_size = 2;
  auto args = Garbage<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = results[0];
  args.host_layout = &layout;
  std::vector<float> columns(6);
  args.dst = columns.data();
  args.dst_size = columns.size() * sizeof(float);
  ASSERT_CALL_OK(Api().PJRT_Buffer_ToHostBuffer(&args));
  EXPECT_TRUE(Await(args.event).ok());
  EXPECT_EQ(columns, (std::vector<float>{0, 4, 1, 5, 2, 6}));
}

TEST_F(DynamicTest, CopiesOnOtherDevicesHaveTheSize) {
  PJRT_Buffer* const positive = Run(kPositive, {Array({-1, 2, -3, 4, 5, -6}, {6})}).at(0);
  auto copy = Garbage<PJRT_Buffer_CopyToDevice_Args>();
  copy.buffer = positive;
  copy.dst_device = client_.devices()[1];
  ASSERT_CALL_OK(Api().PJRT_Buffer_CopyToDevice(&copy));
  buffers_.push_back(copy.dst_buffer);
  EXPECT_EQ(DimsOf(copy.dst_buffer).sizes, (std::vector<int64_t>{3}));
  std::vector<float> values;
  EXPECT_TRUE(ReadBuffer(copy.dst_buffer, &values).ok());
  EXPECT_EQ(values, (std::vector<float>{2, 4, 5}));
}

}  // namespace
}  // namespace hlokit::pjrt_test

// SPDX-License-Identifier: Apache-2.0
// Shape rules of reductions, windows, matmuls and similar operations.
#include "shape_inference_fixture.h"

namespace hlokit {
namespace {

TEST_F(ShapeInferenceTest, Reduce) {
  const auto reduce = [&](const Numbers& dims, std::string_view reducer = "add") {
    return Attrs{List(Attr::kDimensions, dims), Calls(Attr::kToApply, reducer)};
  };
  EXPECT_EQ(Infer(Opcode::kReduce, {"f32[2,3,4]{0,1,2}", "f32[]"}, reduce({1})), "f32[2,4]{1,0}");
  EXPECT_EQ(Infer(Opcode::kReduce, {"f32[2,<=3]", "f32[]"}, reduce({0})), "f32[<=3]{0}");
  EXPECT_EQ(Infer(Opcode::kReduce, {"f32[2,3]", "f32[]"}, reduce({})), "f32[2,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kReduce, {"bf16[2,3]", "bf16[]"}, reduce({0, 1})), "f32[]");
  EXPECT_EQ(Infer(Opcode::kReduce, {"f32[2,3]", "s32[2,3]", "f32[]", "s32[]"}, reduce({1}, "arg_max")),
            "(f32[2]{0}, s32[2]{0})");
  EXPECT_ERROR(Infer(Opcode::kReduce, {"f32[2,3]", "f32[]"}, reduce({2})),
               "dimension 2 in `dimensions` is out of range: expected less than 2");
  EXPECT_ERROR(Infer(Opcode::kReduce, {"f32[2,3]", "f32[]"}, reduce({0, 0})), "duplicate dimension 0 in `dimensions`");
  EXPECT_ERROR(Infer(Opcode::kReduce, {"f32[2,3]"}, reduce({0})), "as many initial values");
  EXPECT_ERROR(Infer(Opcode::kReduce, {"f32[2,3]", "f32[1]"}, reduce({0})),
               "the result of the reducer is f32[], which is incompatible with the initial value: f32[1]");
  EXPECT_ERROR(Infer(Opcode::kReduce, {"s32[2,3]", "s32[]"}, reduce({0})),
               "the result of the reducer is f32[], which is incompatible with the initial value: s32[]");
  EXPECT_ERROR(Infer(Opcode::kReduce, {"s32[2,3]", "f32[]"}, reduce({0})), "parameter 1 of the reducer is f32[]");
  EXPECT_ERROR(Infer(Opcode::kReduce, {"f32[2,3]", "f32[]"}, reduce({0}, "add_one")),
               "expected 2 parameters of the reducer for 1 array, found 1");
  EXPECT_ERROR(Infer(Opcode::kReduce, {"f32[2,3]", "f32[]"}, reduce({0}, "add_vector")),
               "expected the reducer to return scalars, found f32[2]");
  EXPECT_ERROR(Infer(Opcode::kReduce, {"f32[2,3]", "f32[]"}, reduce({0}, "less")), "but its result is pred[]");
  EXPECT_ERROR(Infer(Opcode::kReduce, {"f32[2,3]", "s32[2,4]", "f32[]", "s32[]"}, reduce({1}, "arg_max")),
               "operands 0 and 1 must have the same dimensions");
  EXPECT_ERROR(Infer(Opcode::kReduce, {"f32[2,3]", "f32[]"}, {List(Attr::kDimensions, {0})}), "`to_apply`");
}

TEST_F(ShapeInferenceTest, ReduceWindow) {
  const auto windowed = [&](const std::vector<WindowOf>& dims, std::string_view reducer = "add") {
    return Attrs{Window(dims), Calls(Attr::kToApply, reducer)};
  };
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {"f32[8,8]", "f32[]"}, windowed({{.size = 2, .stride = 2}, {}})),
            "f32[4,8]{1,0}");
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {"f32[8]", "f32[]"}, windowed({{.size = 3, .low = 1, .high = 1}})),
            "f32[8]{0}");
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {"f32[8]", "f32[]"}, windowed({{.size = 3, .dilate = 2}})), "f32[4]{0}");
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {"f32[8]", "f32[]"}, windowed({{.size = 1, .base = 3}})), "f32[22]{0}");
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {"f32[2]", "f32[]"}, windowed({{.size = 3}})), "f32[0]{0}");
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {"f32[0]", "f32[]"}, windowed({{.size = 1, .base = 2}})), "f32[0]{0}");
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {"f32[<=8,?]", "f32[]"}, windowed({{.size = 2}, {.size = 2}})),
            "f32[<=7,?]{1,0}");
  // The type is that of the init value.
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {"bf16[8]", "bf16[]"}, windowed({{.size = 2}})), "bf16[7]{0}");
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {"f32[8]", "s32[8]", "f32[]", "s32[]"}, windowed({{.size = 2}}, "arg_max")),
            "(f32[7]{0}, s32[7]{0})");
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {"f32[]", "f32[]"}, {Calls(Attr::kToApply, "add")}), "f32[]");
  EXPECT_ERROR(Infer(Opcode::kReduceWindow, {"f32[8]", "f32[]"}, {Calls(Attr::kToApply, "add")}), "0 dimensions");
  EXPECT_ERROR(Infer(Opcode::kReduceWindow, {"f32[8]", "f32[]"}, windowed({{.size = 0}})), "size of the window");
  EXPECT_ERROR(Infer(Opcode::kReduceWindow, {"f32[8]", "f32[]"}, windowed({{.size = 1, .stride = 0}})), "stride");
  EXPECT_ERROR(Infer(Opcode::kReduceWindow, {"f32[8]", "f32[]"}, windowed({{.size = 1, .base = 0}})), "lhs_dilate");
  EXPECT_ERROR(Infer(Opcode::kReduceWindow, {"f32[8]", "f32[]"}, windowed({{.size = 1, .dilate = 0}})), "rhs_dilate");
  EXPECT_ERROR(Infer(Opcode::kReduceWindow, {"f32[8]", "f32[]"}, windowed({{.size = 1, .low = -9}})),
               "negative size of dimension 0 after padding of the window: -1");
  EXPECT_ERROR(Infer(Opcode::kReduceWindow, {"f32[8]", "f32[]"}, windowed({{.size = 1, .base = int64_t{1} << 62}})),
               "overflows");
  EXPECT_ERROR(Infer(Opcode::kReduceWindow, {"f32[8]", "f32[]"}, windowed({{.size = int64_t{1} << 62, .dilate = 4}})),
               "overflows");
}

TEST_F(ShapeInferenceTest, SelectAndScatter) {
  const auto attrs = [&](const std::vector<WindowOf>& dims, std::string_view select = "less",
                         std::string_view scatter = "add") {
    return Attrs{Window(dims), Calls(Attr::kSelect, select), Calls(Attr::kScatter, scatter)};
  };
  const std::vector<WindowOf> pairs = {{.size = 2, .stride = 2}};
  EXPECT_EQ(Infer(Opcode::kSelectAndScatter, {"f32[8]", "f32[4]", "f32[]"}, attrs(pairs)), "f32[8]{0}");
  EXPECT_ERROR(Infer(Opcode::kSelectAndScatter, {"f32[8]", "f32[5]", "f32[]"}, attrs(pairs)),
               "the window selects f32[4]");
  EXPECT_ERROR(Infer(Opcode::kSelectAndScatter, {"f32[8]", "f32[4]", "f32[]"}, attrs(pairs, "add")),
               "expected the select computation to return pred[], found f32[]");
  EXPECT_ERROR(Infer(Opcode::kSelectAndScatter, {"f32[8]", "f32[4]", "f32[]"}, attrs(pairs, "add_one")),
               "expected 2 parameters of the select computation, found 1");
  EXPECT_ERROR(Infer(Opcode::kSelectAndScatter, {"s32[8]", "s32[4]", "s32[]"}, attrs(pairs)), "elements of s32");
  EXPECT_ERROR(Infer(Opcode::kSelectAndScatter, {"f32[8]", "f32[4]", "f32[]"}, attrs(pairs, "less", "add_s32")),
               "the result of the reducer is s32[], which is incompatible with the initial value: f32[]");
}

TEST_F(ShapeInferenceTest, Map) {
  const Attrs attrs = {List(Attr::kDimensions, {0, 1}), Calls(Attr::kToApply, "add")};
  EXPECT_EQ(Infer(Opcode::kMap, {"f32[2,3]", "f32[2,3]"}, attrs), "f32[2,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kMap, {"f32[2]"}, {Calls(Attr::kToApply, "convert_s32")}), "s32[2]{0}");
  EXPECT_ERROR(Infer(Opcode::kMap, {"f32[2,3]", "f32[3,2]"}, attrs), "same dimensions");
  EXPECT_ERROR(Infer(Opcode::kMap, {"f32[2,3]"}, attrs),
               "expected a parameter of the mapped computation for each of the 1 operands, found 2");
  EXPECT_ERROR(Infer(Opcode::kMap, {"s32[2,3]", "s32[2,3]"}, attrs), "operand 0 has elements of s32");
  EXPECT_ERROR(Infer(Opcode::kMap, {"f32[2]", "f32[2]"}, attrs), "expected all 1 dimensions");
  EXPECT_ERROR(Check(Opcode::kMap, {"f32[2]", "f32[2]"}, attrs, "f32[2,3]"), "attributes is f32[2]");
  EXPECT_ERROR(Infer(Opcode::kMap, {"f32[2]", "f32[2]"}, {Calls(Attr::kToApply, "add_vector")}), "parameter 0");
}

TEST_F(ShapeInferenceTest, Sort) {
  const auto attrs = [&](int64_t dim, std::string_view compare = "less") {
    return Attrs{List(Attr::kDimensions, {dim}), Calls(Attr::kToApply, compare)};
  };
  EXPECT_EQ(Infer(Opcode::kSort, {"f32[4,5]{0,1}"}, attrs(1)), "f32[4,5]{0,1}");
  EXPECT_EQ(Infer(Opcode::kSort, {"f32[4]", "s32[4]"}, attrs(0, "less_pair")), "(f32[4]{0}, s32[4]{0})");
  EXPECT_ERROR(Infer(Opcode::kSort, {"f32[4]"}, attrs(1)),
               "dimension 1 in `dimensions` is out of range for operand 0 (f32[4])");
  EXPECT_ERROR(Infer(Opcode::kSort, {"f32[4]", "s32[5]"}, attrs(0, "less_pair")), "same dimensions");
  EXPECT_ERROR(Infer(Opcode::kSort, {"f32[4]", "s32[4]"}, attrs(0)),
               "expected 4 parameters of the comparison, two for each operand, found 2");
  EXPECT_ERROR(Infer(Opcode::kSort, {"f32[4]"}, attrs(0, "add")),
               "expected the comparison to return pred[], found f32[]");
  EXPECT_ERROR(Infer(Opcode::kSort, {"s32[4]"}, attrs(0)), "parameter 0 of the comparison is f32[]");
}

TEST_F(ShapeInferenceTest, TopK) {
  EXPECT_EQ(Infer(Opcode::kTopK, {"f32[4,8]{0,1}"}, {Int(Attr::kK, 3)}), "(f32[4,3]{1,0}, s32[4,3]{1,0})");
  EXPECT_EQ(Infer(Opcode::kTopK, {"f32[<=4,<=8]"}, {Int(Attr::kK, 3)}), "(f32[<=4,3]{1,0}, s32[<=4,3]{1,0})");
  EXPECT_ERROR(Infer(Opcode::kTopK, {"f32[4,8]"}, {Int(Attr::kK, 9)}),
               "k 9 is greater than the last dimension of operand 0 (f32[4,8])");
  EXPECT_ERROR(Infer(Opcode::kTopK, {"f32[4,8]"}, {Int(Attr::kK, -1)}), "negative k: -1");
  EXPECT_ERROR(Infer(Opcode::kTopK, {"f32[]"}, {Int(Attr::kK, 0)}), "at least one dimension");
}

TEST_F(ShapeInferenceTest, Scan) {
  const auto attrs = [&](int64_t dim, int64_t carries, std::string_view step = "scan_step") {
    return Attrs{List(Attr::kDimensions, {dim}), Int(Attr::kNumCarries, carries), Calls(Attr::kToApply, step)};
  };
  EXPECT_EQ(Infer(Opcode::kScan, {"f32[5,3]", "f32[3]"}, attrs(0, 1)), "(f32[5,3]{1,0}, f32[3]{0})");
  EXPECT_EQ(Infer(Opcode::kScan, {"f32[3,5]", "f32[3]"}, attrs(1, 1)), "(f32[3,5]{1,0}, f32[3]{0})");
  EXPECT_EQ(Infer(Opcode::kScan, {"f32[7]"}, attrs(0, 0, "convert_s32")), "s32[7]{0}");
  EXPECT_EQ(Check(Opcode::kScan, {"f32[5,3]", "f32[3]"}, attrs(0, 1), "(f32[5,3], f32[3])"), "");
  EXPECT_ERROR(Check(Opcode::kScan, {"f32[5,3]", "f32[3]"}, attrs(0, 1), "(f32[5,3], f32[5])"),
               "attributes is (f32[5,3], f32[3])");
  // A tuple of one may be omitted.
  EXPECT_EQ(Infer(Opcode::kScan, {"f32[7]"}, attrs(0, 0, "in_tuple")), "(f32[7]{0})");
  EXPECT_EQ(Check(Opcode::kScan, {"f32[7]"}, attrs(0, 0, "in_tuple"), "f32[7]"), "");
  EXPECT_ERROR(Infer(Opcode::kScan, {"f32[5,4]", "f32[3]"}, attrs(0, 1)),
               "parameter 0 of the scanned computation is f32[3], which is not a slice of operand 0 (f32[5,4]) along "
               "dimension 0");
  EXPECT_ERROR(Infer(Opcode::kScan, {"f32[5,3]", "f32[4]"}, attrs(0, 1)), "must keep its shape");
  EXPECT_ERROR(Infer(Opcode::kScan, {"f32[5,3]", "f32[3]"}, attrs(2, 1)),
               "dimension 2 in `dimensions` is out of range for operand 0 (f32[5,3])");
  EXPECT_ERROR(Infer(Opcode::kScan, {"f32[5,3]", "f32[3]"}, attrs(0, 2)), "at least one input");
  EXPECT_ERROR(Infer(Opcode::kScan, {"f32[5,3]", "f32[3]"}, attrs(0, 3)), "`num_carries` is 3");
  EXPECT_ERROR(Infer(Opcode::kScan, {"f32[5,3]"}, attrs(0, 0)),
               "expected a parameter of the scanned computation for each of the 1 operands, found 2");
}

TEST_F(ShapeInferenceTest, Dot) {
  const auto dims = [&](const Numbers& lb, const Numbers& lc, const Numbers& rb, const Numbers& rc) {
    return Attrs{List(Attr::kLhsBatchDims, lb), List(Attr::kLhsContractingDims, lc), List(Attr::kRhsBatchDims, rb),
                 List(Attr::kRhsContractingDims, rc)};
  };
  const Attrs matmul = dims({}, {1}, {}, {0});
  EXPECT_EQ(Infer(Opcode::kDot, {"f32[2,3]{0,1}", "f32[3,4]"}, matmul), "f32[2,4]{1,0}");
  EXPECT_EQ(Infer(Opcode::kDot, {"f32[7,2,3]", "f32[3,7,4]"}, dims({0}, {2}, {1}, {0})), "f32[7,2,4]{2,1,0}");
  EXPECT_EQ(Infer(Opcode::kDot, {"f32[3]", "f32[3]"}, dims({}, {0}, {}, {0})), "f32[]");
  EXPECT_EQ(Infer(Opcode::kDot, {"f32[2]", "f32[3]"}), "f32[2,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kDot, {"bf16[2,3]", "f32[3,<=4]"}, matmul), "f32[2,<=4]{1,0}");
  EXPECT_EQ(Infer(Opcode::kDot, {"f32[2,?]", "f32[3,4]"}, matmul), "f32[2,4]{1,0}");
  EXPECT_EQ(Infer(Opcode::kDot, {"s8[2,3]", "s8[3,4]"}, matmul, "s32[2,4]"), "s32[2,4]{1,0}");
  EXPECT_EQ(Check(Opcode::kDot, {"bf16[2,3]", "bf16[3,4]"}, matmul, "f32[2,4]", false), "");
  EXPECT_ERROR(Check(Opcode::kDot, {"f32[2,3]", "f32[3,4]"}, matmul, "f32[4,2]"), "attributes is f32[2,4]");
  EXPECT_ERROR(Infer(Opcode::kDot, {"f32[2,3]", "f32[4,3]"}, matmul), "contracting dimensions 1 of operand 0");
  EXPECT_ERROR(Infer(Opcode::kDot, {"f32[2,3]", "f32[3,4]"}, dims({}, {2}, {}, {0})),
               "dimension 2 in `lhs_contracting_dims` is out of range: expected less than 2");
  EXPECT_ERROR(Infer(Opcode::kDot, {"f32[2,3]", "f32[3,4]"}, dims({}, {1}, {}, {})),
               "both sides must have the same number of contracting dimensions, found {1} and {}");
  EXPECT_ERROR(Infer(Opcode::kDot, {"f32[2,3]", "f32[3,4]"}, dims({0}, {1}, {}, {0})),
               "both sides must have the same number of batch dimensions, found {0} and {}");
  EXPECT_ERROR(Infer(Opcode::kDot, {"f32[2,3]", "f32[3,4]"}, dims({1}, {1}, {0}, {0})),
               "duplicate dimension 1 in `lhs_contracting_dims`");
  EXPECT_ERROR(Infer(Opcode::kDot, {"f32[2,3]", "f32[3,4]"}, dims({0}, {1}, {1}, {0})), "batch dimensions 0");
  EXPECT_ERROR(Infer(Opcode::kDot, {"(f32[2,3])", "f32[3,4]"}, matmul), "operand 0 to be an array");
}

TEST_F(ShapeInferenceTest, RaggedDot) {
  const auto dims = [&](const Numbers& lb, const Numbers& lc, const Numbers& rb, const Numbers& rc, int64_t ragged,
                        const Numbers& groups) {
    return Attrs{List(Attr::kLhsBatchDims, lb),        List(Attr::kLhsContractingDims, lc),
                 List(Attr::kRhsBatchDims, rb),        List(Attr::kRhsContractingDims, rc),
                 List(Attr::kLhsRaggedDims, {ragged}), List(Attr::kRhsGroupDims, groups)};
  };
  // [m,k] x [g,k,n] -> [m,n]
  const Attrs free = dims({}, {1}, {}, {1}, 0, {0});
  EXPECT_EQ(Infer(Opcode::kRaggedDot, {"f32[11,5]", "f32[3,5,7]", "s32[3]"}, free), "f32[11,7]{1,0}");
  EXPECT_ERROR(Infer(Opcode::kRaggedDot, {"f32[11,5]", "f32[3,5,7]", "s32[4]"}, free), "must have size 4");
  EXPECT_ERROR(Infer(Opcode::kRaggedDot, {"f32[11,5]", "f32[3,5,7]", "s32[3]"}, dims({}, {1}, {}, {1}, 0, {})),
               "expected one dimension in `rhs_group_dims` when the ragged dimension of operand 0 is neither a batch "
               "nor a contracting dimension, found {}");
  // [m,k] x [k,n] -> [g,m,n]
  const Attrs contracting = dims({}, {1}, {}, {0}, 1, {});
  EXPECT_EQ(Infer(Opcode::kRaggedDot, {"f32[11,5]", "f32[5,7]", "s32[3]"}, contracting), "f32[3,11,7]{2,1,0}");
  EXPECT_ERROR(Infer(Opcode::kRaggedDot, {"f32[11,5]", "f32[5,7]", "s32[3]"}, dims({}, {1}, {}, {0}, 1, {1})),
               "expected no dimension in `rhs_group_dims` when the ragged dimension of operand 0 is a contracting "
               "dimension, found {1}");
  // [b,m,k] x [b,k,n] -> [b,m,n]
  const Attrs batch = dims({0}, {2}, {0}, {1}, 0, {});
  EXPECT_EQ(Infer(Opcode::kRaggedDot, {"f32[4,11,5]", "f32[4,5,7]", "s32[3]"}, batch), "f32[4,11,7]{2,1,0}");
  // Group sizes for each element of the batch.
  const Attrs batched = dims({0}, {2}, {1}, {2}, 1, {0});
  EXPECT_EQ(Infer(Opcode::kRaggedDot, {"f32[4,11,5]", "f32[3,4,5,7]", "s32[4,3]"}, batched), "f32[4,11,7]{2,1,0}");
  EXPECT_ERROR(Infer(Opcode::kRaggedDot, {"f32[4,11,5]", "f32[3,4,5,7]", "s32[5,3]"}, batched),
               "dimension 0 of operand 2");
  EXPECT_ERROR(Infer(Opcode::kRaggedDot, {"f32[4,11,5]", "f32[3,4,5,7]", "s32[4,1,3]"}, batched),
               "2 dimensions or one");
  EXPECT_ERROR(Infer(Opcode::kRaggedDot, {"f32[11,5]", "f32[3,5,7]", "s32[3]"}, dims({}, {1}, {}, {1}, 2, {0})),
               "dimension 2 in `lhs_ragged_dims` is out of range for operand 0 (f32[11,5])");
  EXPECT_ERROR(Infer(Opcode::kRaggedDot, {"f32[11,5]", "f32[3,5,7]", "s32[3]"},
                     {List(Attr::kLhsContractingDims, {1}), List(Attr::kRhsContractingDims, {1})}),
               "`lhs_ragged_dims`");
  EXPECT_ERROR(Infer(Opcode::kRaggedDot, {"f32[11,5]", "f32[3,5,7]", "s32[]"}, free), "operand 2");
}

TEST_F(ShapeInferenceTest, ScaledDot) {
  const Attrs dims = {List(Attr::kLhsContractingDims, {1}), List(Attr::kRhsContractingDims, {0})};
  EXPECT_EQ(Infer(Opcode::kScaledDot, {"f8e4m3fn[4,64]", "f8e4m3fn[64,8]", "f8e8m0fnu[4,2]", "f8e8m0fnu[2,8]"}, dims,
                  "f32[4,8]"),
            "f32[4,8]{1,0}");
  EXPECT_EQ(Infer(Opcode::kScaledDot, {"bf16[4,64]", "bf16[64,8]", "bf16[]", "f8e8m0fnu[2,8]"}, dims),
            "bf16[4,8]{1,0}");
  EXPECT_ERROR(Infer(Opcode::kScaledDot, {"f32[4,64]", "f32[64,8]", "f32[4]", "f32[]"}, dims),
               "a scalar or have the rank");
  EXPECT_ERROR(Infer(Opcode::kScaledDot, {"f32[4,64]", "f32[64,8]", "f32[]", "f32[3,8]"}, dims),
               "dimension 0 of operand 3");
  EXPECT_ERROR(Infer(Opcode::kScaledDot, {"f32[4,64]", "f32[64,8]", "f32[]", "f32[]"}, dims), "must not be a scalar");
}

TEST_F(ShapeInferenceTest, Fft) {
  const auto fft = [&](FftType type, const Numbers& length) {
    return Attrs{Enum(Attr::kFftType, type), List(Attr::kFftLength, length)};
  };
  EXPECT_EQ(Infer(Opcode::kFft, {"c64[2,8]{0,1}"}, fft(FftType::kFft, {8})), "c64[2,8]{0,1}");
  EXPECT_EQ(Infer(Opcode::kFft, {"f32[2,8]"}, fft(FftType::kRfft, {8})), "c64[2,5]{1,0}");
  EXPECT_EQ(Infer(Opcode::kFft, {"f64[4,8]"}, fft(FftType::kRfft, {4, 8})), "c128[4,5]{1,0}");
  EXPECT_EQ(Infer(Opcode::kFft, {"c64[2,5]"}, fft(FftType::kIrfft, {8})), "f32[2,8]{1,0}");
  EXPECT_EQ(Infer(Opcode::kFft, {"f32[0]"}, fft(FftType::kRfft, {0})), "c64[0]{0}");
  EXPECT_EQ(Infer(Opcode::kFft, {"c64[0]"}, fft(FftType::kIrfft, {0})), "f32[0]{0}");
  EXPECT_EQ(Infer(Opcode::kFft, {"f32[<=2,?]"}, fft(FftType::kRfft, {8})), "c64[<=2,5]{1,0}");
  EXPECT_ERROR(Infer(Opcode::kFft, {"f32[2,8]"}, fft(FftType::kFft, {8})), "complex");
  EXPECT_ERROR(Infer(Opcode::kFft, {"f16[2,8]"}, fft(FftType::kRfft, {8})), "f32 or f64");
  EXPECT_ERROR(Infer(Opcode::kFft, {"f32[2,7]"}, fft(FftType::kRfft, {8})), "must be 8");
  EXPECT_ERROR(Infer(Opcode::kFft, {"c64[2,8]"}, fft(FftType::kIrfft, {8})), "must be 5");
  EXPECT_ERROR(Infer(Opcode::kFft, {"c64[8]"}, fft(FftType::kFft, {2, 8})), "more than operand 0");
  EXPECT_ERROR(Infer(Opcode::kFft, {"c64[8]"}, fft(FftType::kFft, {})), "1 to 3 entries");
  EXPECT_ERROR(Infer(Opcode::kFft, {"c64[8]"}, fft(FftType::kFft, {-8})), "negative length -8 in `fft_length`");
}

TEST_F(ShapeInferenceTest, Factorizations) {
  EXPECT_EQ(Infer(Opcode::kCholesky, {"f32[5,3,3]"}), "f32[5,3,3]{2,1,0}");
  EXPECT_ERROR(Infer(Opcode::kCholesky, {"f32[3,4]"}), "must be equal");
  EXPECT_ERROR(Infer(Opcode::kCholesky, {"f32[3]"}), "at least two dimensions");
  EXPECT_ERROR(Infer(Opcode::kCholesky, {"s32[3,3]"}), "floating point or complex");

  const AttrValue plain = Enum(Attr::kTransposeA, TriangularTranspose::kNoTranspose);
  EXPECT_EQ(Infer(Opcode::kTriangularSolve, {"f32[4,4]", "f32[3,4]"}, {plain}), "f32[3,4]{1,0}");
  EXPECT_EQ(Infer(Opcode::kTriangularSolve, {"f32[4,4]", "f32[4,3]"}, {plain, Flag(Attr::kLeftSide)}), "f32[4,3]{1,0}");
  EXPECT_ERROR(Infer(Opcode::kTriangularSolve, {"f32[4,4]", "f32[4,3]"}, {plain}), "dimension 1 of operand 1");
  EXPECT_ERROR(Infer(Opcode::kTriangularSolve, {"f32[2,4,4]", "f32[3,3,4]"}, {plain}), "batch dimension");
  EXPECT_ERROR(Infer(Opcode::kTriangularSolve, {"f32[4,4]", "f64[3,4]"}, {plain}), "same element type");
  EXPECT_ERROR(Infer(Opcode::kTriangularSolve, {"f32[4,4]", "f32[4]"}, {plain}), "same rank");
  EXPECT_ERROR(Infer(Opcode::kTriangularSolve, {"f32[4,4]", "f32[3,4]"}), "`transpose_a`");
}

TEST_F(ShapeInferenceTest, BatchNorm) {
  const Attrs of_1 = {Int(Attr::kFeatureIndex, 1)};
  EXPECT_EQ(Infer(Opcode::kBatchNormTraining, {"f32[2,3,4]{0,1,2}", "f32[3]", "f32[3]"}, of_1),
            "(f32[2,3,4]{0,1,2}, f32[3]{0}, f32[3]{0})");
  EXPECT_EQ(Infer(Opcode::kBatchNormInference, {"f32[2,3]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"}, of_1),
            "f32[2,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kBatchNormGrad, {"f32[2,3]", "f32[3]", "f32[3]", "f32[3]", "f32[2,3]"}, of_1),
            "(f32[2,3]{1,0}, f32[3]{0}, f32[3]{0})");
  EXPECT_ERROR(Infer(Opcode::kBatchNormTraining, {"f32[2,3]", "f32[2]", "f32[3]"}, of_1), "operand 1 must have");
  EXPECT_ERROR(Infer(Opcode::kBatchNormTraining, {"f32[2]", "f32[2]", "f32[2]"}, of_1),
               "`feature_index` 1 is out of range for operand 0 (f32[2])");
  EXPECT_ERROR(Infer(Opcode::kBatchNormTraining, {"s32[2,3]", "s32[3]", "s32[3]"}, of_1), "floating point");
  EXPECT_ERROR(Infer(Opcode::kBatchNormInference, {"f32[2,3]", "f32[3]", "f32[3]", "f32[3]", "f32[3,1]"}, of_1),
               "operand 4 must have");
  EXPECT_ERROR(Infer(Opcode::kBatchNormGrad, {"f32[2,3]", "f32[3]", "f32[3]", "f32[3]", "f32[3,2]"}, of_1),
               "operand 4");
  EXPECT_ERROR(Infer(Opcode::kBatchNormGrad, {"f32[2,3]", "f32[3]", "s32[3]", "f32[3]", "f32[2,3]"}, of_1),
               "operand 0 has elements of f32, but operand 2 has elements of s32");
}

// ---- convolution ----

class ConvolutionTest : public ShapeInferenceTest {
 protected:
  // b0f_0io->b0f
  AttrValue Labels1d() { return List(Attr::kDimLabels, {1, 0, 2, 1, 1, 2, 0, 0, 2, 1}); }
  std::string Conv(const char* lhs, const char* rhs, Attrs attrs, const char* declared = "") {
    return Infer(Opcode::kConvolution, {lhs, rhs}, attrs, declared);
  }
};

TEST_F(ConvolutionTest, Plain) {
  const Attrs attrs = {Window({{.size = 3, .low = 1, .high = 1}}), Labels1d()};
  EXPECT_EQ(Conv("f32[2,10,4]", "f32[3,4,8]", attrs), "f32[2,10,8]{2,1,0}");
  EXPECT_EQ(Conv("bf16[2,10,4]", "bf16[3,4,8]", attrs, "f32[2,10,8]"), "f32[2,10,8]{2,1,0}");
  EXPECT_EQ(Conv("f32[<=2,?,4]", "f32[3,4,8]", attrs), "f32[<=2,?,8]{2,1,0}");
  EXPECT_ERROR(Conv("f32[2,10,5]", "f32[3,4,8]", attrs), "has 5 features");
  EXPECT_ERROR(Conv("f32[2,10,4]", "f32[2,4,8]", attrs), "window has size 3");
  EXPECT_ERROR(Conv("f32[2,10,4]", "f32[4,8]", attrs), "must have the 3 dimensions");
  EXPECT_ERROR(Conv("f32[2,10,4]", "f32[3,4,<=8]", attrs), "cannot be dynamic");
  EXPECT_ERROR(Conv("f32[2,10,4]", "f32[3,4,8]", {Labels1d()}), "window has 0 dimensions");
  EXPECT_ERROR(Conv("f32[2,10,4]", "f32[3,4,8]", {Window({{.size = 3}})}), "`dim_labels` is missing");
  EXPECT_ERROR(Conv("f32[2,10,4]", "f32[3,4,8]",
                    {Window({{.size = 3}}), List(Attr::kDimLabels, {1, 0, 0, 1, 1, 2, 0, 0, 2, 1})}),
               "each dimension");
}

TEST_F(ConvolutionTest, StrideAndDilation) {
  EXPECT_EQ(Conv("f32[2,10,4]", "f32[3,4,8]", {Window({{.size = 3, .stride = 2, .dilate = 2}}), Labels1d()}),
            "f32[2,3,8]{2,1,0}");
  EXPECT_EQ(Conv("f32[2,10,4]", "f32[3,4,8]", {Window({{.size = 3, .base = 2}}), Labels1d()}), "f32[2,17,8]{2,1,0}");
  EXPECT_ERROR(Conv("f32[2,10,4]", "f32[3,4,8]", {Window({{.size = 3, .base = int64_t{1} << 62}}), Labels1d()}),
               "overflows");
}

TEST_F(ConvolutionTest, Groups) {
  const AttrValue window = Window({{.size = 3}});
  EXPECT_EQ(Conv("f32[2,10,8]", "f32[3,4,6]", {window, Labels1d(), Int(Attr::kFeatureGroupCount, 2)}),
            "f32[2,8,6]{2,1,0}");
  EXPECT_EQ(Conv("f32[6,10,4]", "f32[3,4,6]", {window, Labels1d(), Int(Attr::kBatchGroupCount, 3)}),
            "f32[2,8,6]{2,1,0}");
  EXPECT_ERROR(Conv("f32[2,10,8]", "f32[3,4,5]", {window, Labels1d(), Int(Attr::kFeatureGroupCount, 2)}),
               "output features");
  EXPECT_ERROR(Conv("f32[5,10,4]", "f32[3,4,6]", {window, Labels1d(), Int(Attr::kBatchGroupCount, 3)}), "batch of 5");
  EXPECT_ERROR(Conv("f32[2,10,8]", "f32[3,4,6]", {window, Labels1d(), Int(Attr::kFeatureGroupCount, 0)}),
               "not positive");
  EXPECT_ERROR(Conv("f32[2,10,8]", "f32[3,4,6]",
                    {window, Labels1d(), Int(Attr::kFeatureGroupCount, 2), Int(Attr::kBatchGroupCount, 2)}),
               "cannot both");
}

TEST_F(ConvolutionTest, KindChangesNothing) {
  const AttrValue window = Window({{.size = 3, .low = 1, .high = 1}});
  for (uint32_t kind = 0; kind < 4; ++kind) {
    EXPECT_EQ(Conv("f32[2,10,4]", "f32[3,4,8]", {window, Labels1d(), AttrValue{Attr::kConvolutionKind, kind}}),
              "f32[2,10,8]{2,1,0}");
  }
}

TEST_F(ConvolutionTest, SparseKernel) {
  const AttrValue window = Window({{.size = 3, .low = 1, .high = 1}});
  EXPECT_EQ(Conv("f32[2,10,16]", "(f32[3,4,8], s8[3,4,8])",
                 {window, Labels1d(), Text(Attr::kSparsityConfig, "{rhs={sparsity=1x4 dimension=0 stride=1}}")}),
            "f32[2,10,8]{2,1,0}");
  EXPECT_EQ(
      Conv("f32[2,10,16]", "f32[3,8,8]", {window, Labels1d(), Text(Attr::kSparsityConfig, "{rhs={sparsity=2x4}}")}),
      "f32[2,10,8]{2,1,0}");
  EXPECT_ERROR(
      Conv("f32[2,10,16]", "f32[3,4,8]", {window, Labels1d(), Text(Attr::kSparsityConfig, "{rhs={sparsity=3x4}}")}),
      "the kernel (f32[3,4,8]) has 4 input features, which is not divisible by the 3 non-zeros of each sparsity block");
  EXPECT_ERROR(
      Conv("f32[2,10,16]", "f32[3,4,8]", {window, Labels1d(), Text(Attr::kSparsityConfig, "{rhs={sparsity=4}}")}),
      "NxM");
  EXPECT_ERROR(Conv("f32[2,10,16]", "f32[3,4,8]",
                    {window, Labels1d(), Text(Attr::kSparsityConfig, "{rhs={sparsity=1x9223372036854775807}}")}),
               "overflows");
}

}  // namespace
}  // namespace hlokit

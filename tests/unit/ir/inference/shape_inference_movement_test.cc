// SPDX-License-Identifier: Apache-2.0
// Shape rules of data movement.
#include "shape_inference_fixture.h"

namespace hlokit {
namespace {

TEST_F(ShapeInferenceTest, Broadcast) {
  const Attrs to_1 = {List(Attr::kDimensions, {1})};
  EXPECT_EQ(Infer(Opcode::kBroadcast, {"f32[3]"}, to_1, "f32[2,3]{0,1}"), "f32[2,3]{0,1}");
  EXPECT_EQ(Check(Opcode::kBroadcast, {"f32[2,3]"}, {List(Attr::kDimensions, {1, 0})}, "f32[3,2]"), "");
  EXPECT_ERROR(Check(Opcode::kBroadcast, {"f32[3]"}, to_1, "f32[3,2]"), "sizes differ");
  EXPECT_ERROR(Check(Opcode::kBroadcast, {"f32[3]"}, to_1, "f32[3]"),
               "dimension 1 in `dimensions` is out of range: expected less than 1");
  EXPECT_ERROR(Check(Opcode::kBroadcast, {"f32[3]"}, {}, "f32[2,3]"),
               "expected 1 entries in `dimensions`, one for each dimension of operand 0 (f32[3]), found 0");
  EXPECT_ERROR(Check(Opcode::kBroadcast, {"f32[3,3]"}, {List(Attr::kDimensions, {1, 1})}, "f32[3,3]"),
               "duplicate dimension 1 in `dimensions`");
  EXPECT_ERROR(Check(Opcode::kBroadcast, {"f32[3]"}, to_1, "s32[2,3]"), "element type");
  EXPECT_EQ(Check(Opcode::kBroadcast, {"f32[3]"}, to_1, "bf16[2,3]"), "");
  EXPECT_ERROR(Check(Opcode::kBroadcast, {"f32[3]"}, to_1, "bf16[2,3]", /*mixed_precision=*/false), "bf16");
  EXPECT_ERROR(Check(Opcode::kBroadcast, {"(f32[3])"}, to_1, "f32[2,3]"), "to be an array");
}

TEST_F(ShapeInferenceTest, BroadcastWithoutShape) {
  EXPECT_EQ(Infer(Opcode::kBroadcast, {"f32[]"}), "f32[]");
  EXPECT_EQ(Infer(Opcode::kBroadcast, {"f32[4]"}, {List(Attr::kDimensions, {1})}), "f32[1,4]{1,0}");
  EXPECT_ERROR(Infer(Opcode::kBroadcast, {"f32[4]"}, {List(Attr::kDimensions, {0})}),
               "the result shape of a broadcast of f32[4] must be specified");
  EXPECT_ERROR(Infer(Opcode::kBroadcast, {"f32[4]"}, {List(Attr::kDimensions, {-1})}),
               "negative size -1 in `dimensions`");
}

TEST_F(ShapeInferenceTest, Reshape) {
  EXPECT_EQ(Infer(Opcode::kReshape, {"f32[2,3]"}, {}, "f32[6]"), "f32[6]{0}");
  EXPECT_EQ(Check(Opcode::kReshape, {"f32[]"}, {}, "f32[1,1]"), "");
  EXPECT_EQ(Check(Opcode::kReshape, {"f32[0,5]"}, {}, "f32[7,0]"), "");
  EXPECT_EQ(Check(Opcode::kReshape, {"f32[?,5]"}, {}, "f32[7]"), "");
  EXPECT_ERROR(Check(Opcode::kReshape, {"f32[2,3]"}, {}, "f32[5]"), "different numbers of elements");
  EXPECT_ERROR(Check(Opcode::kReshape, {"f32[2,3]"}, {}, "s32[6]"), "element type");
  EXPECT_ERROR(Infer(Opcode::kReshape, {"f32[2,3]"}), "the result shape of a reshape must be specified");
}

TEST_F(ShapeInferenceTest, ReshapeOfLargeCounts) {
  EXPECT_EQ(Check(Opcode::kReshape, {"s8[4611686018427387904]"}, {}, "s8[16,288230376151711744]"), "");
  EXPECT_ERROR(Check(Opcode::kReshape, {"s8[4611686018427387904]"}, {}, "s8[4611686018427387903]"),
               "different numbers");
}

TEST_F(ShapeInferenceTest, Transpose) {
  const Attrs swap = {List(Attr::kDimensions, {1, 0})};
  EXPECT_EQ(Infer(Opcode::kTranspose, {"f32[2,3]{1,0}"}, swap), "f32[3,2]{0,1}");
  EXPECT_EQ(Infer(Opcode::kTranspose, {"f32[2,<=3,4]{2,0,1:T(8)}"}, {List(Attr::kDimensions, {1, 2, 0})}),
            "f32[<=3,4,2]{1,2,0:T(8)}");
  EXPECT_ERROR(Infer(Opcode::kTranspose, {"f32[2,3]"}, {List(Attr::kDimensions, {0, 0})}),
               "`dimensions` ({0,0}) must be a permutation of the dimensions of operand 0 (f32[2,3])");
  EXPECT_ERROR(Infer(Opcode::kTranspose, {"f32[2,3]"}, {List(Attr::kDimensions, {0, 2})}),
               "`dimensions` ({0,2}) must be a permutation of the dimensions of operand 0 (f32[2,3])");
  EXPECT_ERROR(Infer(Opcode::kTranspose, {"f32[2,3]"}, {List(Attr::kDimensions, {0})}),
               "`dimensions` ({0}) must be a permutation of the dimensions of operand 0 (f32[2,3])");
  EXPECT_ERROR(Check(Opcode::kTranspose, {"f32[2,3]"}, swap, "f32[2,3]"), "attributes is f32[3,2]");
}

TEST_F(ShapeInferenceTest, Reverse) {
  EXPECT_EQ(Infer(Opcode::kReverse, {"f32[2,3]{0,1}"}, {List(Attr::kDimensions, {1})}), "f32[2,3]{0,1}");
  EXPECT_ERROR(Infer(Opcode::kReverse, {"f32[2,3]"}, {List(Attr::kDimensions, {1, 1})}),
               "duplicate dimension 1 in `dimensions`");
  EXPECT_ERROR(Infer(Opcode::kReverse, {"f32[2,3]"}, {List(Attr::kDimensions, {2})}),
               "dimension 2 in `dimensions` is out of range: expected less than 2");
  EXPECT_ERROR(Infer(Opcode::kReverse, {"f32[2,3]"}, {List(Attr::kDimensions, {-1})}), "dimension -1");
}

TEST_F(ShapeInferenceTest, Slice) {
  const auto slice = [&](const Numbers& ranges) { return Attrs{List(Attr::kSlice, ranges)}; };
  EXPECT_EQ(Infer(Opcode::kSlice, {"f32[10,4]"}, slice({1, 10, 3, 0, 4, 1})), "f32[3,4]{1,0}");
  EXPECT_EQ(Infer(Opcode::kSlice, {"f32[<=10]"}, slice({0, 2, 1})), "f32[<=2]{0}");
  EXPECT_EQ(Infer(Opcode::kSlice, {"f32[<=10]"}, slice({0, 1, 1})), "f32[1]{0}");
  EXPECT_EQ(Infer(Opcode::kSlice, {"f32[?]"}, slice({0, 5, 1})), "f32[5]{0}");
  EXPECT_EQ(Infer(Opcode::kSlice, {"f32[4]"}, slice({2, 2, 1})), "f32[0]{0}");
  EXPECT_ERROR(Infer(Opcode::kSlice, {"f32[4]"}, slice({0, 5, 1})),
               "limit 5 of the slice of dimension 0 is out of range for operand 0 (f32[4])");
  EXPECT_ERROR(Infer(Opcode::kSlice, {"f32[4]"}, slice({3, 2, 1})),
               "start 3 of the slice of dimension 0 is greater than its limit 2");
  EXPECT_ERROR(Infer(Opcode::kSlice, {"f32[4]"}, slice({-1, 2, 1})), "negative start -1 of the slice of dimension 0");
  EXPECT_ERROR(Infer(Opcode::kSlice, {"f32[4]"}, slice({0, 2, 0})), "stride");
  EXPECT_ERROR(Infer(Opcode::kSlice, {"f32[4]"}, slice({0, 2})), "a range for each");
  EXPECT_ERROR(Infer(Opcode::kSlice, {"f32[4,4]"}, slice({0, 2, 1})), "a range for each of the 2 dimensions");
  EXPECT_EQ(Infer(Opcode::kSlice, {"s8[9223372036854775807]"}, slice({0, 9223372036854775807, 9223372036854775807})),
            "s8[1]{0}");
}

TEST_F(ShapeInferenceTest, DynamicSlice) {
  const auto sizes = [&](const Numbers& list) { return Attrs{List(Attr::kDynamicSliceSizes, list)}; };
  EXPECT_EQ(Infer(Opcode::kDynamicSlice, {"f32[8,4]{0,1}", "s32[]", "s32[]"}, sizes({2, 4})), "f32[2,4]{1,0}");
  EXPECT_EQ(Infer(Opcode::kDynamicSlice, {"f32[8,4]", "s32[2]"}, sizes({2, 4})), "f32[2,4]{1,0}");
  EXPECT_EQ(Infer(Opcode::kDynamicSlice, {"f32[]"}, sizes({})), "f32[]");
  EXPECT_EQ(Infer(Opcode::kDynamicSlice, {"f32[<=8,4]", "s32[]", "s32[]"}, sizes({8, 1})), "f32[<=8,1]{1,0}");
  EXPECT_ERROR(Infer(Opcode::kDynamicSlice, {"f32[8,4]", "s32[]"}, sizes({2, 4})), "expected 2 start indices");
  EXPECT_ERROR(Infer(Opcode::kDynamicSlice, {"f32[8,4]", "s32[3]"}, sizes({2, 4})), "must have 2 elements");
  EXPECT_ERROR(Infer(Opcode::kDynamicSlice, {"f32[8,4]", "s32[2]", "s32[2]"}, sizes({2, 4})),
               "expected scalar start indices or one vector, found 2 operands");
  EXPECT_ERROR(Infer(Opcode::kDynamicSlice, {"f32[8]", "f32[]"}, sizes({2})), "integer scalar");
  EXPECT_ERROR(Infer(Opcode::kDynamicSlice, {"f32[8,4]", "s32[]", "s64[]"}, sizes({2, 4})), "of one type");
  EXPECT_ERROR(Infer(Opcode::kDynamicSlice, {"f32[8]", "s32[]"}, sizes({9})), "size 9");
  EXPECT_ERROR(Infer(Opcode::kDynamicSlice, {"f32[8]", "s32[]"}, sizes({-1})), "size -1");
  EXPECT_ERROR(Infer(Opcode::kDynamicSlice, {"f32[8]", "s32[]"}, sizes({1, 1})), "a size for each");
}

TEST_F(ShapeInferenceTest, DynamicUpdateSlice) {
  EXPECT_EQ(Infer(Opcode::kDynamicUpdateSlice, {"f32[8,4]{0,1}", "f32[2,4]", "s32[]", "s32[]"}), "f32[8,4]{0,1}");
  EXPECT_EQ(Infer(Opcode::kDynamicUpdateSlice, {"f32[8,4]", "f32[2,4]", "s32[2]"}), "f32[8,4]{1,0}");
  EXPECT_EQ(Infer(Opcode::kDynamicUpdateSlice, {"f32[8,4]", "f32[<=8,<=2]", "s32[2]"}), "f32[<=8,4]{1,0}");
  EXPECT_EQ(Infer(Opcode::kDynamicUpdateSlice, {"b(f32[8])", "f32[2]", "s32[]"}), "b(f32[8]{0})");
  EXPECT_ERROR(Infer(Opcode::kDynamicUpdateSlice, {"f32[8]", "f32[9]", "s32[]"}), "larger than operand 0");
  EXPECT_ERROR(Infer(Opcode::kDynamicUpdateSlice, {"f32[8]", "f32[2,2]", "s32[]"}), "rank of operand 0");
  EXPECT_ERROR(Infer(Opcode::kDynamicUpdateSlice, {"f32[8]", "s32[2]", "s32[]"}), "element type of operand 0");
  EXPECT_ERROR(Infer(Opcode::kDynamicUpdateSlice, {"f32[8]", "f32[2]"}), "expected 1 start index");
  // The result is the operand itself, so its precision cannot change.
  EXPECT_ERROR(Check(Opcode::kDynamicUpdateSlice, {"f32[8]", "bf16[2]", "s32[]"}, {}, "bf16[8]"),
               "attributes is f32[8]");
}

TEST_F(ShapeInferenceTest, Concatenate) {
  const Attrs along_0 = {List(Attr::kDimensions, {0})};
  EXPECT_EQ(Infer(Opcode::kConcatenate, {"f32[2,3]", "f32[4,3]", "f32[0,3]"}, along_0), "f32[6,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kConcatenate, {"f32[2]"}, along_0), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kConcatenate, {"bf16[2]", "f32[2]"}, along_0), "f32[4]{0}");
  EXPECT_EQ(Infer(Opcode::kConcatenate, {"f32[<=2,3]", "f32[4,<=3]"}, along_0), "f32[<=6,<=3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kConcatenate, {"f32[?,3]", "f32[4,?]"}, along_0), "f32[?,3]{1,0}");
  EXPECT_ERROR(Infer(Opcode::kConcatenate, {"f32[2,3]", "f32[2,4]"}, along_0), "differ in dimension 1");
  EXPECT_ERROR(Infer(Opcode::kConcatenate, {"f32[2]", "f32[2,4]"}, along_0), "different ranks");
  EXPECT_ERROR(Infer(Opcode::kConcatenate, {"f32[2]", "s32[2]"}, along_0),
               "operand 0 has elements of f32, but operand 1 has elements of s32");
  EXPECT_ERROR(Infer(Opcode::kConcatenate, {"f32[2]"}, {List(Attr::kDimensions, {1})}),
               "dimension 1 in `dimensions` is out of range for operand 0 (f32[2])");
  EXPECT_ERROR(Infer(Opcode::kConcatenate, {"f32[2]"}, {List(Attr::kDimensions, {0, 1})}), "one dimension");
  EXPECT_ERROR(Infer(Opcode::kConcatenate, {"f32[]"}, along_0),
               "dimension 0 in `dimensions` is out of range for operand 0 (f32[])");
  EXPECT_ERROR(Infer(Opcode::kConcatenate, {}, along_0), "at least 1 operand");
  EXPECT_ERROR(Infer(Opcode::kConcatenate, {"s8[9223372036854775807]", "s8[1]"}, along_0), "overflows");
}

TEST_F(ShapeInferenceTest, Pad) {
  const auto padding = [&](const Numbers& list) { return Attrs{List(Attr::kPadding, list)}; };
  EXPECT_EQ(Infer(Opcode::kPad, {"f32[3,4]", "f32[]"}, padding({1, 2, 3, -1, 0, 0})), "f32[12,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kPad, {"f32[0]", "f32[]"}, padding({0, 0, 5})), "f32[0]{0}");
  EXPECT_EQ(Infer(Opcode::kPad, {"f32[<=3]", "f32[]"}, padding({1, 0, 0})), "f32[<=4]{0}");
  EXPECT_EQ(Infer(Opcode::kPad, {"f32[?]", "f32[]"}, padding({1, 0, 0})), "f32[?]{0}");
  EXPECT_ERROR(Infer(Opcode::kPad, {"f32[3]", "f32[]"}, padding({-2, -2, 0})),
               "negative size of dimension 0 of operand 0 (f32[3]) after padding: -1");
  EXPECT_ERROR(Infer(Opcode::kPad, {"f32[3]", "f32[]"}, padding({0, 0, -1})), "interior padding");
  EXPECT_ERROR(Infer(Opcode::kPad, {"f32[3]", "f32[1]"}, padding({0, 0, 0})), "must be a scalar");
  EXPECT_ERROR(Infer(Opcode::kPad, {"f32[3]", "s32[]"}, padding({0, 0, 0})),
               "operand 0 has elements of f32, but operand 1 has elements of s32");
  EXPECT_ERROR(Infer(Opcode::kPad, {"f32[3]", "f32[]"}, padding({0, 0, 0, 0, 0, 0})), "an entry for each");
  EXPECT_ERROR(Infer(Opcode::kPad, {"f32[3]", "f32[]"}, padding({0, 0, 9223372036854775807})), "overflows");
  EXPECT_ERROR(Infer(Opcode::kPad, {"f32[3]", "f32[]"}, padding({9223372036854775807, 0, 0})), "overflows");
}

TEST_F(ShapeInferenceTest, Iota) {
  const Attrs along_1 = {Int(Attr::kIotaDimension, 1)};
  EXPECT_EQ(Infer(Opcode::kIota, {}, along_1, "s32[2,3]{0,1}"), "s32[2,3]{0,1}");
  EXPECT_ERROR(Check(Opcode::kIota, {}, along_1, "s32[2]"), "`iota_dimension` 1 is out of range for the result s32[2]");
  EXPECT_ERROR(Check(Opcode::kIota, {}, {Int(Attr::kIotaDimension, -1)}, "s32[2]"),
               "`iota_dimension` -1 is out of range for the result s32[2]");
  EXPECT_ERROR(Check(Opcode::kIota, {}, along_1, "s32[]"), "at least one dimension");
  EXPECT_ERROR(Check(Opcode::kIota, {}, along_1, "pred[2,3]"), "integer, floating point or complex");
  EXPECT_ERROR(Check(Opcode::kIota, {}, along_1, "(s32[2,3])"), "to be an array");
  EXPECT_ERROR(Infer(Opcode::kIota, {}, along_1), "the result shape of an iota must be specified");
}

TEST_F(ShapeInferenceTest, DimensionSizes) {
  const Attrs of_1 = {List(Attr::kDimensions, {1})};
  EXPECT_EQ(Infer(Opcode::kGetDimensionSize, {"f32[2,<=3]"}, of_1), "s32[]");
  EXPECT_EQ(Infer(Opcode::kSetDimensionSize, {"f32[2,3]{0,1}", "s32[]"}, of_1), "f32[2,<=3]{0,1}");
  EXPECT_EQ(Check(Opcode::kSetDimensionSize, {"f32[2,3]", "s32[]"}, of_1, "f32[2,3]"), "");
  EXPECT_ERROR(Infer(Opcode::kGetDimensionSize, {"f32[2]"}, of_1),
               "dimension 1 in `dimensions` is out of range for operand 0 (f32[2])");
  EXPECT_ERROR(Infer(Opcode::kGetDimensionSize, {"f32[2,2147483648]"}, of_1), "too large for s32");
  EXPECT_ERROR(Infer(Opcode::kSetDimensionSize, {"f32[2,3]", "s64[]"}, of_1), "must be s32[]");
  EXPECT_ERROR(Infer(Opcode::kSetDimensionSize, {"f32[2,3]", "s32[1]"}, of_1), "must be s32[]");
  EXPECT_ERROR(Infer(Opcode::kSetDimensionSize, {"f32[2]", "s32[]"}, of_1),
               "dimension 1 in `dimensions` is out of range for operand 0 (f32[2])");
}

TEST_F(ShapeInferenceTest, FirstOperand) {
  EXPECT_EQ(Infer(Opcode::kOptimizationBarrier, {"(f32[2]{0}, token[])"}), "(f32[2]{0}, token[])");
  EXPECT_EQ(Infer(Opcode::kAddDependency, {"f32[2]", "token[]"}), "f32[2]{0}");
  EXPECT_ERROR(Infer(Opcode::kAddDependency, {"f32[2]", "f32[2]"}), "operand 1 to be a token");
  EXPECT_ERROR(Check(Opcode::kOptimizationBarrier, {"f32[2]"}, {}, "bf16[2]"), "attributes is f32[2]");
}

TEST_F(ShapeInferenceTest, GatherOfRows) {
  const auto gather = [&](const Numbers& offset, const Numbers& collapsed, const Numbers& map, int64_t vector_dim,
                          const Numbers& sizes) {
    return Attrs{List(Attr::kOffsetDims, offset), List(Attr::kCollapsedSliceDims, collapsed),
                 List(Attr::kStartIndexMap, map), Int(Attr::kIndexVectorDim, vector_dim),
                 List(Attr::kSliceSizes, sizes)};
  };
  EXPECT_EQ(Infer(Opcode::kGather, {"f32[5,3]{0,1}", "s32[4,1]"}, gather({1}, {0}, {0}, 1, {1, 3})), "f32[4,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kGather, {"f32[5,3]", "s32[4]"}, gather({1}, {0}, {0}, 1, {1, 3})), "f32[4,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kGather, {"f32[5,3]", "s32[2,4]"}, gather({0, 1}, {}, {0, 1}, 0, {2, 3})),
            "f32[2,3,4]{2,1,0}");
  EXPECT_EQ(Infer(Opcode::kGather, {"f32[5,<=3]", "s32[<=4,1]"}, gather({1}, {0}, {0}, 1, {1, 3})),
            "f32[<=4,<=3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kGather, {"f32[5]", "s32[]"}, gather({}, {0}, {0}, 0, {1})), "f32[]");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[5,3]", "f32[4,1]"}, gather({1}, {0}, {0}, 1, {1, 3})), "integer elements");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[5,3]", "s32[4,1]"}, gather({1}, {0}, {0}, 3, {1, 3})),
               "`index_vector_dim`");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[5,3]", "s32[4,1]"}, gather({1}, {0}, {0}, -1, {1, 3})),
               "`index_vector_dim`");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[5,3]", "s32[4,2]"}, gather({1}, {0}, {0}, 1, {1, 3})), "2 components");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[5,3]", "s32[4,1]"}, gather({1}, {0}, {2}, 1, {1, 3})), "`start_index_map`");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[5,3]", "s32[4,1]"}, gather({2}, {0}, {0}, 1, {1, 3})), "`offset_dims`");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[5,3]", "s32[4,1]"}, gather({1, 0}, {}, {0}, 1, {1, 3})), "increasing");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[5,3]", "s32[4,1]"}, gather({1}, {0}, {0}, 1, {2, 3})),
               "expected a slice of size at most 1 in dimension 0, which is collapsed, found 2");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[5,3]", "s32[4,1]"}, gather({1}, {0}, {0}, 1, {1, 4})),
               "size 4 of the slice in dimension 1 is out of range for operand 0 (f32[5,3])");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[5,3]", "s32[4,1]"}, gather({1}, {0}, {0}, 1, {1})), "`slice_sizes`");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[5,3]", "s32[4,1]"}, gather({1}, {}, {0}, 1, {1, 3})), "offset dimension");
}

TEST_F(ShapeInferenceTest, GatherWithBatchingDims) {
  const auto gather = [&](const Numbers& operand, const Numbers& indices) {
    return Attrs{List(Attr::kOffsetDims, {2}),
                 List(Attr::kCollapsedSliceDims, {1}),
                 List(Attr::kStartIndexMap, {1}),
                 List(Attr::kOperandBatchingDims, operand),
                 List(Attr::kStartIndicesBatchingDims, indices),
                 Int(Attr::kIndexVectorDim, 2),
                 List(Attr::kSliceSizes, {1, 1, 3})};
  };
  EXPECT_EQ(Infer(Opcode::kGather, {"f32[2,5,3]", "s32[2,4,1]"}, gather({0}, {0})), "f32[2,4,3]{2,1,0}");
  // XLA lets sizes differ.
  EXPECT_EQ(Infer(Opcode::kGather, {"f32[2,5,3]", "s32[3,4,1]"}, gather({0}, {0})), "f32[3,4,3]{2,1,0}");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[2,5,3]", "s32[2,4,1]"}, gather({0}, {})),
               "`operand_batching_dims` and `start_indices_batching_dims` must have the same size, found {0} and {}");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[2,5,3]", "s32[2,4,1]"}, gather({0}, {2})),
               "`start_indices_batching_dims` contains dimension 2, which is `index_vector_dim`");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[2,5,3]", "s32[2,4,1]"}, gather({0}, {5})),
               "dimension 5 in `start_indices_batching_dims` is out of range: expected less than 3");
  EXPECT_ERROR(Infer(Opcode::kGather, {"f32[2,5,3]", "s32[2,4,1]"}, gather({1}, {0})),
               "duplicate dimension 1 in `collapsed_slice_dims`");
}

TEST_F(ShapeInferenceTest, Scatter) {
  const auto scatter = [&](const Numbers& window, const Numbers& inserted, const Numbers& map, int64_t vector_dim,
                           std::string_view update = "add") {
    return Attrs{List(Attr::kUpdateWindowDims, window), List(Attr::kInsertedWindowDims, inserted),
                 List(Attr::kScatterDimsToOperandDims, map), Int(Attr::kIndexVectorDim, vector_dim),
                 Calls(Attr::kToApply, update)};
  };
  const Attrs rows = scatter({1}, {0}, {0}, 1);
  EXPECT_EQ(Infer(Opcode::kScatter, {"f32[5,3]{0,1}", "s32[4,1]", "f32[4,3]"}, rows), "f32[5,3]{0,1}");
  EXPECT_EQ(Infer(Opcode::kScatter, {"f32[5,3]", "s32[4]", "f32[4,2]"}, rows), "f32[5,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kScatter, {"f32[5,3]", "s32[5,3]", "s32[4,1]", "f32[4,3]", "s32[4,3]"},
                  scatter({1}, {0}, {0}, 1, "arg_max")),
            "(f32[5,3]{1,0}, s32[5,3]{1,0})");
  EXPECT_ERROR(Infer(Opcode::kScatter, {"f32[5,3]", "s32[4,1]", "f32[4,4]"}, rows), "larger than operand 0");
  EXPECT_ERROR(Infer(Opcode::kScatter, {"f32[5,3]", "s32[4,1]", "f32[3,3]"}, rows), "has size 3 in dimension 0");
  EXPECT_ERROR(Infer(Opcode::kScatter, {"f32[5,3]", "s32[4,1]", "f32[4]"}, rows), "must have 2 dimensions");
  EXPECT_ERROR(Infer(Opcode::kScatter, {"f32[5,3]", "s32[4,2]", "f32[4,3]"}, rows), "2 components");
  EXPECT_ERROR(Infer(Opcode::kScatter, {"f32[5,3]", "s32[4,1]", "f32[4,3]"}, scatter({1}, {0}, {2}, 1)),
               "dimension 2 in `scatter_dims_to_operand_dims` is out of range: expected less than 2");
  EXPECT_ERROR(Infer(Opcode::kScatter, {"f32[5,3]", "s32[4,1]", "f32[4,3]"}, scatter({1}, {}, {0}, 1)),
               "window dimension");
  EXPECT_ERROR(Infer(Opcode::kScatter, {"f32[5,3]", "s32[4,1]", "f32[4,3]"}, scatter({1}, {0}, {0}, 1, "add_s32")),
               "the result of the reducer is s32[], which is incompatible with the initial value: elements of f32");
  EXPECT_ERROR(Infer(Opcode::kScatter, {"f32[5,3]", "f32[4,1]", "f32[4,3]"}, rows), "integer elements");
  EXPECT_ERROR(Infer(Opcode::kScatter, {"f32[5,3]", "s32[4,1]", "f32[4,3]", "f32[4,3]"}, rows), "as many updates");
}

TEST_F(ShapeInferenceTest, ScatterWithBatchingDims) {
  const Attrs attrs = {List(Attr::kUpdateWindowDims, {2}),
                       List(Attr::kInsertedWindowDims, {1}),
                       List(Attr::kScatterDimsToOperandDims, {1}),
                       List(Attr::kInputBatchingDims, {0}),
                       List(Attr::kScatterIndicesBatchingDims, {0}),
                       Int(Attr::kIndexVectorDim, 2),
                       Calls(Attr::kToApply, "add")};
  EXPECT_EQ(Infer(Opcode::kScatter, {"f32[2,5,3]", "s32[2,4,1]", "f32[2,4,3]"}, attrs), "f32[2,5,3]{2,1,0}");
  EXPECT_ERROR(Infer(Opcode::kScatter, {"f32[2,5,3]", "s32[2,4,1]", "f32[3,4,3]"}, attrs), "has size 3 in dimension 0");
}

}  // namespace
}  // namespace hlokit

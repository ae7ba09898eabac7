// SPDX-License-Identifier: Apache-2.0
#include "check/equivalence/partition_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "interp/program/sharded_arrays.h"
#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"

namespace hlokit::interp {
namespace {

std::unique_ptr<Module> ParseProgram(const std::string& text) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? *std::move(module) : nullptr;
}

// A program that returns its parameter, which is s32[SIZES] with a sharding.
std::unique_ptr<Module> Identity(const std::string& sizes, const std::string& sharding) {
  return ParseProgram(
      StrCat("HloModule m\nENTRY e {\n  ROOT p = s32[", sizes, "] parameter(0), sharding=", sharding, "\n}\n"));
}

std::vector<Literal> Numbers(const ShardedArrays& arrays) {
  Literal numbers = Literal::Zeros(arrays.leaves()[0].whole);
  for (size_t k = 0; k < numbers.values<int32_t>().size(); ++k) numbers.values<int32_t>()[k] = static_cast<int32_t>(k);
  std::vector<Literal> list;
  list.push_back(std::move(numbers));
  return list;
}

std::vector<int32_t> Elements(const Literal& literal) {
  return {literal.values<int32_t>().begin(), literal.values<int32_t>().end()};
}

// Five elements in four tiles: parts of two, of which the third ends in padding and the last consists of it.
TEST(ShardedArraysTest, UnevenPartsEndInPadding) {
  const auto module = Identity("5", "{devices=[4]<=[4]}");
  const auto arrays = ShardedArrays::OfParameters(*module, 4);
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  const std::vector<Literal> parts = arrays->Divide(Numbers(*arrays), PaddingFill::kLargest);
  constexpr int32_t kPadding = std::numeric_limits<int32_t>::max();
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(Elements(parts[0]), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(Elements(parts[2]), (std::vector<int32_t>{4, kPadding}));
  EXPECT_EQ(Elements(parts[3]), (std::vector<int32_t>{kPadding, kPadding}));
}

TEST(ShardedArraysTest, AssemblingInvertsDividing) {
  for (const char* sharding :
       {"{replicated}", "{maximal device=1}", "{devices=[4,1]<=[4]}", "{devices=[2,2]3,1,0,2}",
        "{devices=[1,2,2]<=[4] last_tile_dim_replicate}", "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
        "{mesh['x'=2,'y'=2], [{'y'}, {'x'}]}"}) {
    const auto module = Identity("5,3", sharding);
    const auto arrays = ShardedArrays::OfParameters(*module, 4);
    ASSERT_TRUE(arrays.ok()) << arrays.status();
    const std::vector<Literal> numbers = Numbers(*arrays);
    for (PaddingFill fill : kPaddingFills) {
      const auto whole = arrays->Assemble(arrays->Divide(numbers, fill), "result");
      ASSERT_TRUE(whole.ok()) << whole.status();
      EXPECT_EQ(Elements((*whole)[0]), Elements(numbers[0])) << sharding;
    }
  }
}

TEST(ShardedArraysTest, DevicesWithTheSamePartMustAgree) {
  const auto module = Identity("2,2", "{devices=[2,1,2]<=[4] last_tile_dim_replicate}");
  const auto arrays = ShardedArrays::OfResult(*module, 4);
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  std::vector<Literal> parts = arrays->Divide(Numbers(*arrays), PaddingFill::kZero);
  parts[3].values<int32_t>()[1] = 7;
  const auto whole = arrays->Assemble(parts, "result");
  EXPECT_EQ(whole.status().message(),
            "devices 2 and 3 differ in element {1,1} of result 0 (s32[2,2]), which both have");
}

TEST(ShardedArraysTest, PartsOfManualValuesDetermineNoWhole) {
  EXPECT_EQ(ShardedArrays::OfParameters(*Identity("4", "{manual}"), 4).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ShardedArrays::OfParameters(*Identity("4", "{devices=[8]<=[8]}"), 4).status().code(),
            absl::StatusCode::kInvalidArgument);
}

constexpr char kSum[] = R"(HloModule sum
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  p = f32[5] parameter(0), sharding={devices=[2]<=[2]}
  zero = f32[] constant(0)
  ROOT s = f32[] reduce(p, zero), dimensions={0}, to_apply=add, sharding={replicated}
}
)";

// The same program on two devices. The padding of the second must not be added: `operand` is what is summed.
std::string SumOnTwo(const std::string& operand) {
  return StrCat(R"(HloModule sum, num_partitions=2
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  p = f32[3] parameter(0), sharding={devices=[2]<=[2]}
  zero = f32[] constant(0)
  zeros = f32[3] broadcast(zero), dimensions={}
  ids = s32[3] iota(), iota_dimension=0
  starts = s32[2] constant({0, 3})
  id = u32[] partition-id()
  start = s32[1] dynamic-slice(starts, id), dynamic_slice_sizes={1}
  scalar = s32[] reshape(start)
  offset = s32[3] broadcast(scalar), dimensions={}
  index = s32[3] add(ids, offset)
  five = s32[] constant(5)
  size = s32[3] broadcast(five), dimensions={}
  valid = pred[3] compare(index, size), direction=LT
  masked = f32[3] select(valid, p, zeros)
  part = f32[] reduce()",
                operand, R"(, zero), dimensions={0}, to_apply=add
  ROOT s = f32[] all-reduce(part), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add, sharding={replicated}
}
)");
}

TEST(PartitionCheckTest, RightAndWrongPartitions) {
  const auto whole = ParseProgram(kSum);
  const auto check = PartitionCheck::Prepare(*whole, 2, {});
  ASSERT_TRUE(check.ok()) << check.status();
  for (PaddingFill fill : kPaddingFills) {
    EXPECT_TRUE(check->Compare(*ParseProgram(SumOnTwo("masked")), fill).ok());
  }
  EXPECT_TRUE(check->Compare(*ParseProgram(SumOnTwo("p")), PaddingFill::kZero).ok());
  EXPECT_FALSE(check->Compare(*ParseProgram(SumOnTwo("p")), PaddingFill::kNan).ok());
  EXPECT_FALSE(check->Compare(*ParseProgram(SumOnTwo("p")), PaddingFill::kLargest).ok());
  EXPECT_EQ(check->Compare(*whole, PaddingFill::kZero).message(),
            "argument 0 of the partitioned program is f32[5], expected f32[3]");
}

TEST(PartitionCheckTest, OnlySumsMayDiffer) {
  const auto sum = ParseProgram(kSum);
  const auto negation =
      ParseProgram("HloModule m\nENTRY e {\n  p = f32[2] parameter(0)\n  ROOT n = f32[2] negate(p)\n}\n");
  const Shape scalar = sum->context().shapes.Scalar(ElementType::kF32);
  std::vector<Literal> one = {Literal::Zeros(scalar)}, next = one, far = one;
  one[0].values<float>()[0] = 1;
  next[0].values<float>()[0] = std::nextafterf(1, 2);
  far[0].values<float>()[0] = 1.0001f;
  EXPECT_EQ(ComparePartitionedResults(*sum, one, next), "");
  EXPECT_NE(ComparePartitionedResults(*sum, one, far), "");
  EXPECT_NE(ComparePartitionedResults(*negation, one, next), "");
}

TEST(PartitionCheckTest, ProgramsOfDevicesAreNotComparable) {
  const auto module = ParseProgram("HloModule m\nENTRY e {\n  ROOT p = u32[] partition-id()\n}\n");
  EXPECT_EQ(PartitionCheck::Prepare(*module, 2, {}).status().message(), "it has partition-id");
}

}  // namespace
}  // namespace hlokit::interp

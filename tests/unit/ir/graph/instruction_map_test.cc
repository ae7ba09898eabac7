// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/instruction_map.h"

#include <gtest/gtest.h>

#include <vector>

namespace hlokit {
namespace {

std::vector<InstructionId> Ids(std::vector<uint32_t> values) {
  std::vector<InstructionId> ids;
  for (uint32_t value : values) ids.push_back(InstructionId{value});
  return ids;
}

TEST(InstructionMapTest, FindKnowsEachInstructionAndNoOther) {
  const std::vector<std::vector<uint32_t>> sets = {
      {5, 6, 7},           // contiguous
      {5, 7, 40},          // with gaps
      {5, 7, 1000000000},  // far apart
  };
  for (const std::vector<uint32_t>& set : sets) {
    InstructionMap<int> map(Ids(set), 1);
    for (uint32_t value : set) {
      int* const found = map.Find(InstructionId{value});
      ASSERT_NE(found, nullptr) << value;
      EXPECT_EQ(*found, 1);
      *found = static_cast<int>(value);
    }
    for (uint32_t value : set) EXPECT_EQ(map[InstructionId{value}], static_cast<int>(value));
    for (uint32_t value : {0u, 4u, 8u, 39u, 41u, 0xfffffffeu}) EXPECT_EQ(map.Find(InstructionId{value}), nullptr);
  }
}

TEST(InstructionMapTest, WithoutInstructionsFindsNone) {
  InstructionMap<int> map;
  EXPECT_EQ(map.Find(InstructionId{0}), nullptr);
}

}  // namespace
}  // namespace hlokit

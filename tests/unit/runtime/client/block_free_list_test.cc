// SPDX-License-Identifier: Apache-2.0
#include "runtime/client/block_free_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace hlokit::runtime {
namespace {

// Each test has a separate size, and so separate lists.

TEST(BlockFreeListTest, BlocksInUseDoNotOverlap) {
  using Blocks = BlockFreeList<72>;
  std::vector<char*> blocks;
  for (int i = 0; i < 1000; ++i) {
    blocks.push_back(static_cast<char*>(Blocks::Allocate()));
    std::memset(blocks.back(), i % 251, 72);
  }
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(std::all_of(blocks[i], blocks[i] + 72, [&](char c) { return c == static_cast<char>(i % 251); })) << i;
    Blocks::FreeLocal(blocks[i]);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

TEST(BlockFreeListTest, WhatAThreadKeepsItTakesNext) {
  using Blocks = BlockFreeList<136>;
  void* const a = Blocks::Allocate();
  void* const b = Blocks::Allocate();
  Blocks::FreeLocal(a);
  Blocks::FreeLocal(b);
  EXPECT_EQ(Blocks::Allocate(), b);
  EXPECT_EQ(Blocks::Allocate(), a);
}

TEST(BlockFreeListTest, WhatOneThreadGivesBackAnotherTakes) {
  using Blocks = BlockFreeList<200>;
  std::set<void*> first;
  std::thread([&] {
    std::vector<void*> taken;
    for (int i = 0; i < 64; ++i) taken.push_back(Blocks::Allocate());
    for (void* p : taken) Blocks::FreeShared(p);
    first.insert(taken.begin(), taken.end());
  }).join();
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(first.contains(Blocks::Allocate())) << i;
}

TEST(BlockFreeListTest, AThreadThatEndsLeavesItsBlocksToOthers) {
  using Blocks = BlockFreeList<264>;
  std::set<void*> first;
  std::thread([&] {
    std::vector<void*> taken;
    for (int i = 0; i < 64; ++i) taken.push_back(Blocks::Allocate());
    for (void* p : taken) Blocks::FreeLocal(p);
    first.insert(taken.begin(), taken.end());
  }).join();
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(first.contains(Blocks::Allocate())) << i;
}

TEST(BlockFreeListTest, AThreadThatOnlyDestroysDoesNotHoardBlocks) {
  using Blocks = BlockFreeList<328>;
  constexpr size_t kObjects = 20000;
  std::vector<void*> made;
  for (size_t i = 0; i < kObjects; ++i) made.push_back(Blocks::Allocate());
  std::set<void*> mine(made.begin(), made.end());
  std::thread destroyer([&] {
    for (void* p : made) Blocks::FreeLocal(p);
    // While this thread lives, the first one finds the blocks that exceed its limit.
    std::thread([&] {
      size_t again = 0;
      for (size_t i = 0; i < 10000; ++i) again += mine.contains(Blocks::Allocate());
      EXPECT_EQ(again, 10000u);
    }).join();
  });
  destroyer.join();
}

#endif

}  // namespace
}  // namespace hlokit::runtime

// SPDX-License-Identifier: Apache-2.0
#include "ir/core/thread_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>

namespace hlokit {
namespace {

TEST(ThreadGroupTest, AllAreJoinedAndTheFirstExceptionIsThrown) {
  std::atomic<int> done = 0;
  ThreadGroup group;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(group.Start([&done, i] {
      ++done;
      if (i == 2) throw std::bad_alloc();
    }));
  }
  EXPECT_EQ(group.size(), 4u);
  EXPECT_THROW(group.Join(), std::bad_alloc);
  EXPECT_EQ(done, 4);
  EXPECT_EQ(group.size(), 0u);
  group.Join();
}

TEST(ThreadGroupTest, AFunctionThatIsLeftWaitsForItsThreads) {
  std::atomic<bool> done = false;
  try {
    ThreadGroup group;
    ASSERT_TRUE(group.Start([&done] { done = true; }));
    throw 1;
  } catch (int) {
    EXPECT_TRUE(done);
  }
}

}  // namespace
}  // namespace hlokit

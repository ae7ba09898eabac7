// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/reentrant_mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace hlokit::lazy {
namespace {

TEST(ReentrantMutexTest, ItsOwnerLocksItAgainAndOthersWaitForTheLastUnlock) {
  ReentrantMutex mutex;
  const auto free_for_others = [&] {
    bool locked = false;
    std::thread([&] {
      locked = mutex.try_lock();
      if (locked) mutex.unlock();
    }).join();
    return locked;
  };
  EXPECT_TRUE(free_for_others());
  mutex.lock();
  EXPECT_FALSE(free_for_others());
  {
    const DeviceLock again(mutex);
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  }
  EXPECT_FALSE(free_for_others());
  mutex.unlock();
  EXPECT_TRUE(free_for_others());
}

TEST(ReentrantMutexTest, ThreadsCountOneAtATime) {
  ReentrantMutex mutex;
  int64_t count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        const DeviceLock outer(mutex);
        const DeviceLock inner(mutex);
        ++count;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(count, 80000);
}

}  // namespace
}  // namespace hlokit::lazy

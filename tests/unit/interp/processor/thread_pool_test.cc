// SPDX-License-Identifier: Apache-2.0
// A pool whose work fails, or that gets no threads, does what a single thread would.
#include "interp/processor/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <system_error>
#include <thread>

namespace hlokit::interp {
namespace {

int64_t SumOf(ThreadPool* pool) {
  std::atomic<int64_t> sum = 0;
  pool->ParallelFor(1000, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum += i;
  });
  return sum;
}

TEST(ThreadPoolTest, AnExceptionOfTheWorkIsThrownOnceNoThreadIsInIt) {
  ThreadPool pool(4);
  for (int64_t failing = 0; failing < 1000; failing += 37) {
    std::atomic<int> inside = 0;
    EXPECT_THROW(pool.ParallelFor(1000, 1,
                                  [&](int64_t begin, int64_t end) {
                                    ++inside;
                                    if (begin <= failing && failing < end) {
                                      --inside;
                                      throw std::bad_alloc();
                                    }
                                    --inside;
                                  }),
                 std::bad_alloc);
    EXPECT_EQ(inside, 0);
    EXPECT_EQ(SumOf(&pool), 999 * 1000 / 2);
  }
}

// Threads would have stacks that are larger than all addresses.
bool ForbidThreads() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, size_t{1} << 47) != 0) return false;
  if (pthread_setattr_default_np(&attributes) != 0) return false;
  try {
    std::thread([] {}).join();
  } catch (const std::system_error&) {
    return true;
  }
  return false;
}

TEST(ThreadPoolTest, WithoutThreadsTheCallerDoesAll) {
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    if (!ForbidThreads()) _exit(2);
    ThreadPool pool(4);
    _exit(SumOf(&pool) == 999 * 1000 / 2 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "the system gives threads of any size";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hlokit::interp

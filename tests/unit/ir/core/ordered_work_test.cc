// SPDX-License-Identifier: Apache-2.0
#include "ir/core/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace hlokit {
namespace {

TEST(OrderedWorkTest, ResultsComeInOrderWhateverTakesLonger) {
  for (const size_t threads : {size_t{0}, size_t{1}, size_t{2}, size_t{8}}) {
    std::vector<std::string> used;
    WorkInOrder(
        40, threads,
        [](size_t k) {
          if (k % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
          return std::to_string(k);
        },
        [&](std::string text) { used.push_back(std::move(text)); });
    ASSERT_EQ(used.size(), 40u) << threads;
    for (size_t k = 0; k < used.size(); ++k) EXPECT_EQ(used[k], std::to_string(k)) << threads;
  }
}

TEST(OrderedWorkTest, OnlyAFewResultsWait) {
  constexpr size_t kThreads = 2;
  std::atomic<size_t> begun = 0;
  size_t used = 0, most = 0;
  WorkInOrder(
      200, kThreads,
      [&](size_t k) {
        ++begun;
        return k;
      },
      [&](size_t) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        most = std::max(most, begun - used);
        ++used;
      });
  EXPECT_EQ(used, 200u);
  EXPECT_LE(most, 4 * kThreads + kThreads + 1);
}

TEST(OrderedWorkTest, WhatTheWorkThrowsIsThrown) {
  for (const size_t threads : {size_t{1}, size_t{4}}) {
    size_t used = 0;
    const auto work = [](size_t k) -> size_t {
      if (k == 7) throw std::runtime_error("no memory");
      return k;
    };
    EXPECT_THROW(WorkInOrder(100, threads, work, [&](size_t) { ++used; }), std::runtime_error) << threads;
    EXPECT_LE(used, 7u) << threads;
  }
}

TEST(OrderedWorkTest, WhatTheUseThrowsIsThrownAndEndsTheThreads) {
  for (const size_t threads : {size_t{1}, size_t{4}}) {
    const auto use = [](size_t k) {
      if (k == 3) throw std::runtime_error("no memory");
    };
    EXPECT_THROW(WorkInOrder(
                     1000, threads, [](size_t k) { return k; }, use),
                 std::runtime_error)
        << threads;
  }
}

TEST(OrderedWorkTest, NoItemsAreNoWork) {
  WorkInOrder(
      0, 4, [](size_t k) { return k; }, [](size_t) { FAIL(); });
}

}  // namespace
}  // namespace hlokit

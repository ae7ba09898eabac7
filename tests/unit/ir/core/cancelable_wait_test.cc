// SPDX-License-Identifier: Apache-2.0
#include "ir/core/cancelable_wait.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace hlokit {
namespace {

class CancelableWaitTest : public ::testing::Test {
 protected:
  WaitResult Wait(double seconds) {
    std::unique_lock<std::mutex> lock(mutex_);
    return CancelableWait(
        changed_, lock, seconds, [this] { return done_; }, CancelFlag(&cancel_));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::atomic<bool> cancel_ = false;
};

TEST_F(CancelableWaitTest, WhatIsDoneIsDoneWhateverElse) {
  done_ = true;
  cancel_ = true;
  EXPECT_EQ(Wait(0), WaitResult::kDone);
}

TEST_F(CancelableWaitTest, EndsWithTheTime) {
  EXPECT_EQ(Wait(0), WaitResult::kTimedOut);
  EXPECT_EQ(Wait(-1), WaitResult::kTimedOut);
  EXPECT_EQ(Wait(-1e300), WaitResult::kTimedOut);
  EXPECT_EQ(Wait(std::numeric_limits<double>::quiet_NaN()), WaitResult::kTimedOut);
  EXPECT_EQ(Wait(0.01), WaitResult::kTimedOut);
}

TEST_F(CancelableWaitTest, EndsWithAFlagThatNothingSignals) {
  std::thread other([this] { cancel_ = true; });
  EXPECT_EQ(Wait(1e300), WaitResult::kCanceled);
  other.join();
}

TEST_F(CancelableWaitTest, EndsWithANotifiedChange) {
  std::thread other([this] {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
    changed_.notify_all();
  });
  EXPECT_EQ(Wait(1e300), WaitResult::kDone);
  other.join();
}

TEST_F(CancelableWaitTest, AWaitWithoutAFlagIsNotCanceled) {
  EXPECT_FALSE(CancelFlag(nullptr)());
  std::unique_lock<std::mutex> lock(mutex_);
  int looks = 0;
  const auto never = [&] {
    ++looks;
    return false;
  };
  EXPECT_EQ(CancelableWait(changed_, lock, 0.25, never, CancelFlag(nullptr)), WaitResult::kTimedOut);
  EXPECT_LE(looks, 4);  // it sleeps through
}

}  // namespace
}  // namespace hlokit

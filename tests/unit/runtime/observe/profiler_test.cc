// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/profiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>

namespace hlokit::runtime {
namespace {

TEST(Profiler, OneAtATime) {
  ASSERT_TRUE(Profiler::Start().ok());
  EXPECT_EQ(std::string(Profiler::Start().message()),
            "Profile has already been started. Only one profile may be run at a time.");
  EXPECT_TRUE(Profiler::Stop().ok());
  EXPECT_EQ(std::string(Profiler::Stop().status().message()), "No profile started");
}

TEST(Profiler, SpansHoldEachOtherAndKeepTheirThreads) {
  { const TraceMe before("before"); }
  ASSERT_TRUE(Profiler::Start().ok());
  {
    TraceMe outer("outer");
    outer.Add("step_num", 7);
    const TraceMe inner("inner");
  }
  std::thread other([] {
    Profiler::SetThreadName("loader");
    const TraceMe span("cpu_loader.next");
  });
  other.join();
  absl::StatusOr<Profile> profile = Profiler::Stop();
  { const TraceMe after("after"); }
  ASSERT_TRUE(profile.ok());
  ASSERT_EQ(profile->events.size(), 3u);
  const TraceEvent& outer = profile->events[0];
  const TraceEvent& inner = profile->events[1];
  EXPECT_EQ(outer.name, "outer");
  ASSERT_EQ(outer.stats.size(), 1u);
  EXPECT_EQ(outer.stats[0], (std::pair<std::string, int64_t>("step_num", 7)));
  EXPECT_EQ(inner.name, "inner");
  EXPECT_LE(outer.start_ns, inner.start_ns);
  EXPECT_GE(outer.end_ns, inner.end_ns);
  EXPECT_EQ(outer.thread, inner.thread);
  EXPECT_EQ(profile->threads[profile->events[2].thread], "loader");
  EXPECT_LE(profile->start_ns, outer.start_ns);
  EXPECT_GE(profile->stop_ns, profile->events[2].end_ns);
}

TEST(Profiler, ASpanThatOutlivesItsProfileIsInNone) {
  ASSERT_TRUE(Profiler::Start().ok());
  auto span = std::make_unique<TraceMe>("long");
  EXPECT_TRUE(Profiler::Stop().ok());
  ASSERT_TRUE(Profiler::Start().ok());
  span.reset();
  absl::StatusOr<Profile> second = Profiler::Stop();
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->events.empty());
}

TEST(Profiler, CountsWhatIsBeyondTheLimit) {
  ProfilerOptions options;
  options.max_events = 2;
  ASSERT_TRUE(Profiler::Start(options).ok());
  for (int i = 0; i < 5; ++i) const TraceMe span("span");
  absl::StatusOr<Profile> profile = Profiler::Stop();
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->events.size(), 2u);
  EXPECT_EQ(profile->dropped, 3);
}

TEST(Profiler, AnnotationsInProgressAreInTheProfile) {
  auto before =
      std::make_unique<AnnotationSpan>("before", std::vector<std::pair<std::string, int64_t>>{{"step_num", 41}});
  ASSERT_TRUE(Profiler::Start().ok());
  before.reset();
  const AnnotationSpan after("after");
  absl::StatusOr<Profile> profile = Profiler::Stop();
  ASSERT_TRUE(profile.ok());
  ASSERT_EQ(profile->events.size(), 2u);
  EXPECT_EQ(profile->events[0].name, "before");
  EXPECT_EQ(profile->events[0].start_ns, profile->start_ns);
  EXPECT_EQ(profile->events[0].stats[0].second, 41);
  EXPECT_EQ(profile->events[1].name, "after");
  EXPECT_EQ(profile->events[1].end_ns, profile->stop_ns);
}

TEST(Profiler, RestartDiscardsTheSetUp) {
  ASSERT_TRUE(Profiler::Start().ok());
  { const TraceMe setup("set-up"); }
  Profiler::Restart();
  { const TraceMe step("step"); }
  absl::StatusOr<Profile> profile = Profiler::Stop();
  ASSERT_TRUE(profile.ok());
  ASSERT_EQ(profile->events.size(), 1u);
  EXPECT_EQ(profile->events[0].name, "step");
}

TEST(Profiler, ThreadsOfOneNameShareALine) {
  ASSERT_TRUE(Profiler::Start().ok());
  for (int k = 0; k < 3; ++k) {
    std::thread worker([] {
      Profiler::SetThreadName("replica 1");
      const TraceMe span("train");
    });
    worker.join();
  }
  absl::StatusOr<Profile> profile = Profiler::Stop();
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->threads, std::vector<std::string>({"replica 1"}));
  // Their counters are told apart.
  EXPECT_NE(profile->events[0].at_start.thread, profile->events[1].at_start.thread);
}

}  // namespace
}  // namespace hlokit::runtime

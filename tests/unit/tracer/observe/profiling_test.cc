// SPDX-License-Identifier: Apache-2.0
#include "tracer/observe/profiling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ir/text/literal_text.h"
#include "ir/text/printer.h"
#include "tracer/dispatch/functions.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy {
namespace {

using runtime::Profile;
using runtime::Profiler;
using runtime::TraceEvent;

const TraceEvent* Find(const Profile& profile, const std::string& name) {
  for (const TraceEvent& e : profile.events) {
    if (e.name == name) return &e;
  }
  return nullptr;
}

bool Holds(const TraceEvent& outer, const TraceEvent& inner) {
  return outer.thread == inner.thread && outer.start_ns <= inner.start_ns && inner.end_ns <= outer.end_ns;
}

TEST(Profiling, AStepIsASpanThatEndsWithItsMarker) {
  Tracer tracer;
  const DeviceGuard guard(tracer.device());
  ASSERT_TRUE(Profiler::Start().ok());
  Tensor y;
  {
    StepTrace step(&tracer, "train", 3);
    {
      const Trace forward("forward");
      y = Tanh(Full({4}, 1, ElementType::kF32));
    }
    ASSERT_TRUE(step.Finish().ok());
  }
  ASSERT_TRUE(tracer.Wait().ok());
  absl::StatusOr<Profile> profile = Profiler::Stop();
  ASSERT_TRUE(profile.ok());
  const TraceEvent* train = Find(*profile, "train");
  const TraceEvent* forward = Find(*profile, "forward");
  const TraceEvent* marker = Find(*profile, "StepMarker");
  const TraceEvent* call = Find(*profile, "PjRtComputationClient::ExecuteComputation");
  ASSERT_TRUE(train != nullptr && forward != nullptr && marker != nullptr && call != nullptr);
  EXPECT_TRUE(Holds(*train, *forward));
  EXPECT_TRUE(Holds(*train, *marker));
  EXPECT_TRUE(Holds(*marker, *call));
  EXPECT_NE(std::find(train->stats.begin(), train->stats.end(), std::pair<std::string, int64_t>("step_num", 3)),
            train->stats.end());
  EXPECT_NE(std::find(train->stats.begin(), train->stats.end(), std::pair<std::string, int64_t>("_r", 1)),
            train->stats.end());
  EXPECT_EQ(profile->executions.size(), 1u);
  EXPECT_EQ(*tracer.metrics().counter("MarkStep"), 1);
}

TEST(Profiling, TheDestructorMarksTheStep) {
  Tracer tracer;
  const DeviceGuard guard(tracer.device());
  {
    const StepTrace step(&tracer, "train", 0);
    const Tensor y = Tanh(Full({4}, 1, ElementType::kF32));
  }
  EXPECT_TRUE(tracer.status().ok());
  EXPECT_EQ(*tracer.metrics().counter("MarkStep"), 1);
}

TEST(Profiling, AStepMarkedInsideAScopeIsAnError) {
  Tracer tracer;
  const DeviceGuard guard(tracer.device());
  {
    StepTrace step(&tracer, "train", 0);
    const Trace forward("forward");
    const Tensor y = Tanh(Full({4}, 1, ElementType::kF32));
    EXPECT_FALSE(step.Finish().ok());
  }
}

}  // namespace
}  // namespace hlokit::lazy

// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/environment.h"

#include <gtest/gtest.h>

namespace hlokit::lazy {
namespace {

TEST(EnvironmentTest, SetsWhatItKnows) {
  const char* const environment[] = {"PATH=/bin",
                                     "XLA_IR_DEBUG=1",
                                     "CPU_NUM_DEVICES=4",
                                     "XLA_ENABLE_PARAM_ALIASING=0",
                                     "XLA_COMPILATION_CACHE_SIZE=7",
                                     "XLA_PERSISTENT_CACHE_PATH=/tmp/x",
                                     "XLA_EMIT_STEPLOG=1",
                                     nullptr};
  TracerOptions options;
  ASSERT_TRUE(ApplyEnvironment(environment, &options).ok());
  EXPECT_TRUE(options.debug);
  EXPECT_FALSE(options.donate);
  EXPECT_EQ(options.client.num_devices, 4);
  EXPECT_EQ(options.cache_entries, 7);
  EXPECT_TRUE(options.step_log);
  EXPECT_EQ(options.persistent_cache.location, "/tmp/x");
}

TEST(EnvironmentTest, AnalysesAreOfOneProcessAndTheLevelWins) {
  TracerOptions options;
  const char* const debug[] = {"PT_XLA_DEBUG=1", nullptr};
  ASSERT_TRUE(ApplyEnvironment(debug, &options).ok());
  EXPECT_TRUE(options.auto_analysis);
  EXPECT_EQ(options.debug_level, 100);
  const char* const level[] = {"PT_XLA_DEBUG_LEVEL=1", "PT_XLA_DEBUG=1", nullptr};
  ASSERT_TRUE(ApplyEnvironment(level, &options).ok());
  EXPECT_EQ(options.debug_level, 1);
  TracerOptions other;
  const char* const rank[] = {"PT_XLA_DEBUG=1", "PJRT_LOCAL_PROCESS_RANK=1", nullptr};
  ASSERT_TRUE(ApplyEnvironment(rank, &other).ok());
  EXPECT_EQ(other.debug_level, -1);
}

TEST(EnvironmentTest, PercentilesAreFractionsWithColons) {
  TracerOptions options;
  const char* const right[] = {"XLA_METRICS_PERCENTILES=0.5:0.999", "XLA_METRICS_SAMPLES=7", nullptr};
  ASSERT_TRUE(ApplyEnvironment(right, &options).ok());
  EXPECT_EQ(options.metrics.percentiles, (std::vector<double>{0.5, 0.999}));
  EXPECT_EQ(options.metrics.max_samples, 7u);
  for (const char* wrong : {"XLA_METRICS_PERCENTILES=", "XLA_METRICS_PERCENTILES=0.5:", "XLA_METRICS_PERCENTILES=50",
                            "XLA_METRICS_PERCENTILES=nan"}) {
    const char* const environment[] = {wrong, nullptr};
    EXPECT_FALSE(ApplyEnvironment(environment, &options).ok()) << wrong;
  }
}

TEST(EnvironmentTest, AMisspeltVariableIsAnErrorWithASuggestion) {
  const char* const environment[] = {"XLA_IR_DEBGU=1", nullptr};
  TracerOptions options;
  EXPECT_EQ(ApplyEnvironment(environment, &options).message(),
            "unknown environment variable `XLA_IR_DEBGU`; did you mean `XLA_IR_DEBUG`?");
}

TEST(EnvironmentTest, AValueThatIsNoNumberIsAnError) {
  const char* const environment[] = {"CPU_NUM_DEVICES=many", nullptr};
  TracerOptions options;
  EXPECT_FALSE(ApplyEnvironment(environment, &options).ok());
}

}  // namespace
}  // namespace hlokit::lazy

#include "tracer/environment.h"

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
                                     nullptr};
  TracerOptions options;
  ASSERT_TRUE(ApplyEnvironment(environment, &options).ok());
  EXPECT_TRUE(options.debug);
  EXPECT_FALSE(options.donate);
  EXPECT_EQ(options.client.num_devices, 4);
  EXPECT_EQ(options.cache_entries, 7);
  EXPECT_EQ(options.persistent_cache.folder, "/tmp/x");
}

TEST(EnvironmentTest, AMisspeltVariableIsAnErrorWithASuggestion) {
  const char* const environment[] = {"XLA_IR_DEBGU=1", nullptr};
  TracerOptions options;
  EXPECT_EQ(ApplyEnvironment(environment, &options).message(),
            "there is no environment variable XLA_IR_DEBGU; did you mean XLA_IR_DEBUG?");
}

TEST(EnvironmentTest, AValueThatIsNoNumberIsAnError) {
  const char* const environment[] = {"CPU_NUM_DEVICES=many", nullptr};
  TracerOptions options;
  EXPECT_FALSE(ApplyEnvironment(environment, &options).ok());
}

}  // namespace
}  // namespace hlokit::lazy

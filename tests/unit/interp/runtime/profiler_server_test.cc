#include "interp/runtime/profiler_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "ir/str_cat.h"

namespace hlokit::runtime {
namespace {

namespace fs = std::filesystem;

// The names of a profile's spans.
absl::StatusOr<std::string> Names(const Profile& profile) {
  std::string bytes;
  for (const TraceEvent& e : profile.events) StrAppend(&bytes, e.name, "\n");
  return bytes;
}

class ProfilerServerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              StrCat("profiler_server_", testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    absl::StatusOr<std::unique_ptr<ProfilerServer>> server = ProfilerServer::Start(0, Names);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void TearDown() override {
    server_.reset();
    fs::remove_all(folder_);
  }
  std::string address() const { return StrCat("localhost:", server_->port()); }

  fs::path folder_;
  std::unique_ptr<ProfilerServer> server_;
};

// Work until it goes away.
class Worker {
 public:
  Worker()
      : thread_([this] {
          while (!stop_) {
            const Trace span("work");
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) {}
  ~Worker() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST_F(ProfilerServerTest, CapturesWhatTheProcessDoes) {
  const Worker worker;
  CaptureOptions options;
  options.address = address();
  options.logdir = folder_.string();
  options.run = "run";
  options.duration_ms = 100;
  const absl::StatusOr<std::string> path = CaptureProfile(options);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(fs::path(*path).parent_path(), folder_ / "plugins" / "profile" / "run");
  EXPECT_EQ(fs::path(*path).filename().string(), ProfileHostName() + ".xplane.pb");
  std::ifstream file(*path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(bytes.substr(0, 5), "work\n");
}

TEST_F(ProfilerServerTest, MonitorsInAFewLines) {
  const Worker worker;
  const absl::StatusOr<std::string> text = MonitorProcess(address(), 100);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(text->find("executions: 0"), std::string::npos) << *text;
  EXPECT_NE(text->find("work: "), std::string::npos) << *text;
}

TEST_F(ProfilerServerTest, SaysThatNothingHappened) {
  CaptureOptions options;
  options.address = address();
  options.logdir = folder_.string();
  options.duration_ms = 5;
  options.attempts = 2;
  const absl::StatusOr<std::string> path = CaptureProfile(options);
  EXPECT_TRUE(absl::IsNotFound(path.status())) << path.status();
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(ProfilerServerTest, OneProfileAtATime) {
  const Worker worker;
  ASSERT_TRUE(Profiler::Start().ok());
  CaptureOptions options;
  options.address = address();
  options.logdir = folder_.string();
  options.duration_ms = 5;
  const absl::StatusOr<std::string> path = CaptureProfile(options);
  EXPECT_TRUE(Profiler::Stop().ok());
  EXPECT_NE(std::string(path.status().message()).find("Only one profile may be run at a time"), std::string::npos)
      << path.status();
}

TEST_F(ProfilerServerTest, APortThatIsTakenIsAnError) {
  const absl::StatusOr<std::unique_ptr<ProfilerServer>> second = ProfilerServer::Start(server_->port(), Names);
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
}

TEST_F(ProfilerServerTest, EndsWithACaptureUnderWay) {
  const Worker worker;
  CaptureOptions options;
  options.address = address();
  options.logdir = folder_.string();
  options.duration_ms = 60000;
  absl::StatusOr<std::string> path;
  std::thread client([&] { path = CaptureProfile(options); });
  while (!Profiler::active()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // Something to capture.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  server_.reset();
  client.join();
  EXPECT_TRUE(path.ok()) << path.status();
}

TEST(CaptureProfile, TalksToThisMachineAlone) {
  CaptureOptions options;
  options.logdir = testing::TempDir();
  for (const char* address : {"example.com:9012", "10.0.0.1:9012", "localhost", "localhost:", "127.evil.com:1", ""}) {
    options.address = address;
    EXPECT_TRUE(absl::IsInvalidArgument(CaptureProfile(options).status())) << address;
  }
}

}  // namespace
}  // namespace hlokit::runtime

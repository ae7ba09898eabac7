// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/profiler_server.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

#include "ir/core/str_cat.h"
#include "runtime/observe/profiler_service.grpc.pb.h"
#include "runtime/observe/xplane.pb.h"
#include "tests/unit/temporary_folder.h"

namespace hlokit::runtime {
namespace {

namespace fs = std::filesystem;

// Returns an XSpace with a plane for each span of a profile, of the same name.
absl::StatusOr<std::string> Names(const Profile& profile) {
  std::string bytes;
  for (const TraceEvent& e : profile.events) {
    tensorflow::profiler::XSpace space;
    space.add_planes()->set_name(e.name);
    bytes += space.SerializeAsString();
  }
  return bytes;
}

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

class ProfilerServerTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = temporary_.path() / "profiles";
    absl::StatusOr<std::unique_ptr<ProfilerServer>> server = ProfilerServer::Start(0, Names);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void TearDown() override { server_.reset(); }
  std::string address() const { return StrCat("localhost:", server_->port()); }

  const TemporaryFolder temporary_;
  fs::path directory_;  // within the temporary directory, not created yet
  std::unique_ptr<ProfilerServer> server_;
};

// Returns true if a connection to the address is accepted.
bool Connects(const char* address, int port) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, address, &to.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
  close(fd);
  return connected;
}

// Runs work until it is destroyed.
class Worker {
 public:
  Worker()
      : thread_([this] {
          while (!stop_) {
            {
              const TraceMe span("work");
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            ++done_;
          }
        }) {}
  ~Worker() {
    stop_ = true;
    thread_.join();
  }

  int done() const { return done_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> done_ = 0;
  std::thread thread_;
};

TEST_F(ProfilerServerTest, CapturesWhatTheProcessDoes) {
  const Worker worker;
  ProfileCaptureOptions options;
  options.address = address();
  options.logdir = directory_.string();
  options.run = "run";
  options.duration_ms = 100;
  const absl::StatusOr<std::string> path = CaptureProfile(options);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(fs::path(*path).parent_path(), directory_ / "plugins" / "profile" / "run");
  EXPECT_EQ(fs::path(*path).filename().string(), ProfileHostName() + ".xplane.pb");
  EXPECT_EQ(Contents(*path).substr(0, 8), "\x0a\x06\x12\x04work");
  // The file for the older trace viewer.
  const fs::path trace = fs::path(*path).parent_path() / (ProfileHostName() + ".trace.json.gz");
  EXPECT_EQ(Contents(trace).substr(0, 2), "\x1f\x8b");
}

// As TensorBoard requests it: the process writes to the requested directory, and the response has no data.
class ProfilerServerRequestTest : public ProfilerServerTest {
 protected:
  grpc::Status Ask(const std::string& session, const std::string& host) {
    return Ask(session, host, (directory_ / "plugins" / "profile").string());
  }
  grpc::Status Ask(const std::string& session, const std::string& host, const std::string& repository) {
    const auto stub =
        tensorflow::ProfilerService::NewStub(grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
    tensorflow::ProfileRequest request;
    request.set_duration_ms(100);
    request.set_repository_root(repository);
    request.set_session_id(session);
    request.set_host_name(host);
    grpc::ClientContext context;
    return stub->Profile(&context, request, &response_);
  }
  tensorflow::ProfileResponse response_;
};

TEST_F(ProfilerServerRequestTest, WithARepositoryIsWrittenByTheProcess) {
  const Worker worker;
  const grpc::Status status = Ask("run", "host");
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_FALSE(response_.empty_trace());
  EXPECT_EQ(response_.tool_data_size(), 0);
  const fs::path run = directory_ / "plugins" / "profile" / "run";
  EXPECT_EQ(Contents(run / "host.xplane.pb").substr(0, 8), "\x0a\x06\x12\x04work");
  EXPECT_EQ(Contents(run / "host.trace.json.gz").substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(std::distance(fs::directory_iterator(run), fs::directory_iterator()), 2);
}

TEST_F(ProfilerServerRequestTest, NamesAHostByItsAddress) {
  const Worker worker;
  const grpc::Status status = Ask("run", "localhost:9012");
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(fs::exists(directory_ / "plugins" / "profile" / "run" / "localhost_9012.xplane.pb"));
}

TEST_F(ProfilerServerRequestTest, StaysInItsRepository) {
  const Worker worker;
  for (const auto& [session, host] : {std::pair("..", "host"), std::pair("a/b", "host"), std::pair("", "host"),
                                      std::pair("run", "../host"), std::pair("run", "..")}) {
    EXPECT_EQ(Ask(session, host).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << session << " " << host;
  }
  EXPECT_FALSE(fs::exists(directory_));
}

// Its credentials are not those of whoever sends a request.
TEST_F(ProfilerServerRequestTest, WritesToNoRemoteStore) {
  const Worker worker;
  const grpc::Status status = Ask("run", "host", "s3://bucket/profiles");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("local directory"), std::string::npos) << status.error_message();
}

TEST_F(ProfilerServerRequestTest, SaysWhyItCannotWrite) {
  const Worker worker;
  std::ofstream(directory_) << "a file where the folder should be";
  const grpc::Status status = Ask("run", "host");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(status.error_message().find(directory_.string()), std::string::npos) << status.error_message();
}

TEST_F(ProfilerServerTest, MonitorsInAFewLines) {
  const Worker worker;
  const absl::StatusOr<std::string> text = MonitorProcess(address(), 100);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(text->find("executions: 0"), std::string::npos) << *text;
  EXPECT_NE(text->find("work: "), std::string::npos) << *text;
}

TEST_F(ProfilerServerTest, SaysThatNothingHappened) {
  ProfileCaptureOptions options;
  options.address = address();
  options.logdir = directory_.string();
  options.duration_ms = 5;
  options.attempts = 2;
  const absl::StatusOr<std::string> path = CaptureProfile(options);
  EXPECT_TRUE(absl::IsNotFound(path.status())) << path.status();
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(ProfilerServerTest, OneProfileAtATime) {
  const Worker worker;
  ASSERT_TRUE(Profiler::Start().ok());
  ProfileCaptureOptions options;
  options.address = address();
  options.logdir = directory_.string();
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
  ProfileCaptureOptions options;
  options.address = address();
  options.logdir = directory_.string();
  options.duration_ms = 60000;
  absl::StatusOr<std::string> path;
  std::thread client([&] { path = CaptureProfile(options); });
  while (!Profiler::active()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // Something to capture: the span after this one began while the profiler was active.
  for (const int before = worker.done(); worker.done() < before + 2;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  server_.reset();
  client.join();
  EXPECT_TRUE(path.ok()) << path.status();
}

// Another address of this machine: one of a server on all of them.
TEST_F(ProfilerServerTest, ListensOnOneLoopbackAddress) {
  EXPECT_TRUE(Connects("127.0.0.1", server_->port()));
  EXPECT_FALSE(Connects("127.0.0.2", server_->port()));
}

TEST(CaptureProfile, TalksToThisMachineAlone) {
  ProfileCaptureOptions options;
  options.logdir = testing::TempDir();
  for (const char* address : {"example.com:9012", "10.0.0.1:9012", "localhost", "localhost:", "127.evil.com:1", ""}) {
    options.address = address;
    EXPECT_TRUE(absl::IsInvalidArgument(CaptureProfile(options).status())) << address;
  }
}

}  // namespace
}  // namespace hlokit::runtime

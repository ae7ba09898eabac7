// SPDX-License-Identifier: Apache-2.0
// Profiler server for TensorBoard's "capture profile" and for CaptureProfile: the gRPC service
// tensorflow.ProfilerService on the loopback interface only.
#ifndef HLOKIT_RUNTIME_OBSERVE_PROFILER_SERVER_H_
#define HLOKIT_RUNTIME_OBSERVE_PROFILER_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/observe/profiler.h"

namespace hlokit::runtime {

class ProfilerServer {
 public:
  // Converts a profile to a serialized XSpace.
  using Encoder = std::function<absl::StatusOr<std::string>(const Profile&)>;
  // Listens on 127.0.0.1; port 0: any free port. Returns an error if the port is in use.
  static absl::StatusOr<std::unique_ptr<ProfilerServer>> Start(int port, Encoder encoder);
  // Ends the current capture.
  ~ProfilerServer();
  ProfilerServer(const ProfilerServer&) = delete;
  ProfilerServer& operator=(const ProfilerServer&) = delete;

  int port() const;

 private:
  class Service;
  ProfilerServer();
  std::unique_ptr<Service> service_;
};

struct ProfileCaptureOptions {
  std::string address;  // "localhost:9012": a loopback address and a port
  std::string logdir;
  std::string run;  // directory of the run; empty: the current time
  int64_t duration_ms = 1000;
  int attempts = 3;             // tries while the profile is empty
  int64_t timeout_ms = 120000;  // per attempt, beyond its duration
};
// Requests a profile from the profiler at an address, writes LOGDIR/plugins/profile/RUN/HOST.xplane.pb and returns the
// path. Returns an error if the address is not loopback, no server answers, another capture is in progress, or all
// attempts are empty.
absl::StatusOr<std::string> CaptureProfile(const ProfileCaptureOptions& options);

// Returns a few lines about the activity of the process at an address.
absl::StatusOr<std::string> MonitorProcess(const std::string& address, int64_t duration_ms);

// Returns "2024_01_31_12_59_59", TensorBoard's form of run names, in local time.
std::string ProfileRunName(int64_t unix_ns);
// Returns this host's name for file names.
std::string ProfileHostName();

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_OBSERVE_PROFILER_SERVER_H_

// SPDX-License-Identifier: Apache-2.0
// A profiler on a port, for TensorBoard's "capture profile" and for CaptureProfile: the gRPC service
// tensorflow.ProfilerService. It listens on the loopback interface alone.
#ifndef HLOKIT_INTERP_RUNTIME_OBSERVE_PROFILER_SERVER_H_
#define HLOKIT_INTERP_RUNTIME_OBSERVE_PROFILER_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "interp/runtime/observe/profiler.h"

namespace hlokit::runtime {

class ProfilerServer {
 public:
  // Makes the bytes of an XSpace of a profile.
  using Encoder = std::function<absl::StatusOr<std::string>(const Profile&)>;
  // On 127.0.0.1; port 0: any that is free. An error if the port is taken.
  static absl::StatusOr<std::unique_ptr<ProfilerServer>> Start(int port, Encoder encoder);
  // Ends what is being captured.
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
  std::string run;  // folder of the run; empty: the time now
  int64_t duration_ms = 1000;
  int attempts = 3;             // while what comes back is empty
  int64_t timeout_ms = 120000;  // of each, beyond its duration
};
// Asks the profiler at an address for a profile and leaves it in LOGDIR/plugins/profile/RUN/HOST.xplane.pb; gives the
// path. Errors: no loopback address, nobody there, a profile is being taken already, nothing happened in all attempts.
absl::StatusOr<std::string> CaptureProfile(const ProfileCaptureOptions& options);

// What the process at an address does, in a few lines.
absl::StatusOr<std::string> MonitorProcess(const std::string& address, int64_t duration_ms);

// "2024_01_31_12_59_59", as TensorBoard names runs; `unix_ns` by the local clock.
std::string ProfileRunName(int64_t unix_ns);
// Of this machine, for the names of files.
std::string ProfileHostName();

}  // namespace hlokit::runtime

#endif  // HLOKIT_INTERP_RUNTIME_OBSERVE_PROFILER_SERVER_H_

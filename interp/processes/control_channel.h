// SPDX-License-Identifier: Apache-2.0
// Connections of all processes with the first one, beside MPI: what happens to a process reaches the others within
// seconds, whatever they wait for.
//
// Each process has a thread for its connections. A connection that ends without a goodbye, or is silent for too long,
// means a dead process; the text of an error goes to the first process, which prints it, once, that of the lowest rank
// if several fail alike; then all processes end with its exit code. A thread of the first process also answers requests
// for the next item of a queue, and finds out when all processes wait for each other.
//
// Processes on one host connect over the loopback device. A random token, which MPI distributes, keeps others out.
#ifndef HLOKIT_INTERP_PROCESSES_CONTROL_CHANNEL_H_
#define HLOKIT_INTERP_PROCESSES_CONTROL_CHANNEL_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/processes/transport.h"
#include "interp/processes/world.h"

namespace hlokit::interp {

class ControlChannel {
 public:
  // `tool` begins messages. A process that is silent for `timeout_seconds` is an error.
  static absl::StatusOr<std::unique_ptr<ControlChannel>> Open(Transport* transport, std::string tool,
                                                              double timeout_seconds);
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  // Ends the phase in which an error is likely one of all processes: the first process then waits for that of each.
  void EndSetup();
  // Ends all processes with this exit code, after the first one has printed `text`. Does not return.
  [[noreturn]] void Fail(int exit_code, std::string_view text);
  // Waits until all processes have come here. From then on the end of a process is no error.
  void Finish();
  // From BeginCall on, the process ends with an error that names the call unless EndCall comes in time.
  void BeginCall(std::string_view what);
  void EndCall();

  // Returns the next number of the queue: 0, 1, ..., each to one process.
  int64_t NextItem();

  // See World.
  void SetIdle(absl::Span<const DeviceState> states);
  void SetBusy(absl::Span<const DeviceState> states);
  bool TakeAllWait(std::vector<DeviceState>* states);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Kind : uint8_t { kHello, kBeat, kBusy, kIdle, kReady, kFail, kBye, kNext, kItem, kEnd, kAllWait };
  // Another process, or this one.
  struct Peer {
    int socket = -1;
    std::string received;  // begin of a message
    Clock::time_point heard;
    bool ready = false;
    bool said_bye = false;
    bool idle = false;
    uint64_t wait = 0;                // its number, by which an answer is told from a late one
    int idle_reports = 0;             // since any process changed between idle and busy
    std::vector<DeviceState> states;  // the last ones, also of a process that waits for bytes
    bool waits_for_bytes = false;
    int exit_code = 0;  // of an error, with its text
    std::string text;
  };

  ControlChannel(std::string tool, int rank, int size, double timeout_seconds);
  absl::Status Listen(Transport* transport, bool loopback);
  absl::Status Connect(Transport* transport);
  void Start();

  void Run();
  // Handles what a connection has sent. Returns false if it has ended.
  bool Read(int rank);
  void Handle(int rank, Kind kind, std::string_view payload);
  void SetStates(int rank, bool idle, std::string_view payload);
  bool Send(int rank, Kind kind, std::string_view payload);
  // To the first process, which may be this one.
  void Tell(Kind kind, std::string_view payload);
  // Decides, in the first process, whether all end.
  void Decide();
  // Tells one of the processes that wait if all do.
  void FindAllWait();
  void CheckCall();
  void EndAll(int exit_code);
  void ReportDeath(int rank, std::string_view how);
  [[noreturn]] void Exit(int exit_code);
  void Wake();

  const std::string tool_;
  const int rank_;
  const double timeout_seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;  // by rank; those that are not the first know it only
  int wake_[2] = {-1, -1};
  int stderr_ = 2;  // of this process, where that of all but the first is kept back
  int kept_ = -1;   // what they wrote there
  int64_t next_item_ = 0;
  int64_t item_ = -1;      // answer to this process
  uint64_t wait_ = 0;      // number of the wait that SetBusy ends
  bool all_wait_ = false;  // told to this process, with the states of all devices
  std::vector<DeviceState> all_states_;
  std::string call_;  // see BeginCall; empty: none
  Clock::time_point call_began_;
  bool ended_ = false;
  bool stopping_ = false;
  Clock::time_point failed_at_;
  std::thread thread_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROCESSES_CONTROL_CHANNEL_H_

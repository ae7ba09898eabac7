// SPDX-License-Identifier: Apache-2.0
// Connections between the processes of one machine that run programs together, each with each other over the loopback
// device. A thread for each of the others receives what it sends, so that sending does not wait for a process that
// computes; messages wait here until they are taken.
//
// A random token, which the processes get from each other by other means, keeps strangers out.
#ifndef HLOKIT_INTERP_PROCESSES_PROCESS_NETWORK_H_
#define HLOKIT_INTERP_PROCESSES_PROCESS_NETWORK_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hlokit::interp {

class ProcessNetwork {
 public:
  // Which message it is: of the devices that run together, of their run, of those that exchange it, the n-th one.
  struct Label {
    uint64_t world = 0;
    uint64_t run = 0;
    uint64_t channel = 0;
    uint64_t number = 0;
    auto operator<=>(const Label&) const = default;
  };

  // Waits for connections from now on.
  static absl::StatusOr<std::unique_ptr<ProcessNetwork>> Listen();
  ~ProcessNetwork();
  ProcessNetwork(const ProcessNetwork&) = delete;
  ProcessNetwork& operator=(const ProcessNetwork&) = delete;

  // What the other processes need to connect.
  const std::string& address() const { return address_; }
  // Connects with all others, which call it too. `addresses`: by process, that of `self` among them. Returns an error
  // that names those that have not come in time.
  absl::Status Connect(int self, absl::Span<const std::string> addresses, double timeout_seconds);

  int self() const { return self_; }
  int size() const { return static_cast<int>(peers_.size()); }

  // Sends a message. Returns an error if the process has ended or does not take it within the time.
  absl::Status Send(int process, const Label& label, const void* data, size_t bytes, double timeout_seconds);
  // Returns the message with this label, and forgets it; nullopt if it has not come.
  std::optional<std::string> Take(int process, const Label& label);
  // Returns a copy of it, which stays.
  std::optional<std::string> Read(int process, const Label& label);
  // Returns its size; negative if it has not come.
  int64_t SizeOf(int process, const Label& label);
  // Calls `take` once with the message, now or when it comes, or with an error if the process ends before; on this
  // thread or on one that receives, which must not wait for messages.
  using TakeFn = std::function<void(absl::StatusOr<std::string>)>;
  void TakeWhenHere(int process, const Label& label, TakeFn take);
  // Forgets all messages of the run and of those before, and those that come later.
  void EndRun(uint64_t world, uint64_t run);
  // Returns true if the process has closed its connection.
  bool HasEnded(int process);

 private:
  struct Peer {
    int socket = -1;
    std::mutex sending;
    std::map<Label, std::string> messages;
    std::map<Label, TakeFn> takers;
    bool ended = false;
    std::thread thread;
  };

  ProcessNetwork() = default;
  absl::Status ConnectTo(int process, const std::string& address);
  // Takes connections until all later processes have come, or the time is over.
  void Accept(double timeout_seconds);
  void Receive(Peer* peer);
  // Gives a message to who waits for it, or keeps it.
  void Deliver(Peer* peer, const Label& label, std::string message);
  // Notes that the process sends no more.
  void End(Peer* peer);

  int listening_ = -1;
  std::string token_, address_;
  int self_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by process
  std::map<uint64_t, uint64_t> ended_runs_;   // by world, the last one
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROCESSES_PROCESS_NETWORK_H_

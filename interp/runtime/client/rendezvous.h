// SPDX-License-Identifier: Apache-2.0
// Where the devices of a client meet to run a program with collectives: each brings its arguments and waits until all
// have come, then the last one runs the program for all of them.
#ifndef HLOKIT_INTERP_RUNTIME_CLIENT_RENDEZVOUS_H_
#define HLOKIT_INTERP_RUNTIME_CLIENT_RENDEZVOUS_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/exact/evaluator.h"
#include "ir/digest/digest.h"
#include "ir/types/literal.h"

namespace hlokit::runtime {

class Rendezvous {
 public:
  // Runs the program on the arguments of all devices, those of device 0 first; results likewise. It may take over what
  // the donation gives, for results of the same device only.
  using Program = std::function<absl::StatusOr<std::vector<Literal>>(absl::Span<const Literal* const> arguments,
                                                                     interp::DonatedArguments* donation)>;

  // A device that waits longer than `timeout_seconds` for the others gives up, and so do those that wait with it.
  Rendezvous(size_t devices, double timeout_seconds) : devices_(devices), timeout_seconds_(timeout_seconds) {}

  // Called by each device for its next such program, on a thread of its own; gives the device's results. Devices that
  // come with different programs all get an error, as do those left waiting by one that does not come. `donation` says
  // which of the device's arguments may be taken over, with a place for each of them, and learns which ones were.
  absl::StatusOr<std::vector<Literal>> ArriveAndWait(size_t device, const Digest& program, const Program& run,
                                                     absl::Span<const Literal* const> arguments,
                                                     interp::DonatedArguments* donation);
  // The device cannot run its next such program; the others get its error. It does not wait for them.
  void Abort(size_t device, absl::Status status);

 private:
  // What one device brings; it stays where it is until the meeting is done.
  struct Arrival {
    bool here = false;
    absl::Status status;
    Digest program;
    absl::Span<const Literal* const> arguments;
    interp::DonatedArguments* donation = nullptr;
  };
  // Whoever waits holds it until it has its part.
  struct Round {
    explicit Round(size_t devices) : arrivals(devices) {}
    std::vector<Arrival> arrivals;  // by device
    bool done = false;
    absl::Status status;
    std::vector<std::vector<Literal>> results;  // by device
  };

  std::shared_ptr<Round> Join(size_t device, const Arrival& arrival);
  void CompleteRound(const std::shared_ptr<Round>& meeting, const Program& run);
  static absl::Status RunFor(Round& meeting, const Program& run);
  static std::string Missing(const Round& meeting);

  std::mutex mutex_;
  std::condition_variable changed_;
  // Those that gather, in the order of the devices' programs. There are several where a device declined and went on.
  std::deque<std::shared_ptr<Round>> rounds_;
  const size_t devices_;
  const double timeout_seconds_;
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_INTERP_RUNTIME_CLIENT_RENDEZVOUS_H_

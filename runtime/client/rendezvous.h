// SPDX-License-Identifier: Apache-2.0
// Rendezvous of the devices of a client for programs with collectives: each device arrives with its arguments and
// blocks; the last to arrive runs the program for all. Devices may arrive with programs that differ.
//
// Invariant: the n-th arrival of a device in its session is its part in round n, whatever its program, and whether or
// not the others still wait. ArriveAndWait and Abort are arrivals. So a round ends with results only with all devices,
// and a round that ends with an error is over for those that have not arrived: it keeps the error for them, and only
// them, until they do. A device that is not given a program that the others are has no arrival for it: its next program
// takes the place. Nothing here could tell that one from a late program, since devices may run programs of their own.
#ifndef HLOKIT_RUNTIME_CLIENT_RENDEZVOUS_H_
#define HLOKIT_RUNTIME_CLIENT_RENDEZVOUS_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/interface/evaluator_options.h"
#include "ir/digest/digest.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "runtime/client/combined_program.h"

namespace hlokit::runtime {

class Rendezvous {
 public:
  // What a device runs.
  struct Program {
    // Runs the program on the arguments of all devices, device by device; returns results in the same order. May reuse
    // donated arguments for results of the same device only.
    using Run = std::function<absl::StatusOr<std::vector<Literal>>(absl::Span<const Literal* const> arguments,
                                                                   interp::DonatedArguments* donation)>;
    // Makes one program of those of all devices, which name the same module if they are equal.
    using Combine =
        std::function<absl::StatusOr<std::shared_ptr<CombinedProgram>>(absl::Span<const Module* const> programs)>;
    Digest digest;
    const Module* module = nullptr;
    Run run;
    Combine combine;
    uint64_t number = 0;  // see interp::World::ProgramOf
  };
  // Results of a device; the context owns the shapes of those that are not reused arguments.
  struct Results {
    std::vector<Literal> values;
    std::shared_ptr<Context> context;
  };

  // Creates a rendezvous. A device that waits longer than `timeout_seconds` ends its round with an error, and so does
  // one that waits while `cancel`, if not null, is true.
  // `world`: the devices of other processes that run the programs too; may be null.
  Rendezvous(size_t devices, double timeout_seconds, const std::atomic<bool>* cancel = nullptr,
             std::shared_ptr<interp::World> world = nullptr)
      : devices_(devices),
        states_(devices),
        timeout_seconds_(timeout_seconds),
        cancel_(cancel),
        world_(std::move(world)) {}

  // Runs the device's next program with collectives and returns its results. Called on the device's thread. If the
  // devices arrive with programs whose collectives are not the same, or one does not arrive in time, all devices of the
  // round get an error, late ones too; one that is more than kMaxRounds rounds late gets that of one of them.
  // `donation`: reusable arguments, one entry for each argument; receives the aliased ones.
  absl::StatusOr<Results> ArriveAndWait(size_t device, const Program& program,
                                        absl::Span<const Literal* const> arguments, interp::DonatedArguments* donation);
  // Ends the device's part in its next round with an error, which the other devices get. Does not wait.
  void Abort(size_t device, absl::Status status);
  // Declares that the device enters no further round of its session: rounds that wait for it, now or later, end with
  // an ABORTED error with this text.
  void Leave(size_t device, std::string why);
  // Begins a session of the device. Devices synchronize in sessions of the same number only, so that a device that
  // left one can take part in the next while others still finish the first.
  void NextSession(size_t device);

 private:
  // One device; module, arguments and donation are valid until the round is done.
  struct Arrival {
    bool here = false;
    absl::Status status;
    Digest program;
    const Module* module = nullptr;
    absl::Span<const Literal* const> arguments;
    interp::DonatedArguments* donation = nullptr;
  };
  // Shared by the waiting devices until each has its results.
  struct Round {
    Round(size_t devices, int64_t session_number, int64_t round_number)
        : session(session_number), first(round_number), number(round_number), arrivals(devices) {}
    const int64_t session;
    int64_t first;                  // less than `number` if the round, which is done, stands for earlier ones, too
    const int64_t number;           // in the session
    std::vector<Arrival> arrivals;  // by device
    bool done = false;
    absl::Status status;
    std::vector<std::vector<Literal>> results;  // by device
    std::shared_ptr<Context> context;           // of their shapes
  };

  struct DeviceSession {
    int64_t session = 0;
    int64_t rounds = 0;               // of the session that the device has entered
    std::optional<std::string> left;  // the reason
    std::string left_before;          // the reason in the session before
  };

  void EndRoundsWithout(size_t device, int64_t session);
  std::shared_ptr<Round> Join(size_t device, const Arrival& arrival);
  // Drops the rounds that are done and that no device will enter.
  void DropRounds();
  // Makes place for one more round.
  void LimitRounds();
  // Returns why a device that is missing in the round will not enter it; null if each still can.
  const std::string* ReasonToEnd(const Round& round) const;
  // `program`: of the device that arrived last; null if the round ends without it.
  void CompleteRound(const std::shared_ptr<Round>& round, const Program* program);
  // Returns what becomes of the round.
  absl::Status StatusOf(Round& round, const Program* program);
  static absl::Status RunFor(Round& round, const Program& program);
  absl::Status RunDifferent(Round& round, const Program& program);
  absl::Status RunTogether(Round& round, const Program& program, bool different);
  static std::string Missing(const Round& round);
  // Returns the error of the first device that aborted; null if none did.
  static const absl::Status* FindAborted(const Round& round);

  std::mutex mutex_;
  std::condition_variable changed_;
  // Rounds that some device has yet to enter; those of a session ascend. There are several if a device aborted and
  // continued, or gave up waiting: those that are done keep their error for late devices.
  static constexpr size_t kMaxRounds = 64;  // beyond which those of a session that are done become one
  std::deque<std::shared_ptr<Round>> rounds_;
  const size_t devices_;
  std::vector<DeviceSession> states_;  // by device
  // Of programs that met, by their digests in the order of devices; the oldest go first.
  static constexpr size_t kMaxCombined = 64;
  std::deque<std::pair<std::vector<Digest>, std::shared_ptr<CombinedProgram>>> combined_;
  const double timeout_seconds_;
  const std::atomic<bool>* const cancel_;
  const std::shared_ptr<interp::World> world_;
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_CLIENT_RENDEZVOUS_H_

// SPDX-License-Identifier: Apache-2.0
// The processes of a run: which devices each has, the communicators of groups of devices, and what a process does while
// it waits for others.
//
// Process r of n has the devices [r * D / n, (r + 1) * D / n) of D, unless an implementation says otherwise.
//
// No wait is endless: one that takes long is reported, and once all processes wait, those whose data do not come within
// a time that depends on their size end with an error. A process that computes is waited for.
#ifndef HLOKIT_INTERP_PROCESSES_WORLD_H_
#define HLOKIT_INTERP_PROCESSES_WORLD_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/processes/transport.h"
#include "ir/graph/module_fwd.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// Processes that have members of a group of devices.
struct ProcessGroup {
  int communicator = -1;                        // negative: one process has all members
  std::vector<int> ranks;                       // ascending, in the order of the communicator
  size_t self = 0;                              // position of this process
  std::vector<std::vector<size_t>> members_of;  // by process, positions in the group of devices, ascending
  std::vector<size_t> process_of;               // by member
  uint64_t operations = 0;                      // that the communicator has started
  uint64_t waits_in = 0;                        // round of the scheduler in which its oldest operation waits
};

// What a device waits for, to be shown if nothing can continue.
struct DeviceState {
  int64_t device = 0;
  int64_t instruction = -1;  // a collective; negative: the device has ended
};

class World {
 public:
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Transport& transport() { return *transport_; }
  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }

  // Returns the first device of a process; that of rank size() is the end.
  int64_t FirstDevice(int64_t devices, int rank) const { return devices * rank / size(); }
  virtual int ProcessOf(int64_t device, int64_t devices) const;
  // Returns the devices of this process, ascending.
  virtual std::vector<int64_t> OwnDevices(int64_t devices) const;

  // Returns the processes of a group of devices, with a communicator that all of them make in the first call. Requires:
  // this process has a member.
  absl::StatusOr<ProcessGroup*> GroupOf(absl::Span<const int64_t> group, int64_t devices);

  // Tells the other processes that this one has waited for long, and in which state its devices are; without states,
  // that it waits for bytes.
  virtual void ReportIdle(absl::Span<const DeviceState> states) = 0;
  // The inverse; `states`: of devices that have ended, if any.
  virtual void ReportProgress(absl::Span<const DeviceState> states) = 0;
  // Returns true once all processes wait, with the states of all devices: nothing but data on their way can make the
  // program continue. Only one process is told, again while it lasts.
  virtual bool AllWait(std::vector<DeviceState>* states) = 0;
  // Around a call of the library that waits for others, which are at the same call: it ends the program if it takes
  // too long. `what` names it in the error.
  virtual void BeginCall(const char* what) = 0;
  virtual void EndCall() = 0;
  // Returns the seconds within which `bytes` must come while all processes wait.
  double LimitOf(int64_t bytes) const;

  // Returns an error unless all processes have the same `program`. All processes call it.
  virtual absl::Status CheckProgram(uint64_t program);
  // Returns a number that is the same for programs that can run together, and not 0.
  virtual uint64_t ProgramOf(const Module& module) const;
  // Around each run. BeginRun: of a program, which errors call `name`. EndRun: with the error of this process, if there
  // is one, which others that wait for it get.
  virtual void BeginRun(uint64_t /*program*/, std::string_view /*name*/) {}
  virtual void EndRun(const absl::Status& /*status*/) {}
  // Returns an error once messages of others that this process waits for can no longer come.
  virtual absl::Status CheckOthers() { return absl::OkStatus(); }
  // Waits until others have all that was sent to them.
  absl::Status Flush();
  // Waits for a request for `bytes`.
  absl::Status Wait(Transport::Request request, int64_t bytes);

  // Sends values to the first process, which appends those of each other one to its own, in the order of ranks; their
  // shapes are those of its own with `each` values to a device. All processes call it.
  absl::Status GatherValues(int64_t devices, size_t each, absl::Span<const Shape> shapes, std::vector<Literal>* values);
  // Returns the bytes of all processes, in the order of ranks, in each. All processes call it.
  absl::StatusOr<std::vector<std::string>> AllGatherBytes(const std::string& bytes);
  // Returns the text of the transport's last error.
  std::string ErrorText() const { return std::string(transport_->error_prefix()) + transport_->error(); }

 protected:
  // `timeout_seconds`: for data on their way, besides a time for each byte.
  World(Transport* transport, double timeout_seconds) : transport_(transport), timeout_seconds_(timeout_seconds) {}
  // Forgets what communicators have started: before a run, after one that did not end.
  void ResetOperations();

 private:
  // One wait for bytes.
  class Waiting {
   public:
    Waiting(World* world, int64_t bytes) : world_(*world), bytes_(bytes) {}
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting();
    // Lets time pass. Returns an error if it was too much.
    absl::Status Pause();

   private:
    using Clock = std::chrono::steady_clock;
    World& world_;
    const int64_t bytes_;
    int64_t polls_ = 0;
    bool reported_ = false;
    Clock::time_point reported_at_, all_wait_since_, all_wait_at_;
  };

  absl::StatusOr<std::string> ReceiveFrom(int rank, int tag);
  absl::Status Error() const { return absl::InternalError(ErrorText()); }

  Transport* const transport_;
  const double timeout_seconds_;
  std::map<std::pair<std::vector<int64_t>, int64_t>, ProcessGroup> groups_;  // by devices, and number of all devices
};

// After which a wait is reported, and again.
inline constexpr double kIdleSeconds = 0.5;

// Lets another process run, after many calls without progress for longer: more processes than cores would otherwise
// take the time that the awaited one needs. `polls`: calls since the last progress.
void PauseBetweenPolls(int64_t polls);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROCESSES_WORLD_H_

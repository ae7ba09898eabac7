// SPDX-License-Identifier: Apache-2.0
// The processes of a run: which devices each has, the communicators of groups of devices, and what a process does while
// it waits for others.
//
// Process r of n has the devices [r * D / n, (r + 1) * D / n) of D.
#ifndef HLOKIT_INTERP_DISTRIBUTED_WORLD_H_
#define HLOKIT_INTERP_DISTRIBUTED_WORLD_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/distributed/transport.h"
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
};

// What a device waits for, to be shown if nothing can continue.
struct DeviceState {
  int64_t device = 0;
  int64_t instruction = -1;  // a collective; negative: the device has ended
};

class World {
 public:
  explicit World(Transport* transport) : transport_(transport) {}
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Transport& transport() { return *transport_; }
  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }

  // Returns the first device of a process; that of rank size() is the end.
  int64_t FirstDevice(int64_t devices, int rank) const { return devices * rank / size(); }
  int ProcessOf(int64_t device, int64_t devices) const;

  // Returns the processes of a group of devices, with a communicator that all of them make in the first call. Requires:
  // this process has a member.
  absl::StatusOr<ProcessGroup*> GroupOf(absl::Span<const int64_t> group, int64_t devices);

  // Tells the other processes that this one has waited for long, and in which state its devices are.
  virtual void ReportIdle(absl::Span<const DeviceState> states) = 0;
  virtual void ReportProgress() = 0;
  // Returns true once all processes wait, with the states of all devices: the program cannot continue. Only one process
  // is told.
  virtual bool IsDeadlock(std::vector<DeviceState>* states) = 0;

  // Sends values to the first process, which appends those of each other one to its own, in the order of ranks; their
  // shapes are those of its own with `each` values to a device. All processes call it.
  absl::Status GatherValues(int64_t devices, size_t each, absl::Span<const Shape> shapes, std::vector<Literal>* values);
  // Returns the bytes of all processes, in the order of ranks, in each. All processes call it.
  absl::StatusOr<std::vector<std::string>> AllGatherBytes(const std::string& bytes);

 private:
  // Waits for a request, or a message.
  absl::Status Wait(Transport::Request request);
  absl::StatusOr<std::string> ReceiveFrom(int rank, int tag);
  absl::Status Error() const { return absl::InternalError(std::string("MPI: ") + transport_->error()); }

  Transport* const transport_;
  std::map<std::pair<std::vector<int64_t>, int64_t>, ProcessGroup> groups_;  // by devices, and number of all devices
};

// Lets another process run, after many calls without progress for longer: more processes than cores would otherwise
// take the time that the awaited one needs. `polls`: calls since the last progress.
void PauseBetweenPolls(int64_t polls);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_DISTRIBUTED_WORLD_H_

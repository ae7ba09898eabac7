// Where the devices of a client meet to run a program with collectives: each brings its arguments and waits until all
// have come, then the last one runs the program for all of them.
#ifndef HLOKIT_INTERP_RUNTIME_RENDEZVOUS_H_
#define HLOKIT_INTERP_RUNTIME_RENDEZVOUS_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/digest.h"
#include "ir/literal.h"

namespace hlokit::runtime {

class Rendezvous {
 public:
  // Runs the program on the arguments of all devices, those of device 0 first; results likewise.
  using Program = std::function<absl::StatusOr<std::vector<Literal>>(absl::Span<const Literal* const>)>;

  // A device that waits longer than `patience_seconds` for the others gives up, and so do those that wait with it.
  Rendezvous(size_t devices, double patience_seconds) : arrivals_(devices), patience_seconds_(patience_seconds) {}

  // Called by each device for its next such program, on a thread of its own; gives the device's results. Devices that
  // come with different programs all get an error, as do those left waiting by one that does not come.
  absl::StatusOr<std::vector<Literal>> Meet(size_t device, const Digest& program, const Program& run,
                                            std::vector<const Literal*> arguments);
  // The device cannot run its next such program; the others get its error.
  void Decline(size_t device, absl::Status status);

 private:
  struct Arrival {
    bool here = false;
    absl::Status status;
    Digest program;
    std::vector<const Literal*> arguments;
  };
  // Of one meeting; whoever waits holds it until it has its part.
  struct Outcome {
    bool done = false;
    absl::Status status;
    std::vector<std::vector<Literal>> results;  // by device
  };

  void Conclude(const Program& run);
  std::string Missing() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Arrival> arrivals_;
  std::shared_ptr<Outcome> outcome_ = std::make_shared<Outcome>();  // of the meeting that gathers
  const double patience_seconds_;
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_INTERP_RUNTIME_RENDEZVOUS_H_

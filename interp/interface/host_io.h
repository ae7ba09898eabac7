// SPDX-License-Identifier: Apache-2.0
// Host side of infeed, outfeed and of send and recv with is_host_transfer: queues of values.
#ifndef HLOKIT_INTERP_INTERFACE_HOST_IO_H_
#define HLOKIT_INTERP_INTERFACE_HOST_IO_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

class HostIo {
 public:
  virtual ~HostIo() = default;
  // Receives the next value of a queue for a device: "infeed", "recv.CHANNEL". Fills the literals of `leaves`, one for
  // each array leaf. An error ends the run.
  virtual absl::Status Receive(std::string_view queue, int64_t device, absl::Span<Literal> leaves) = 0;
  // Sends a value from a device to a queue: "outfeed", "send.CHANNEL".
  virtual absl::Status Send(std::string_view queue, int64_t device, absl::Span<const Literal> leaves) = 0;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_INTERFACE_HOST_IO_H_
